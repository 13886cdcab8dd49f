"""Where events are drawn: each after what came before it."""

from __future__ import annotations

import random

from quire.report.order import Event, steps
from quire.trace.kinds import DELIVER, SEND
from tests.audit.traces import plain, random_trace


def test_steps_put_every_event_after_what_came_before_it_even_where_logs_contradict_each_other() -> None:
    for seed in range(200):
        trace = random_trace(random.Random(seed))
        events = [
            Event(p, {"send": SEND, "deliver": DELIVER}.get(e.kind, 2), e.origin, e.seq, at or 0)
            for p, log in enumerate(trace.logs)
            for e, at in zip(log, trace.clocks[p], strict=True)
        ]
        step = steps(events)
        last: dict[int, int] = {}
        for event, at in zip(events, step, strict=True):
            assert at > last.get(event.process, -1)
            last[event.process] = at


def test_steps_put_a_delivery_after_its_send() -> None:
    trace = plain("s0>012 d0:0", "d0:0 s0>012 d1:0", "d1:0 d0:0")
    events = [
        Event(p, SEND if e.kind == "send" else DELIVER, e.origin, e.seq, 0) for p, log in enumerate(trace.logs) for e in log
    ]
    step = steps(events)
    sent = {(e.origin, e.seq): at for e, at in zip(events, step, strict=True) if e.kind == SEND}
    assert all(at > sent[e.origin, e.seq] for e, at in zip(events, step, strict=True) if e.kind == DELIVER)


def test_steps_put_a_run_after_all_the_sends_that_it_delivers_of() -> None:
    events = [
        Event(0, SEND, 0, 0, 0, 100), Event(0, DELIVER, 1, 0, 3), Event(0, SEND, 0, 100, 4, 50),
        Event(1, SEND, 1, 0, 1), Event(1, DELIVER, 0, 90, 2, 20), Event(1, DELIVER, 0, 120, 9, 5),
    ]  # fmt: skip
    step = steps(events)
    assert step[4] > max(step[0], step[2]), "its messages are of both runs"
    assert step[5] > step[4]
    assert step[1] > max(step[0], step[3])


def test_steps_of_the_same_time_are_near_each_other() -> None:
    """A process that only sends is not drawn far ahead of the others."""
    events = [Event(0, SEND, 0, number, 10 * number) for number in range(50)]
    events += [Event(1, DELIVER, 0, number, 10 * number + 1) for number in range(50)]
    events += [Event(2, SEND, 2, number, 400 + number) for number in range(5)]
    step = steps(events)
    assert min(step[-5:]) > 35
