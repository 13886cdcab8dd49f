"""Where each event of a small piece of a trace goes in a drawing that shows order instead of time.

An event is one step to the right of the one before it at its process and, where it is the delivery or the receipt of a
message, of the sending of that message. Logs that contradict each other are drawn all the same: where everything waits for
something else, the event that comes first by the trace's own times goes on without.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from quire.trace.schema import DELIVER, RECEIVE, SEND


class Event(NamedTuple):
    process: int
    kind: int
    origin: int
    seq: int
    at: int
    """Logical time, or another number by which events of different processes are ordered when nothing else orders them."""


def steps(events: Sequence[Event]) -> list[int]:
    """The step of each event. Events of one process must be in local order."""
    logs: dict[int, list[int]] = {}
    for index, event in enumerate(events):
        logs.setdefault(event.process, []).append(index)
    awaited = {(event.origin, event.seq) for event in events if event.kind == SEND and event.origin == event.process}
    sent: dict[tuple[int, int], int] = {}
    step = [0] * len(events)
    last = dict.fromkeys(logs, -1)
    cursor = dict.fromkeys(logs, 0)

    def waits(event: Event) -> bool:
        message = (event.origin, event.seq)
        return event.kind in (DELIVER, RECEIVE) and message in awaited and message not in sent

    def place(process: int) -> None:
        index = logs[process][cursor[process]]
        event = events[index]
        message = (event.origin, event.seq)
        after = sent.get(message, -1) if event.kind in (DELIVER, RECEIVE) else -1
        step[index] = last[process] = max(last[process], after) + 1
        if event.kind == SEND and event.origin == process:
            sent.setdefault(message, step[index])
        cursor[process] += 1

    def heads() -> list[int]:
        return [process for process, log in logs.items() if cursor[process] < len(log)]

    while open_ := heads():
        ready = [process for process in open_ if not waits(events[logs[process][cursor[process]]])]
        for process in ready or [min(open_, key=lambda p: events[logs[p][cursor[p]]].at)]:
            place(process)
            while cursor[process] < len(logs[process]) and not waits(events[logs[process][cursor[process]]]):
                place(process)
    return step
