"""Result types of the audit of a live run: the violations found so far."""

from __future__ import annotations

import msgspec


class Wrong(msgspec.Struct, frozen=True):
    """The first violation of a guarantee, given by process indices and message numbers."""

    process: int
    origin: int
    seq: int
    missing: tuple[int, int] | None = None
    """The message that should have been delivered before it."""
    kind: int = -1
    """For a violation of integrity: which of the kernel's kinds of breach it is."""
    other: int = -1
    """The other process involved: the one because of which the message was due, or the one that disagrees."""


class Tally(msgspec.Struct):
    count: int = 0
    first: Wrong | None = None

    def add(self, count: int, first: Wrong) -> None:
        self.count += count
        self.first = self.first or first


class Found(msgspec.Struct):
    """Counts of messages and deliveries, and a tally of violations for each guarantee."""

    messages: int = 0
    deliveries: int = 0
    integrity: Tally = msgspec.field(default_factory=Tally)
    agreement: Tally = msgspec.field(default_factory=Tally)
    fifo: Tally = msgspec.field(default_factory=Tally)
    causal: Tally = msgspec.field(default_factory=Tally)
    total: Tally = msgspec.field(default_factory=Tally)
