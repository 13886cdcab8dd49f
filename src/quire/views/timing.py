"""The timeouts of a process. Wrong values cost time, never order."""

from __future__ import annotations

import msgspec


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """All in seconds."""

    timeout_s: float = 1.0
    """How long another process may be silent before it is suspected."""
    beats: int = 4
    """How many heartbeats a process sends in that time."""
    hasty_s: float = 0.02
    """The first pause of the timer during a view change. The pauses grow from this to the interval between heartbeats."""
    founding_s: float = 2.0
    """How long a majority of the founders waits for the others."""
    stall_s: float = 10.0
    """How long a member that is not silent may hold up the others before it is suspected."""

    @property
    def beat_s(self) -> float:
        return self.timeout_s / self.beats
