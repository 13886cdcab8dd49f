"""A time series in bounded memory: every sample for some minutes, and for a day the largest sample of each minute."""

from __future__ import annotations

from collections import deque

FINE = 600
COARSE = 24 * 60
MINUTE_S = 60.0


class Series:
    """Points are (seconds, value), ordered by time."""

    def __init__(self) -> None:
        self.fine: deque[tuple[float, float]] = deque(maxlen=FINE)
        self.coarse: deque[tuple[float, float]] = deque(maxlen=COARSE)

    def add(self, at_s: float, value: float) -> None:
        self.fine.append((at_s, value))
        minute = at_s - at_s % MINUTE_S
        if self.coarse and self.coarse[-1][0] == minute:
            self.coarse[-1] = minute, max(self.coarse[-1][1], value)
        else:
            self.coarse.append((minute, value))

    @property
    def last(self) -> float | None:
        return self.fine[-1][1] if self.fine else None
