"""Messages that are held back before delivery: which they are, which members they wait for, and why."""

from __future__ import annotations

import msgspec


class WaitingRun(msgspec.Struct, frozen=True):
    """`count` messages of the member `origin`, from number `first` of its session on, that are held back together."""

    origin: str
    first: int
    count: int
    waits_for: tuple[str, ...]
    because: str

    @property
    def key(self) -> tuple[str, int]:
        """Identifies these messages while they wait. It is made from their end, because the first of them may be delivered
        before the rest."""
        return self.origin, self.first + self.count
