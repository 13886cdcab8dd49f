"""What a follower of a running group has found so far."""

from __future__ import annotations

import msgspec


class Wrong(msgspec.Struct, frozen=True):
    """The first violation of an order, by indices of processes and numbers of messages."""

    process: int
    origin: int
    seq: int
    missing: tuple[int, int] | None = None
    """The message that should have come before it."""
    kind: int = -1
    """Of a breach of integrity."""
    other: int = -1
    """The process by which it was due."""


class Tally(msgspec.Struct):
    count: int = 0
    first: Wrong | None = None

    def add(self, count: int, first: Wrong) -> None:
        self.count += count
        self.first = self.first or first


class Found(msgspec.Struct):
    """What was found so far."""

    messages: int = 0
    deliveries: int = 0
    integrity: Tally = msgspec.field(default_factory=Tally)
    agreement: Tally = msgspec.field(default_factory=Tally)
    fifo: Tally = msgspec.field(default_factory=Tally)
    causal: Tally = msgspec.field(default_factory=Tally)
    total: Tally = msgspec.field(default_factory=Tally)
