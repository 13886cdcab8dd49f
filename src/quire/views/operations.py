"""The operations that this process's application submitted, kept until they are executed.

They outlive views and, with a journal, the process.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import msgspec

from quire.model.payloads import Messages


class Submission(msgspec.Struct, frozen=True):
    """Operations that were submitted together; `first` is the number of the first one."""

    first: int
    messages: Messages

    @property
    def last(self) -> int:
        return self.first + len(self.messages.payloads) - 1

    def since(self, number: int) -> Messages:
        """The operations from this number on."""
        return self.messages if number <= self.first else self.messages.rest(number - self.first)


class Operations:
    """The operations of a session, numbered from 1. Each is executed once, in this order, however often it has to be sent.

    They are kept in the batches in which they were submitted, so that there is no cost per operation."""

    def __init__(self, session: str) -> None:
        self.session = session
        self.last = 0
        """The number of the last operation that was submitted."""
        self.settled = 0
        """The number of the last operation that is known to be executed."""
        self.released = 0
        """The number of the last operation that will never have to be sent again."""
        self._kept: deque[Submission] = deque()
        """The submissions that have operations after `released`, in order."""
        self._unsent: deque[Submission] = deque()
        """The submissions that have operations after `_sent`, in order."""
        self._durable = 0
        self._writes: deque[tuple[int, int]] = deque()
        """(record, number): once that record is durable, so are the operations up to this number."""
        self._sent = 0
        """The number of the last operation that was sent in the present view."""

    def submit(self, messages: Messages) -> int:
        """Returns the number of the first operation."""
        submission = Submission(self.last + 1, messages)
        self._kept.append(submission)
        self._unsent.append(submission)
        self.last = submission.last
        return submission.first

    def restore(self, dropped: int, payloads: Sequence[bytes], settled: int, released: int) -> None:
        """Restore from the journal: `payloads` are the operations after the first `dropped` ones, which are no longer kept."""
        self.last = self.released = self._sent = dropped
        if payloads:
            self.submit(Messages.of(payloads))
        self._durable = self.last
        self.settle(settled)
        self.release(released)

    def may_be_sent(self) -> None:
        """There is no journal: everything submitted may be sent at once."""
        self._durable = self.last

    def written(self, record: int) -> None:
        """Everything that was submitted so far is in the records of the journal up to this one."""
        self._writes.append((record, self.last))

    def synced(self, record: int) -> None:
        while self._writes and self._writes[0][0] <= record:
            self._durable = self._writes.popleft()[1]

    def settle(self, number: int) -> bool:
        """The operations up to this number are executed; returns whether that is news."""
        if number <= self.settled:
            return False
        self.settled = number
        # The process may have lost its memory: its session goes on after the operations that others know of.
        self.last = max(self.last, number)
        if number > self._sent:
            self._have_sent(number)
        return True

    def release(self, number: int) -> None:
        """Every later view has the operations up to this number, so they need not be kept."""
        self.released = max(self.released, number)
        _drop(self._kept, self.released)

    def rewind(self, number: int) -> None:
        """The state was replaced by one in which only the operations up to this number are executed."""
        self.settled = number

    def send_again(self) -> None:
        """A view has begun: everything that is not executed has to be sent again in it."""
        self._sent = self.settled
        self._unsent = self._kept.copy()
        _drop(self._unsent, self._sent)

    def is_sendable(self) -> bool:
        """Whether `next_batch` would return any operations."""
        return self._durable > self._sent and bool(self._unsent)

    def next_batch(self, most: int, size_most: int) -> tuple[int, Messages]:
        """The operations to send next, with the number of the first: at most `most` of them and `size_most` bytes, but at least
        one, unless none is ready. Submissions that fit are not split."""
        first, count, size = self._sent + 1, 0, 0
        most = min(most, self._durable - self._sent)
        found: list[Messages] = []
        for submission in self._unsent:
            messages = submission.since(first)
            count += len(messages.payloads)
            size += messages.size
            if count > most or size > size_most:
                return first, Messages.together(found) if found else messages.first(most, size_most)
            found.append(messages)
        return first, Messages.together(found)

    def sent(self, count: int) -> None:
        self._have_sent(self._sent + count)

    def _have_sent(self, number: int) -> None:
        self._sent = number
        _drop(self._unsent, number)

    def is_drained(self) -> bool:
        """Whether everything that was submitted has been sent in this view."""
        return self._sent == self.last

    def kept(self) -> tuple[bytes, ...]:
        """The operations after the released ones."""
        return tuple(payload for each in self._kept for payload in each.since(self.released + 1).payloads)

    def unsettled(self) -> int:
        return self.last - self.settled


def _drop(submissions: deque[Submission], number: int) -> None:
    """Drop the submissions that have no operation after this number."""
    while submissions and submissions[0].last <= number:
        submissions.popleft()
