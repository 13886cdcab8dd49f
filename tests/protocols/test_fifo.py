"""Sender order: what is early waits, what was seen is dropped, and what cannot be is refused without a trace."""

from __future__ import annotations

from copy import deepcopy

import pytest

from quire.model.errors import BadInput, HoldBackFull, ProtocolViolation
from quire.model.messages import NUMBER_MAX, RUN_MESSAGES_MAX, Body, Run, make_run
from quire.protocols.contract import NOTHING, Deliver, Send
from quire.protocols.fifo import Cast, Fifo, FifoOptions


def member(held: int = 100) -> Fifo:
    return Fifo(0, 3, FifoOptions(held=held))


def cast(first: int, count: int = 1) -> Cast:
    return Cast(make_run(1, first, [b"%d" % seq for seq in range(first, first + count)]))


def test_an_own_run_is_delivered_at_once_and_sent_as_one_packet() -> None:
    run = make_run(0, 0, [b"a", b"b"])
    assert member().submit(run) == (Send(Cast(run)), Deliver(run))


def test_an_early_run_waits_for_the_gap_before_it() -> None:
    fifo = member()
    assert fifo.receive(1, cast(3, 2)) == NOTHING
    assert fifo.receive(1, cast(2)) == NOTHING
    assert fifo.held_back() == 3
    assert fifo.receive(1, cast(0, 2)) == [Deliver(cast(0, 2).run), Deliver(cast(2).run), Deliver(cast(3, 2).run)]
    assert fifo.held_back() == 0


def test_what_waits_says_which_message_is_missing() -> None:
    fifo = member()
    fifo.receive(1, cast(1))
    (waiting,) = fifo.waiting()
    assert (waiting.run, waiting.members, waiting.because) == (cast(1).run, (1,), "message 1:0 has not arrived")


def test_a_gap_that_stays_keeps_the_rest_waiting() -> None:
    fifo = member()
    fifo.receive(1, cast(1))
    fifo.receive(1, cast(3))
    assert fifo.receive(1, cast(0)) == [Deliver(cast(0).run), Deliver(cast(1).run)]
    assert fifo.held_back() == 1


def test_a_repeated_run_is_dropped_whether_it_was_delivered_or_waits() -> None:
    fifo = member()
    fifo.receive(1, cast(0))
    fifo.receive(1, cast(2))
    before = deepcopy(vars(fifo))
    assert fifo.receive(1, cast(0)) == NOTHING
    assert fifo.receive(1, cast(2)) == NOTHING
    assert vars(fifo) == before


def test_senders_do_not_wait_for_each_other() -> None:
    fifo = member()
    fifo.receive(1, cast(1))
    run = make_run(2, 0, [b"x"])
    assert fifo.receive(2, Cast(run)) == [Deliver(run)]


def test_a_full_hold_back_buffer_leaves_the_packet_on_its_link_but_takes_what_fills_the_gap() -> None:
    fifo = member(held=2)
    fifo.receive(1, cast(1, 2))
    with pytest.raises(HoldBackFull):
        fifo.receive(1, cast(3))
    assert fifo.held_back() == 2
    assert len(fifo.receive(1, cast(0))) == 2
    assert fifo.receive(1, cast(3)) == [Deliver(cast(3).run)]


IMPOSSIBLE = {
    "part of it was delivered": cast(0, 3),
    "part of it waits": cast(5, 2),
    "it reaches into what waits": cast(3, 3),
    "it differs from what waits": Cast(make_run(1, 6, [b"other"])),
    "its origin is somebody else": Cast(make_run(2, 0, [b"a"])),
    "it has no messages": Cast(Run(1, 2, 0)),
    "it has too many messages": Cast(Run(1, 2, RUN_MESSAGES_MAX + 1)),
    "its first number is negative": Cast(Run(1, -1, 1)),
    "its numbers overflow": Cast(Run(1, NUMBER_MAX, 1)),
    "its body is too short": Cast(Run(1, 2, 2, Body(b"abc", 2))),
    "its body has a negative length": Cast(Run(1, 2, 2, Body(b"a", 0, (2, -1)))),
    "its body has fewer lengths than messages": Cast(Run(1, 2, 2, Body(b"a", 0, (1,)))),
}


@pytest.mark.parametrize("packet", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_a_run_that_cannot_be_is_refused_and_changes_nothing(packet: Cast) -> None:
    fifo = member()
    fifo.receive(1, cast(0, 2))
    fifo.receive(1, cast(4, 2))
    fifo.receive(1, cast(6))
    before = deepcopy(vars(fifo))
    with pytest.raises(ProtocolViolation) as refused:
        fifo.receive(1, packet)
    assert refused.value.peer == 1
    assert vars(fifo) == before


@pytest.mark.parametrize("run", [make_run(1, 0, [b"a"]), make_run(0, 1, [b"a"]), Run(0, 0, 0), Run(0, 0, 2, Body(b"a", 1))])
def test_a_run_that_is_not_the_members_next_cannot_be_submitted(run: Run) -> None:
    fifo = member()
    before = deepcopy(vars(fifo))
    with pytest.raises(BadInput):
        fifo.submit(run)
    assert vars(fifo) == before
