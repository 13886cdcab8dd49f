"""One key at one replica: strict timestamp ordering with prewrites, the rules of the corrected protocol.

A write is first a *prewrite*: it is kept next to the value until its transaction ends, and nobody else sees it. It is refused
where a younger transaction has read already. A read is refused where a younger transaction has written already, and waits for
prewrites of older ones, which may still become what it has to see. It never waits for younger ones and writes never wait, so
there are no deadlocks. A committed write that is older than the value is dropped: in timestamp order the value came after it
(Thomas's write rule).
"""

from __future__ import annotations

import msgspec

from quire.protocols.transactions.timestamps import UNWRITTEN, ZERO, Timestamp, Version

Value = bytes | None
"""None: the key does not exist. Writing it deletes the key; writing anything else creates it."""


class Prewrite(msgspec.Struct, frozen=True, array_like=True):
    version: Version
    value: Value


class Found(msgspec.Struct, frozen=True):
    """What a read sees."""

    version: Version
    value: Value


class TooLate(msgspec.Struct, frozen=True):
    """A younger transaction was first; one that starts above the hint comes after it."""

    hint: Timestamp


class Cell(msgspec.Struct, array_like=True):
    wts: Version = UNWRITTEN
    value: Value = None
    rts: Timestamp = ZERO
    """The youngest transaction that read here."""
    prewrites: dict[Timestamp, Prewrite] = {}

    def prewrite(self, t: Timestamp, version: Version, value: Value, floor: Timestamp = ZERO) -> TooLate | None:
        """Accept a write of t, or say that it comes too late. `floor`: everything below it counts as read.

        It is judged again whenever it is retransmitted: a prewrite that is already here may be one that a replica without
        its disk learnt from others, and never voted for.
        """
        read = max(self.rts, floor)
        if t < read:
            return TooLate(read)
        mine = self.prewrites.get(t)
        # A copy of an earlier write that comes late does not replace a later one.
        if mine is None or version > mine.version:
            self.prewrites[t] = Prewrite(version, value)
        return None

    def read(self, t: Timestamp) -> Found | TooLate | None:
        """What t sees, or None if it must wait for an older transaction to end."""
        mine = self.prewrites.get(t)
        if mine is not None:
            return Found(mine.version, mine.value)
        if self.wts.writer > t:
            return TooLate(self.wts.writer)
        if self.blocker(t) is not None:
            return None
        self.rts = max(self.rts, t)
        return Found(self.wts, self.value)

    def blocker(self, t: Timestamp) -> Timestamp | None:
        """The oldest transaction that t must wait for, if any. A prewrite below the value can never become one."""
        return min((other for other in self.prewrites if self.wts.writer < other < t), default=None)

    def install(self, version: Version, value: Value) -> bool:
        """Install a committed write, unless a younger one is here already."""
        if version <= self.wts:
            return False
        self.wts, self.value = version, value
        return True

    def end(self, t: Timestamp, *, commit: bool) -> Version | None:
        """The transaction has ended: its prewrite becomes the value, or is dropped. Returns the version that was installed."""
        mine = self.prewrites.pop(t, None)
        if mine is None or not commit or not self.install(mine.version, mine.value):
            return None
        return mine.version
