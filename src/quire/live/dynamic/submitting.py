"""The operations that a member's application has submitted: those not yet passed to the process, and those not executed."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence

from quire.live.dynamic.events import ViewMessage
from quire.live.groups.awaited import Awaited
from quire.live.outbox import Outbox
from quire.model.payloads import Messages

UNSETTLED_MESSAGES_MAX = 1 << 16
UNSETTLED_BYTES_MAX = 16 << 20
"""How many bytes of a member's own operations may be unexecuted before senders have to wait."""


class Submitting:
    """Operations of this process's session, numbered from 1."""

    def __init__(self, run_messages_max: int, run_bytes_max: int) -> None:
        self.accepted = 0
        """The number of the last operation that was accepted."""
        self.settled = 0
        """The number of the last operation that is executed."""
        self.awaited: Awaited[None] = Awaited()
        self._pending: Outbox[None] = Outbox(run_messages_max, run_bytes_max)
        self._sizes: deque[tuple[int, int]] = deque()
        """(number, bytes): for operations that were accepted together, the number of the last one, and their size."""
        self._bytes = 0
        self._changed = asyncio.Event()

    def begin(self, last: int, settled: int) -> None:
        """Continue after the operations in the journal."""
        self.accepted, self.settled = last, settled

    def accept(self, messages: Messages) -> int:
        """Accept operations; returns the number of the first."""
        first = self.accepted + 1
        self.accepted += len(messages.payloads)
        self._pending.accept(messages)
        self._bytes += messages.size
        self._sizes.append((self.accepted, messages.size))
        return first

    def take(self) -> Iterator[Messages]:
        """Take out the operations to pass to the process now, in runs that can be sent as they are."""
        while len(self._pending):
            run = self._pending.take_run()
            yield Messages(run.payloads, run.lengths, run.bytes)

    def has_pending(self) -> bool:
        return len(self._pending) > 0

    def is_full(self) -> bool:
        return self.accepted - self.settled > UNSETTLED_MESSAGES_MAX or self._bytes > UNSETTLED_BYTES_MAX

    def is_drained(self) -> bool:
        return self.settled >= self.accepted

    def settle(self, number: int) -> None:
        """The operations up to this number are executed."""
        self.settled = max(self.settled, number)
        while self._sizes and self._sizes[0][0] <= number:
            self._bytes -= self._sizes.popleft()[1]
        self.wake()

    def delivered(self, first: int, messages: Sequence[ViewMessage]) -> None:
        """Own messages were delivered here, the first of which has this number."""
        for number, message in enumerate(messages, first):
            if (found := self.awaited.take(number)) is not None:
                found[0].set_result(message)

    def wake(self) -> None:
        """Wake the senders that wait, to check again."""
        self._changed.set()

    async def changed(self) -> None:
        self._changed.clear()
        await self._changed.wait()
