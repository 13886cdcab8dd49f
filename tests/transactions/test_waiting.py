"""Readers that wait at a replica for an older write: they go on as soon as it can no longer become what they have to see."""

from __future__ import annotations

from quire.protocols.transactions.channels import Clock
from quire.protocols.transactions.packets import Done, End, Read, Write
from quire.protocols.transactions.quorum_packets import Decide, Granted
from quire.protocols.transactions.replica import Outcome, Post, Replica
from quire.protocols.transactions.settings import Settings
from quire.protocols.transactions.timestamps import Version
from tests.transactions.by_hand import CLIENT, KEY, Replicas, at, written


def test_where_majorities_decide_a_reader_does_not_wait_for_a_write_that_a_younger_one_has_buried() -> None:
    """Transaction 4 has written without this replica's vote, and nothing says how 3 will end."""
    three = Replicas()
    assert three.grants(3, 0)
    assert three.read(5, 0) is None
    answers = three.tell(0, Decide(at(4), written(4)))
    assert [(answer.t, answer.value) for answer in answers if isinstance(answer, Granted)] == [(at(5), b"4")]


def test_where_all_must_agree_a_reader_does_not_wait_for_a_write_that_a_younger_one_has_buried() -> None:
    replica = Replica(0, (CLIENT,), Settings(), Clock())
    for number in (3, 4):
        replica.request(0, CLIENT, Write(number, 0, number, at(number), 1, KEY, Version(number, CLIENT, 1), b"%d" % number))
    assert replica.request(0, CLIENT, Read(5, 0, 5, at(5), 1, KEY)) == []
    assert done(replica.end(End(6, 0, 6, at(4), True, (KEY,)))) == [(at(5), b"4")]


def test_a_reader_goes_on_when_the_write_that_it_waits_for_is_undone() -> None:
    replica = Replica(0, (CLIENT,), Settings(), Clock())
    replica.request(0, CLIENT, Write(3, 0, 3, at(3), 1, KEY, Version(3, CLIENT, 1), b"3"))
    assert replica.request(0, CLIENT, Read(5, 0, 5, at(5), 1, KEY)) == []
    assert done(replica.end(End(6, 0, 6, at(3), False, (KEY,)))) == [(at(5), None)]


def done(outcomes: list[Outcome]) -> list[tuple[object, bytes | None]]:
    """Which transactions are answered, and what they have read."""
    contents = [outcome.content for outcome in outcomes if isinstance(outcome, Post)]
    return [(content.t, content.value) for content in contents if isinstance(content, Done)]
