"""The operations that a member's application has submitted: those not yet passed to the process, and those not executed."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence

from quire.live.dynamic.events import ViewMessage
from quire.live.groups.awaited import Awaited
from quire.live.outbox import Outbox
from quire.model.errors import OutcomeUnknown
from quire.model.payloads import Messages

UNSETTLED_MESSAGES_MAX = 1 << 16
UNSETTLED_BYTES_MAX = 16 << 20
"""How many bytes of a member's own operations may be unexecuted before senders have to wait."""
SINGLES_MAX = 1 << 12
"""After so many calls with one message each, others get a turn."""
SINGLE_BYTES_MAX = 1 << 12
"""Longer messages are always checked one by one, so that what was not checked yet is never much."""
NO_SINGLES = -1
"""No message is so short."""


def untold() -> OutcomeUnknown:
    return OutcomeUnknown("it was executed, but its result arrived only as part of the group's state")


class Submitting:
    """Operations of this process's session, numbered from 1."""

    def __init__(self, run_messages_max: int, run_bytes_max: int, message_bytes_max: int) -> None:
        self.accepted = 0
        """The number of the last operation that was accepted."""
        self.settled = 0
        """The number of the last operation that is executed."""
        self.awaited: Awaited[None] = Awaited()
        self.single_bytes_max = min(SINGLE_BYTES_MAX, message_bytes_max)
        self.room = 0
        """How many short messages `accept_one` may take before anything has to be checked again."""
        self._singles: list[bytes] = []
        """What it has taken, newer than what is pending."""
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
        self._gather()
        first = self.accepted + 1
        self.accepted += len(messages.payloads)
        self._add(messages)
        return first

    def accept_one(self, payload: bytes) -> int:
        """Accept one more operation where there is room; returns its number."""
        self.room -= 1
        self._singles.append(payload)
        self.accepted += 1
        return self.accepted

    def make_room(self) -> None:
        """Until the end of this turn, short messages can be taken without more ado."""
        self.room = 0 if self.is_full() else SINGLES_MAX - len(self._singles)

    def end_turn(self) -> None:
        """Whether there is room has to be checked again."""
        self.room = 0
        self._gather()

    def end(self, why: Exception) -> None:
        """Nothing more is sent, and it is not known what becomes of the messages that are awaited."""
        self.end_turn()
        self.awaited.fail(why)
        self.wake()

    async def others_turn(self) -> None:
        """A sender that never waits must not keep others from running."""
        if len(self._singles) >= SINGLES_MAX:
            await asyncio.sleep(0)

    def _gather(self) -> None:
        if self._singles:
            singles, self._singles = self._singles, []
            self._add(Messages.of(singles))

    def _add(self, messages: Messages) -> None:
        """These are the last of what was accepted."""
        self._pending.accept(messages)
        self._bytes += messages.size
        self._sizes.append((self.accepted, messages.size))

    def take(self) -> Iterator[Messages]:
        """Take out the operations to pass to the process now, in runs that can be sent as they are."""
        while len(self._pending):
            run = self._pending.take_run()
            yield Messages(run.payloads, run.lengths, run.bytes)

    def has_pending(self) -> bool:
        return len(self._pending) > 0 or len(self._singles) > 0

    def is_full(self) -> bool:
        return self.accepted - self.settled > UNSETTLED_MESSAGES_MAX or self._bytes > UNSETTLED_BYTES_MAX

    def is_drained(self) -> bool:
        return self.settled >= self.accepted

    def settle(self, number: int) -> None:
        """The operations up to this number are executed; what was not delivered here by now never will be."""
        if self.awaited.are_before(number + 1):
            self.awaited.fail(untold(), number)
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
