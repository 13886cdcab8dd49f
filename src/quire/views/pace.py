"""When a member's timer runs: once per heartbeat, and more often during a view change, with exponential backoff."""

from __future__ import annotations

from quire.views.member import Member
from quire.views.timing import Timing

_TRIES = 8
"""How many times the timer runs without any change before the pauses grow."""
_DOUBLINGS_MAX = 16
"""How many times the pause is doubled at most."""


class Pace:
    def __init__(self, member: Member, timing: Timing) -> None:
        self.at = 0.0
        """When the timer has to run next."""
        self._member, self._timing = member, timing
        self._standing: object = None
        self._in_vain = 0

    def ticked(self, now: float) -> None:
        core = self._member.core
        standing = (core.mode, core.view.epoch, len(core.suspects))
        self._in_vain = self._in_vain + 1 if standing == self._standing else 0
        self._standing = standing
        self.at = now + self._pause_s()

    def hurry(self, now: float) -> None:
        """A packet came that may have begun a view change: the timer may have to run sooner."""
        self.at = min(self.at, now + self._pause_s())

    def _pause_s(self) -> float:
        core, timing = self._member.core, self._timing
        if core.mode not in ("normal", "frozen") or not self._member.has_cause():
            return timing.beat_s
        if core.view.epoch == 1:
            return timing.founding_s / core.settings.founding_patience
        return min(timing.beat_s, timing.hasty_s * 2.0 ** min(_DOUBLINGS_MAX, max(0, self._in_vain - _TRIES)))
