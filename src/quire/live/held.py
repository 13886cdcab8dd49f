"""What waits at a member, as it says when it is asked."""

from __future__ import annotations

import msgspec


class Held(msgspec.Struct, frozen=True):
    """Messages that are held back here: `count` of `origin` from number `first` on, what for, from whom, since when."""

    origin: int | str
    first: int
    count: int
    waits_for: tuple[int | str, ...]
    because: str
    since_s: float
