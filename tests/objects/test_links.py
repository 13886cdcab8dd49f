"""A link between two members that lost something: what is missing is asked for, and all of it is sent again."""

from __future__ import annotations

from quire.protocols.objects.exchange import Exchange, ObjectOptions
from quire.protocols.objects.links import Link
from quire.protocols.objects.packets import Data, Heartbeat, Release, Stamp

WINDOW = 8


def content(clock: int) -> Release:
    return Release(clock, clock, 0, "o", True)


def pair(sent: int) -> tuple[Link, Link, list[Data]]:
    """Both ends, and what the one has sent to the other."""
    sender, receiver = Link(1, WINDOW), Link(0, WINDOW)
    return sender, receiver, [sender.push(0, content(clock)) for clock in range(1, sent + 1)]


def test_everything_that_is_missing_is_asked_for_and_sent_again_the_last_too() -> None:
    sender, receiver, sent = pair(4)
    for arrived in (sent[0], sent[2]):
        list(receiver.take(1, arrived))
    receiver.expect(1, sender.sent)
    assert receiver.gap_since == 1
    assert receiver.missing() == (2, 4)
    again = list(sender.resend(2, receiver.missing()))
    assert [data.content for data in again] == [content(2), content(4)]
    assert [taken for data in again for taken in receiver.take(3, data)] == [content(2), content(3), content(4)]
    assert receiver.missing() == ()
    assert receiver.gap_since is None


def test_no_more_is_asked_for_than_there_is_room_for() -> None:
    sender, receiver, _ = pair(WINDOW + 2)
    receiver.expect(1, sender.sent)
    assert receiver.missing() == tuple(range(1, WINDOW + 1))


def test_with_room_for_one_message_the_next_is_taken_and_no_other() -> None:
    _, _, sent = pair(2)
    receiver = Link(0, window=1)
    assert list(receiver.take(1, sent[1])) == []
    assert list(receiver.take(1, sent[0])) == [content(1)]
    assert list(receiver.take(1, sent[1])) == [content(2)]


def test_what_was_acknowledged_since_is_not_sent_again() -> None:
    sender, _, _ = pair(3)
    sender.acknowledged(2)
    assert [data.sequence for data in sender.resend(1, (1, 2, 3))] == [3]
    sender.acknowledged(3)
    assert not sender.has_unacknowledged()
    assert list(sender.repeat(100, 10)) == []


def test_a_heartbeat_that_overtook_a_message_does_not_say_that_nothing_older_can_come() -> None:
    """Member 1 has sent something at time 3, and said at time 5 that there was one message. That comes first."""
    exchange = Exchange(0, 2, ObjectOptions())
    sender = Link(0, WINDOW)
    late = sender.push(0, content(3))
    heartbeat = Heartbeat(0, sender.sent, 5, 0, (0, 5))
    list(exchange.receive(1, 1, heartbeat))
    assert not exchange.is_stable(Stamp(4, 0))
    assert [taken.clock for taken in exchange.receive(2, 1, late)] == [3]
    list(exchange.receive(3, 1, heartbeat))
    assert exchange.is_stable(Stamp(4, 0))


def test_a_member_has_delivered_only_what_is_older_than_all_that_waits_there() -> None:
    exchange = Exchange(0, 2, ObjectOptions())
    sender = Link(0, WINDOW)
    for clock in (3, 5):
        list(exchange.receive(1, 1, sender.push(0, content(clock))))
        exchange.arrived(1, clock, clock, targets=1)
    assert exchange.row()[1] == 2
    exchange.delivered(1, 3)
    assert exchange.row()[1] == 4
    exchange.delivered(1, 5)
    assert exchange.row()[1] == 5


def test_a_peer_that_waits_for_a_clock_that_is_nobodys_is_not_told_again_and_again() -> None:
    exchange = Exchange(0, 2, ObjectOptions())
    list(exchange.receive(1, 1, Heartbeat(0, 0, 5, 1 << 40, (0, 5))))
    now = exchange.due(waits=False)
    assert now is not None
    exchange.wake(now, waits=False)
    again_at = exchange.due(waits=False)
    assert again_at is not None
    assert again_at > now
