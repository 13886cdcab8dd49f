"""What an application has multicast and what has not left yet, and how it becomes runs.

Messages that pile up while the member is busy leave together; the run is cut only when it is submitted, so that its
size is known when it takes its place in the order.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from itertools import accumulate

Destinations = tuple[int, ...] | None
"""The members for whom a message is; None is everybody."""


class Outbox:
    """Messages in the order in which they were accepted, counted from 0."""

    def __init__(self, run_messages_max: int, run_bytes_max: int) -> None:
        self.accepted = 0
        self._messages_max = run_messages_max
        self._bytes_max = run_bytes_max
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._stretches: deque[tuple[Destinations, int]] = deque()
        """For whom how many in a row are, once something is not for everybody; else empty."""

    def __len__(self) -> int:
        return len(self._waiting)

    def accept(self, payloads: Sequence[bytes], to: Destinations = None) -> int:
        """Take these messages; returns the number of the first."""
        first = self.accepted
        if to is not None and not self._stretches and self._waiting:
            self._stretches.append((None, len(self._waiting)))
        if to is not None or self._stretches:
            same = self._stretches[-1][1] if self._stretches and self._stretches[-1][0] == to else 0
            if same:
                self._stretches.pop()
            self._stretches.append((to, same + len(payloads)))
        self.accepted += len(payloads)
        self._waiting.extend(payloads)
        self._bytes += sum(map(len, payloads))
        return first

    def is_full(self) -> bool:
        """Whether more than a whole run waits, so that whoever sends should wait too."""
        return len(self._waiting) > self._messages_max or self._bytes > self._bytes_max

    def take_run(self) -> tuple[list[bytes], Destinations]:
        """The longest run that may leave now, and for whom it is."""
        if not self._stretches:
            return self._take(len(self._waiting)), None
        to, count = self._stretches.popleft()
        payloads = self._take(count)
        if len(payloads) < count:
            self._stretches.appendleft((to, count - len(payloads)))
        return payloads, to

    def _take(self, most: int) -> list[bytes]:
        """The next messages, as many as fit a run and at most so many."""
        waiting = self._waiting
        if most == len(waiting) <= self._messages_max and self._bytes <= self._bytes_max:
            payloads = list(waiting)
            waiting.clear()
            self._bytes = 0
            return payloads
        payloads = [waiting.popleft() for _ in range(min(most, self._messages_max))]
        sizes = list(accumulate(map(len, payloads)))
        fit = max(1, bisect_right(sizes, self._bytes_max))
        self._bytes -= sizes[fit - 1]
        waiting.extendleft(reversed(payloads[fit:]))
        return payloads[:fit]

    def put_back(self, payloads: Sequence[bytes], to: Destinations = None) -> None:
        """There was no room for this run: it is first again."""
        if to is not None or self._stretches:
            if not self._stretches and self._waiting:
                self._stretches.append((None, len(self._waiting)))
            self._stretches.appendleft((to, len(payloads)))
        self._waiting.extendleft(reversed(payloads))
        self._bytes += sum(map(len, payloads))
