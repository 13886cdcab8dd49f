"""Claims, by hand: younger requests wait for whoever was refused and comes again, older ones never, and nobody for ever."""

from __future__ import annotations

import pytest

from quire.model.errors import ProtocolViolation
from quire.model.packets import Packet
from quire.protocols.node import Send
from quire.protocols.transactions.channels import Clock
from quire.protocols.transactions.claims import Claims, Wanted
from quire.protocols.transactions.packets import Claim as ClaimToAll
from quire.protocols.transactions.packets import Done, End, Write
from quire.protocols.transactions.quorum_packets import Claim, Decide, Granted
from quire.protocols.transactions.replica import Outcome, Post, Replica
from quire.protocols.transactions.settings import Settings
from quire.protocols.transactions.timestamps import Timestamp, Version
from quire.protocols.transactions.votes import ABORT
from tests.transactions.by_hand import CLIENT, KEY, Replicas, at, written

READS, WRITES = Wanted(reads=(KEY,)), Wanted(writes=(KEY,))


def claim(three: Replicas, number: int, wanted: Wanted, instead_of: int | None = None) -> list[int]:
    """Transaction `number` claims this at replica 0; returns which others are answered by that."""
    before = None if instead_of is None else at(instead_of)
    return granted(three.tell(0, Claim(at(number), before, wanted)))


def granted(answers: list[Packet]) -> list[int]:
    return [answer.t.tid for answer in answers if isinstance(answer, Granted)]


def test_a_younger_read_waits_for_who_will_write_and_an_older_one_does_not() -> None:
    three = Replicas()
    claim(three, 5, WRITES)
    assert isinstance(three.read(4, 0), Granted)
    assert three.read(6, 0) is None
    assert isinstance(three.write(5, 0), Granted)
    assert granted(three.tell(0, Decide(at(5), written(5)))) == [6]


def test_a_younger_write_waits_for_who_will_read_and_an_older_one_does_not() -> None:
    three = Replicas()
    claim(three, 5, READS)
    assert three.write(6, 0) is None
    assert isinstance(three.write(4, 0), Granted)
    three.tell(0, Decide(at(4), ABORT))
    assert isinstance(three.read(5, 0), Granted)
    assert granted(three.tell(0, Decide(at(5), ABORT))) == [6]


@pytest.mark.parametrize(("wanted", "free"), [(READS, Replicas.read), (WRITES, Replicas.write)])
def test_what_cannot_overtake_the_claimant_does_not_wait(wanted: Wanted, free: object) -> None:
    three = Replicas()
    claim(three, 5, wanted)
    assert isinstance(free(three, 6, 0), Granted)  # type: ignore[operator]


def test_a_claim_that_is_withdrawn_lets_all_go_on() -> None:
    three = Replicas()
    claim(three, 5, READS | WRITES)
    three.read(6, 0)
    three.write(7, 0)
    assert claim(three, 5, Wanted()) == [6, 7]


def test_a_claim_moves_with_its_transaction_and_nobody_slips_in_between() -> None:
    three = Replicas()
    claim(three, 5, WRITES)
    assert [three.read(number, 0) for number in (6, 9)] == [None, None]
    assert claim(three, 8, WRITES, instead_of=5) == [6], "6 is older than the claim now, 9 is not"
    assert three.read(10, 0) is None


def test_who_claims_whatever_key_is_waited_for_everywhere() -> None:
    claims = Claims(lease_ns=100)
    claims.put(0, at(5), None, Wanted(reads=None))
    assert claims.hold_up(at(6), "any", writes=True)
    assert not claims.hold_up(at(6), "any", writes=False)
    assert not claims.hold_up(at(5), "any", writes=True)
    freed = claims.put(0, at(5), None, Wanted())
    assert freed.among(["any", "other"]) == ["any", "other"]
    assert not claims.hold_up(at(6), "any", writes=True)


def test_the_claim_of_a_silent_client_is_void_after_the_lease() -> None:
    three = Replicas()
    claim(three, 5, WRITES)
    three.read(6, 0)
    node = three.nodes[0]
    three.now = three.settings.lease_ns // 2
    three.read(5, 0)
    assert node.due() == three.now + three.settings.lease_ns, "it was heard, so that it has all of its lease again"
    three.now = node.due() or 0
    assert [effect.packet.t.tid for effect in node.wake(three.now) if isinstance(effect, Send)] == [6]  # type: ignore[attr-defined]
    assert isinstance(three.read(7, 0), Granted)


def test_who_ended_claims_nothing_more() -> None:
    three = Replicas()
    three.tell(0, Decide(at(5), ABORT))
    claim(three, 5, WRITES)
    assert isinstance(three.read(6, 0), Granted)


def test_nobody_claims_for_somebody_else() -> None:
    three = Replicas()
    with pytest.raises(ProtocolViolation):
        three.tell(0, Claim(Timestamp(5, CLIENT + 1), None, WRITES))
    with pytest.raises(ProtocolViolation):
        three.tell(0, Claim(at(5), Timestamp(4, CLIENT + 1), WRITES))


def test_where_all_must_agree_a_write_that_waits_goes_with_its_transaction() -> None:
    replica = Replica(0, (CLIENT,), Settings(), Clock())

    def write(number: int) -> list[Outcome]:
        version = Version(number, CLIENT, 1)
        return replica.request(0, CLIENT, Write(number, 0, number, at(number), 1, KEY, version, b"x"))

    replica.claim(0, ClaimToAll(1, 0, 1, at(5), None, READS))
    assert write(6) == write(7) == []
    replica.end(End(4, 0, 4, at(6), False, (KEY,)))
    answered = replica.claim(0, ClaimToAll(5, 0, 5, at(5), None, Wanted()))
    done = [outcome.content for outcome in answered if isinstance(outcome, Post)]
    assert [each.t.tid for each in done if isinstance(each, Done)] == [7]
    assert list(replica.cell(KEY).prewrites) == [at(7)]
