"""What waits to be delivered, for whoever asks why."""

from __future__ import annotations

import msgspec


class Hindrance(msgspec.Struct, frozen=True):
    """Messages that are held back: `count` of a member, from number `first` of its session on, whom they wait for, and why."""

    origin: str
    first: int
    count: int
    waits_for: tuple[str, ...]
    because: str

    @property
    def key(self) -> tuple[str, int]:
        """The same while it waits: of what waits together, the beginning may be delivered before the rest."""
        return self.origin, self.first + self.count
