"""Messages that the application has multicast and that are not sent yet, batched into runs.

Messages that pile up while the member is busy are sent together: the last run grows until it is full, or until a message has
other recipients.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from itertools import accumulate
from typing import Generic, TypeVar

from quire.model.payloads import Messages

To = TypeVar("To")
"""The recipients of a message; None: all members."""


class UnsentRun(Generic[To]):
    """Messages that will be sent together."""

    __slots__ = ("bytes", "full", "lengths", "payloads", "to")

    def __init__(self, to: To | None, payloads: Sequence[bytes] = (), lengths: Sequence[int] = (), size: int = 0) -> None:
        self.to = to
        self.payloads = list(payloads)
        self.lengths = list(lengths)
        self.bytes = size
        self.full = False

    def add(self, payloads: Sequence[bytes], lengths: Sequence[int], size: int) -> None:
        self.payloads += payloads
        self.lengths += lengths
        self.bytes += size

    def fill(self, payloads: Sequence[bytes], lengths: Sequence[int], messages: int, room: int) -> tuple[int, int]:
        """Take as many of these messages as fit, by number and bytes, but at least one if the run is empty; returns how many it
        took, and their bytes."""
        sizes = list(accumulate(lengths[:messages]))
        fit = bisect_right(sizes, room) or int(not self.payloads)
        size = sizes[fit - 1] if fit else 0
        self.add(payloads[:fit], lengths[:fit], size)
        self.full = True
        return fit, size


class Outbox(Generic[To]):
    """Messages in the order in which they were accepted, counted from 0."""

    def __init__(self, run_messages_max: int, run_bytes_max: int) -> None:
        self.accepted = 0
        self.senders = 0
        """How many senders wait for room, or were woken and have not sent yet."""
        self._messages_max = run_messages_max
        self._bytes_max = run_bytes_max
        self._runs: deque[UnsentRun[To]] = deque()
        self._messages = 0
        self._bytes = 0
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return self._messages

    def accept(self, messages: Messages, to: To | None = None) -> int:
        """Take these messages; returns the number of the first."""
        first = self.accepted
        payloads, lengths, size = messages.payloads, messages.lengths, messages.size
        self.accepted += len(payloads)
        self._messages += len(payloads)
        self._bytes += size
        if payloads and not self._runs and len(payloads) <= self._messages_max and size <= self._bytes_max:
            self._runs.append(UnsentRun(to, payloads, lengths, size))
            return first
        while payloads:
            if not self._runs or self._runs[-1].full or self._runs[-1].to != to:
                self._runs.append(UnsentRun(to))
            run = self._runs[-1]
            most, room = self._messages_max - len(run.payloads), self._bytes_max - run.bytes
            if len(payloads) <= most and size <= room:
                run.add(payloads, lengths, size)
                break
            taken, taken_bytes = run.fill(payloads, lengths, most, room)
            payloads, lengths, size = payloads[taken:], lengths[taken:], size - taken_bytes
        return first

    def is_full(self) -> bool:
        """Whether more than a whole run waits, so that senders should wait too."""
        return self._messages > self._messages_max or self._bytes > self._bytes_max

    def may_wait(self) -> bool:
        """Whether the rest can be sent one turn of the event loop later: senders will have added to it by then, and a run costs
        the same however long it is."""
        return self.senders > 0 and not self.is_full()

    def next_run(self) -> tuple[int, int]:
        """The size of the run that is to be sent next, in messages and bytes."""
        run = self._runs[0]
        return len(run.payloads), run.bytes

    def take_run(self) -> UnsentRun[To]:
        """Take out the run that is to be sent next."""
        run = self._runs.popleft()
        self._messages -= len(run.payloads)
        self._bytes -= run.bytes
        return run

    def put_back(self, run: UnsentRun[To]) -> None:
        """There was no room for this run: put it back in front."""
        self._runs.appendleft(run)
        self._messages += len(run.payloads)
        self._bytes += run.bytes

    def wake(self) -> None:
        """Let the senders look again: there is room, or something else has happened."""
        self._changed.set()

    async def changed(self) -> None:
        self._changed.clear()
        self.senders += 1
        try:
            await self._changed.wait()
        finally:
            self.senders -= 1
