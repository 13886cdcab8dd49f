"""The layout of a diagram that shows order instead of time: computes the step (column) of each event.

An event is to the right of the one before it at its process and, where it is the delivery or the receipt of a message, of
the sending of that message. Events are placed in the order of the trace's own times as far as these causes allow it, as far
to the left as they may be, but no more steps than there are processes to the left of all before: what happened about the
same time is drawn at about the same position. Messages in a row may be one event. Logs that contradict each other are drawn
all the same: where everything waits for something else, the event that comes first by the trace's own times goes on without.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from quire.trace.kinds import DELIVER, RECEIVE, SEND


class Event(NamedTuple):
    process: int
    kind: int
    origin: int
    seq: int
    at: int
    """The logical time, or another number that orders events of different processes if nothing else does."""
    messages: int = 1
    """How many consecutive messages, from `seq` on, this event is about."""

    @property
    def last(self) -> int:
        return self.seq + self.messages - 1


class _Sends:
    """The event of each message's first send by its sender."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._by_origin: dict[int, tuple[list[int], list[int], list[int]]] = {}
        sends = [index for index, event in enumerate(events) if event.kind == SEND and event.origin == event.process]
        for index in sorted(sends, key=lambda each: (events[each].seq, each)):
            event = events[index]
            firsts, lasts, indices = self._by_origin.setdefault(event.origin, ([], [], []))
            if not lasts or event.seq > lasts[-1]:
                firsts.append(event.seq)
                lasts.append(event.last)
                indices.append(index)

    def of(self, event: Event) -> Sequence[int]:
        """The indices of the events that sent what this one delivers or receives."""
        if event.kind not in (DELIVER, RECEIVE) or event.origin not in self._by_origin:
            return ()
        firsts, lasts, indices = self._by_origin[event.origin]
        return indices[bisect_left(lasts, event.seq) : bisect_right(firsts, event.last)]


def steps(events: Sequence[Event]) -> list[int]:
    """The step of each event. Events of one process must be in local order."""
    logs: dict[int, list[int]] = {}
    for index, event in enumerate(events):
        logs.setdefault(event.process, []).append(index)
    sends = _Sends(events)
    step = [-1] * len(events)
    last = dict.fromkeys(logs, -1)
    cursor = dict.fromkeys(logs, 0)
    ready: list[tuple[int, int]] = []
    waiting: dict[int, int] = {}
    furthest = 0

    def offer(process: int) -> None:
        """Let the next event of a process be placed, or wait for a sending that is not placed yet."""
        if cursor[process] < len(logs[process]):
            index = logs[process][cursor[process]]
            cause = next((send for send in sends.of(events[index]) if step[send] < 0), None)
            if cause is None:
                heappush(ready, (events[index].at, index))
            else:
                waiting[index] = cause

    for process in logs:
        offer(process)
    while ready or waiting:
        index = heappop(ready)[1] if ready else min(waiting, key=lambda each: (events[each].at, each))
        waiting.pop(index, None)
        event = events[index]
        before = [last[event.process], *(step[send] for send in sends.of(event)), furthest - len(logs) - 1]
        step[index] = last[event.process] = max(before) + 1
        furthest = max(furthest, step[index])
        cursor[event.process] += 1
        offer(event.process)
        for other in [other for other, cause in waiting.items() if cause == index]:
            del waiting[other]
            offer(events[other].process)
    return step
