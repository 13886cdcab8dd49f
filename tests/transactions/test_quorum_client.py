"""A client where majorities decide, answer by answer: which votes it counts, and whom it asks again."""

from __future__ import annotations

from quire.protocols.node import Effects, Send
from quire.protocols.transactions.notices import Answered, Began
from quire.protocols.transactions.placement import Placement
from quire.protocols.transactions.quorum_client import QuorumClient
from quire.protocols.transactions.quorum_packets import Granted, Prewrite
from quire.protocols.transactions.requests import Begin, Put
from quire.protocols.transactions.settings import Settings
from tests.transactions.by_hand import CLIENT, KEY

WRITES = 2
"""The number of the application's request."""


def asked(effects: Effects) -> list[int]:
    """The replicas that are asked to take the write."""
    return [to for effect in effects if isinstance(effect, Send) and isinstance(effect.packet, Prewrite) for to in effect.to]


def test_a_vote_of_a_replica_that_has_lost_its_disk_since_is_asked_for_again() -> None:
    client = QuorumClient(CLIENT, Placement(3), Settings(), lambda: 0.0)
    [began] = client.submit(0, 1, Begin())
    assert isinstance(began, Began)
    assert asked(client.submit(0, WRITES, Put(began.t, KEY, b"x"))) == [0, 1, 2]

    def grants(replica: int, incarnation: int, known: dict[int, int]) -> bool:
        effects = client.receive(1, replica, Granted(incarnation, known, began.t, 1, None, None))
        return Answered(WRITES, None) in effects

    assert not grants(0, 0, {})
    assert not grants(1, 0, {0: 1}), "it knows that replica 0 has begun anew, which no longer stands by its vote"
    again_at = client.due()
    assert again_at is not None
    assert asked(client.wake(again_at)) == [0, 2]
    assert grants(0, 1, {0: 1})
