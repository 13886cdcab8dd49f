"""What the application of this process submitted, until it is executed. It outlives views and, with a journal, the process."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import msgspec

from quire.model.payloads import Messages


class Submission(msgspec.Struct, frozen=True):
    """Operations that were submitted together, the first of which has this number."""

    first: int
    messages: Messages

    @property
    def last(self) -> int:
        return self.first + len(self.messages.payloads) - 1

    def since(self, number: int) -> Messages:
        """Those from this number on."""
        return self.messages if number <= self.first else self.messages.rest(number - self.first)


class Operations:
    """The operations of a session, numbered from 1. Each is executed once, in this order, however often it has to be sent.

    They are kept as they were submitted, many together, so that one operation costs nothing by itself."""

    def __init__(self, session: str) -> None:
        self.session = session
        self.last = 0
        """The number of the last one that was submitted."""
        self.settled = 0
        """The number of the last one that is known to be executed."""
        self.released = 0
        """The number of the last one that will never have to be sent again."""
        self._kept: deque[Submission] = deque()
        """Those with any after `released`, in order."""
        self._unsent: deque[Submission] = deque()
        """Those with any after `_sent`, in order."""
        self._durable = 0
        self._writes: deque[tuple[int, int]] = deque()
        """(record, number): once that record is durable, so are the operations up to this number."""
        self._sent = 0
        """The number of the last one that was sent in the present view."""

    def submit(self, messages: Messages) -> int:
        """Returns the number of the first."""
        submission = Submission(self.last + 1, messages)
        self._kept.append(submission)
        self._unsent.append(submission)
        self.last = submission.last
        return submission.first

    def restore(self, dropped: int, payloads: Sequence[bytes], settled: int, released: int) -> None:
        """What the journal says was submitted after so many that are not known any more, and what of all is executed."""
        self.last = self.released = self._sent = dropped
        if payloads:
            self.submit(Messages.of(payloads))
        self._durable = self.last
        self.settle(settled)
        self.release(released)

    def may_be_sent(self) -> None:
        """There is no journal to wait for."""
        self._durable = self.last

    def written(self, record: int) -> None:
        """Everything that was submitted so far is in the journal up to this record."""
        self._writes.append((record, self.last))

    def synced(self, record: int) -> None:
        while self._writes and self._writes[0][0] <= record:
            self._durable = self._writes.popleft()[1]

    def settle(self, number: int) -> bool:
        """Those up to this number are executed; whether that is news."""
        if number <= self.settled:
            return False
        self.settled = number
        # A session whose process lost its memory goes on after what others know of it.
        self.last = max(self.last, number)
        if number > self._sent:
            self._have_sent(number)
        return True

    def release(self, number: int) -> None:
        """No later view can be without those up to this number."""
        self.released = max(self.released, number)
        _drop(self._kept, self.released)

    def rewind(self, number: int) -> None:
        """The state was replaced by one in which only those up to this number are executed."""
        self.settled = number

    def send_again(self) -> None:
        """A view has begun, in which nothing was sent yet."""
        self._sent = self.settled
        self._unsent = self._kept.copy()
        _drop(self._unsent, self._sent)

    def is_sendable(self) -> bool:
        """Whether `next_batch` would find any."""
        return self._durable > self._sent and bool(self._unsent)

    def next_batch(self, most: int, size_most: int) -> tuple[int, Messages]:
        """The operations to be sent next, with the number of the first: so many of them and so many bytes at most, but one in
        any case; none where none is ready. Where what was submitted together fits, it is not touched."""
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
        """Those after the released ones."""
        return tuple(payload for each in self._kept for payload in each.since(self.released + 1).payloads)

    def unsettled(self) -> int:
        return self.last - self.settled


def _drop(submissions: deque[Submission], number: int) -> None:
    """Drop those that have none after this number."""
    while submissions and submissions[0].last <= number:
        submissions.popleft()
