"""The axes of a chart: map values to coordinates, and place the ticks."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log10

from quire.report import formatting


class Scale:
    """Maps values to coordinates between `start` and `end`, linearly or logarithmically."""

    def __init__(
        self, values: Sequence[float], start: float, end: float, *, log: bool = False, from_zero: bool = False
    ) -> None:
        known = [value for value in values if not log or value > 0]
        low, high = min(known, default=0.0), max(known, default=1.0)
        if from_zero and not log:
            low, high = min(low, 0.0), max(high, 0.0)
        if low == high:
            low, high = (low / 2, high * 2) if log else (low - 0.5 * (not from_zero), high + 0.5)
        if low == high:
            low, high = (0.5, 2.0) if log else (0.0, 1.0)
        self.log = log
        self.low, self.high = low, high
        self._start, self._end = start, end

    def __call__(self, value: float) -> float:
        if self.log:
            value = max(value, self.low)
            share = (log10(value) - log10(self.low)) / (log10(self.high) - log10(self.low))
        else:
            share = (value - self.low) / (self.high - self.low)
        return round(self._start + share * (self._end - self._start), 2)

    def widen(self, ticks: int = 5) -> Scale:
        """The same scale, extended to the next ticks."""
        if self.log:
            self.low, self.high = self.low / 1.5, self.high * 1.3
        else:
            step = _step(self.high - self.low, ticks)
            self.low, self.high = floor(self.low / step + 1e-9) * step, ceil(self.high / step - 1e-9) * step
        return self

    def ticks(self, most: int = 5) -> list[tuple[float, str]]:
        """Round values within the scale, and how to write them."""
        if self.log:
            first, last = floor(log10(self.low)), ceil(log10(self.high))
            found = [10.0**power * digit for power in range(first, last + 1) for digit in (1, 2, 5)]
            found = [value for value in found if self.low * 0.999 <= value <= self.high * 1.001]
            if len(found) > most:
                found = [value for value in found if log10(value) == round(log10(value))]
            while len(found) > most:
                found = found[::2]
        else:
            step = _step(self.high - self.low, most)
            first = ceil(self.low / step - 1e-9)
            found = [(first + number) * step for number in range(floor(self.high / step + 1e-9) - first + 1)]
        return [(value, _short(value)) for value in found]


def _step(span: float, most: int) -> float:
    """A round step that fits about this many times."""
    rough = span / max(most, 1)
    power = 10.0 ** floor(log10(rough))
    return power * next(factor for factor in (1, 2, 5, 10) if rough <= factor * power * 1.0000001)


def _short(value: float) -> str:
    value = float(f"{value:.6g}")
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{formatting.number(value / (1e3 if letter == 'k' else size))}{letter}"
    return formatting.number(value)
