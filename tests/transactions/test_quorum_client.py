"""A client where majorities decide, answer by answer: which votes it counts, and whom it asks again."""

from __future__ import annotations

from quire.protocols.node import Effects, Send
from quire.protocols.transactions.notices import Answered, Began
from quire.protocols.transactions.placement import Placement
from quire.protocols.transactions.quorum_client import QuorumClient
from quire.protocols.transactions.quorum_packets import Accepted, Decide, Granted, Prewrite, Propose
from quire.protocols.transactions.requests import Begin, Finish, Get, Put
from quire.protocols.transactions.settings import Settings
from quire.protocols.transactions.timestamps import Timestamp, Version
from quire.protocols.transactions.votes import FIRST
from tests.transactions.by_hand import CLIENT, KEY

READS, WRITES, COMMITS = 2, 3, 4
"""The numbers of the application's requests."""


def begun() -> tuple[QuorumClient, Timestamp]:
    """A client of three replicas, and a transaction of it."""
    client = QuorumClient(CLIENT, Placement(3), Settings(), lambda: 0.0)
    [began] = client.submit(0, 1, Begin())
    assert isinstance(began, Began)
    return client, began.t


def asked(effects: Effects, kind: type = Prewrite) -> list[int]:
    """The replicas that are sent a packet of this kind."""
    return [to for effect in effects if isinstance(effect, Send) and isinstance(effect.packet, kind) for to in effect.to]


def test_a_read_and_a_write_each_need_a_majority() -> None:
    client, t = begun()
    client.submit(0, READS, Get(t, KEY))
    older, newer = (Granted(0, {}, t, 1, Version(0, CLIENT, number), b"%d" % number) for number in (1, 2))
    assert client.receive(1, 0, older) == []
    assert Answered(READS, b"2") in client.receive(1, 2, newer)
    client.submit(2, WRITES, Put(t, KEY, b"x"))
    assert client.receive(3, 1, Granted(0, {}, t, 2, None, None)) == []
    assert Answered(WRITES, None) in client.receive(3, 2, Granted(0, {}, t, 2, None, None))


def test_a_commit_is_decided_by_a_majority_that_has_accepted_it() -> None:
    client, t = begun()
    client.submit(0, WRITES, Put(t, KEY, b"x"))
    for replica in (0, 1):
        client.receive(1, replica, Granted(0, {}, t, 1, None, None))
    proposes = client.submit(2, COMMITS, Finish(t, commit=True))
    assert (asked(proposes, Propose), asked(proposes, Decide)) == ([0, 1, 2], [])
    assert client.receive(3, 2, Accepted(0, {}, t, FIRST)) == []
    decides = client.receive(3, 0, Accepted(0, {}, t, FIRST))
    assert asked(decides, Decide) == [0, 1, 2]
    assert Answered(COMMITS, None) in decides


def test_a_vote_of_a_replica_that_has_lost_its_disk_since_is_asked_for_again() -> None:
    client, t = begun()
    assert asked(client.submit(0, WRITES, Put(t, KEY, b"x"))) == [0, 1, 2]

    def grants(replica: int, incarnation: int, known: dict[int, int]) -> bool:
        effects = client.receive(1, replica, Granted(incarnation, known, t, 1, None, None))
        return Answered(WRITES, None) in effects

    assert not grants(0, 0, {})
    assert not grants(1, 0, {0: 1}), "it knows that replica 0 has begun anew, which no longer stands by its vote"
    again_at = client.due()
    assert again_at is not None
    assert asked(client.wake(again_at)) == [0, 2]
    assert grants(0, 1, {0: 1})
