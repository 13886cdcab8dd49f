"""Where judging begins, and when it must begin anew, by what is heard of processes one after the other."""

from __future__ import annotations

import threading

from quire.model.orders import Guarantee
from quire.trace.log import Address, EventLog
from quire.trace.parts.description import RunIdentity
from quire.trace.tables import as_records
from quire.trace.views import VIEW_BITS, ViewMember
from quire.watch.followed import Followed, follow
from quire.watch.updates import ProcessUpdate
from quire.watch.verdict import LiveJudge
from tests.kit.patience import PATIENCE_S

NAMES = {0: "a", 1: "b"}
GROUP = RunIdentity(
    run="r", group="g", protocol="single-phase", options={}, members=2, views=True,
    promises=(Guarantee.AGREEMENT, Guarantee.TOTAL),
)  # fmt: skip
EVERYBODY = frozenset(NAMES)
HELLO = 1 << VIEW_BITS


def start(process: int, incarnation: int = 1) -> EventLog:
    log = EventLog(process)
    log.installed("g", 1, [ViewMember(0, 1), ViewMember(1, 1)], incarnation, 1, 1)
    return log


def heard(log: EventLog, reached: int, incarnation: int = 1, *, from_the_start: bool = True) -> ProcessUpdate:
    return ProcessUpdate(log.process, incarnation, as_records(log.take()), log.names, reached, from_the_start)


def both_deliver() -> Followed:
    """Member a sent a message in view 1, and both delivered it."""
    followed = follow(GROUP, NAMES)
    a, b = start(0), start(1)
    a.send(0, HELLO, 1, 2, 2, a.address(Address("g", (0, 1))), 5)
    for log in (a, b):
        log.deliver(0, HELLO, 1, 4, 4, 0, 5)
    for log in (a, b):
        followed.take(heard(log, 4), EVERYBODY)
    return followed


def test_a_message_that_comes_again_is_a_violation() -> None:
    followed = both_deliver()
    assert followed.judge().violated == {}
    again = EventLog(1)
    again.deliver(0, HELLO, 1, 5, 5, 0, 5)
    followed.take(heard(again, 6, from_the_start=False), EVERYBODY)
    followed.take(heard(EventLog(0), 6, from_the_start=False), EVERYBODY)
    count, because = followed.judge().violated[Guarantee.INTEGRITY]
    assert (count, because) == (1, "b delivered a:0 of view 1, which nobody sent, or which was delivered before")


def test_a_member_that_resumes_from_its_journal_may_deliver_again() -> None:
    followed = both_deliver()
    followed.gone(1)
    back = EventLog(1)
    back.resumed("g", 1, 2, 0, 5, 5)
    back.deliver(0, HELLO, 1, 6, 6, 0, 5)
    resumed = heard(back, 6, 2)
    assert followed.must_begin_anew(resumed)


def test_judging_begins_anew_with_a_process_that_was_not_known_or_not_waited_for() -> None:
    followed = both_deliver()
    newcomer = EventLog(7)
    assert followed.must_begin_anew(heard(newcomer, 9))
    assert not followed.must_begin_anew(heard(EventLog(1), 9, from_the_start=False))
    followed.gone(1)
    assert followed.must_begin_anew(heard(EventLog(1), 9, from_the_start=False))


def test_a_member_that_was_started_again_without_a_journal_is_followed_on() -> None:
    followed = both_deliver()
    followed.gone(1)
    assert not followed.must_begin_anew(heard(EventLog(1), 9, 2))


SECOND = 1_000_000_000


def goes_on_alone(log: EventLog, view: int, first_lamport: int, seconds: int) -> ProcessUpdate:
    """Member a installs a view without b, and delivers a message of its own in each second from then on."""
    log.installed("g", view, [ViewMember(0, 1)], 1, first_lamport, 0)
    to_itself = log.address(Address("g", (0,)))
    for number in range(seconds):
        lamport, message = first_lamport + 1 + 2 * number, (view << VIEW_BITS) + number
        log.send(0, message, 1, lamport, (number + 1) * SECOND, to_itself, 5)
        log.deliver(0, message, 1, lamport + 1, (number + 1) * SECOND, 0, 5)
    return heard(log, first_lamport + 2 * seconds, from_the_start=False)


def silent(process: int, reached: int = 4) -> ProcessUpdate:
    """The process answers, and has done nothing."""
    return heard(EventLog(process), reached, from_the_start=False)


def test_a_member_that_was_left_behind_is_waited_for_a_while_and_then_holds_nothing_back() -> None:
    followed, a = both_deliver(), EventLog(0)
    assert followed.judge().deliveries == 2
    followed.take(goes_on_alone(a, 2, 10, 2), EVERYBODY)
    followed.take(silent(1), EVERYBODY)
    assert followed.judge().deliveries == 2, "it may be on its way back"
    assert followed.lag_s() > 0
    followed.take(goes_on_alone(a, 3, 20, 3), EVERYBODY)
    followed.take(silent(1), EVERYBODY)
    assert followed.judge().deliveries == 2 + 2 + 3
    assert followed.lag_s() == 0
    assert not followed.must_begin_anew(silent(1))


def test_a_member_that_was_left_behind_and_comes_back_is_judged_from_its_next_view_on() -> None:
    followed, a = both_deliver(), EventLog(0)
    followed.take(goes_on_alone(a, 2, 10, 4), EVERYBODY)
    assert followed.judge().deliveries == 2 + 4
    late = EventLog(1)
    late.deliver(0, HELLO, 1, 5, 5, 0, 5)
    followed.take(heard(late, 5, from_the_start=False), EVERYBODY)
    assert followed.judge().violated == {}, "what it did before is left to the audit"

    both = [ViewMember(0, 1), ViewMember(1, 2)]
    a.installed("g", 3, both, 1, 30, 9 * SECOND)
    a.send(0, 3 << VIEW_BITS, 1, 31, 9 * SECOND, a.address(Address("g", (0, 1))), 5)
    a.deliver(0, 3 << VIEW_BITS, 1, 33, 9 * SECOND, 0, 5)
    followed.take(heard(a, 33, from_the_start=False), EVERYBODY)
    assert followed.judge().deliveries == 2 + 4, "it is waited for again"
    back = EventLog(1)
    back.installed("g", 3, both, 2, 30, 9 * SECOND)
    for lamport in (33, 34):
        back.deliver(0, 3 << VIEW_BITS, 1, lamport, 9 * SECOND, 0, 5)
    followed.take(heard(back, 35, from_the_start=False), EVERYBODY)
    followed.take(silent(0, 35), EVERYBODY)
    judged = followed.judge()
    assert (judged.deliveries, judged.violated[Guarantee.INTEGRITY][0]) == (2 + 4 + 3, 1), "it delivers twice"


def test_no_thread_is_left_when_judging_ends() -> None:
    """An interpreter that ends while one is in compiled code is aborted, now and then."""
    with LiveJudge() as judge:
        taken = threading.Event()
        judge._put(taken.set)
        assert taken.wait(PATIENCE_S)
        assert "quire-verdict" in {thread.name for thread in threading.enumerate()}
    assert "quire-verdict" not in {thread.name for thread in threading.enumerate()}
