"""Messages that are held back at a member, as `waiting` returns them."""

from __future__ import annotations

import msgspec


class Held(msgspec.Struct, frozen=True):
    """`count` messages of `origin`, from number `first` on, that are held back here: what they wait for, from whom, since
    when."""

    origin: int | str
    first: int
    count: int
    waits_for: tuple[int | str, ...]
    because: str
    since_s: float
