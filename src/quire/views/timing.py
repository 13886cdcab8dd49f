"""How long a process waits for what. Wrong values cost time, and never order."""

from __future__ import annotations

import msgspec


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """All in seconds."""

    timeout_s: float = 1.0
    """How long another process may be silent before it is suspected."""
    beats: int = 4
    """How many signs of life a process gives in that time."""
    hasty_s: float = 0.02
    """How soon a ballot that came to nothing is looked at again; the pauses grow from there to that between two signs of
    life."""
    founding_s: float = 2.0
    """How long a majority of the founders waits for the others."""
    stall_s: float = 10.0
    """How long a member may hold everybody up before it is suspected, though it is not silent."""

    @property
    def beat_s(self) -> float:
        return self.timeout_s / self.beats
