"""Latency statistics of messages, used by the table of a run, by its report and by sweeps.

Durations are rounded to four digits, so that a trace of any length has at most some ten thousand distinct ones. The maximum and
the mean are exact.
"""

from __future__ import annotations

from array import array

import msgspec
import numpy as np

from quire.trace.tables import Integers

NANOSECONDS_PER_MS = 1_000_000

_DIGITS = 4
_POWERS = 10 ** np.arange(19, dtype=np.int64)


class Latency(msgspec.Struct, frozen=True):
    """A summary of latencies, in milliseconds."""

    p50: float
    p99: float
    max: float
    mean: float


class Latencies:
    """A histogram of durations in nanoseconds."""

    def __init__(self) -> None:
        self.values: Integers = np.empty(0, np.int64)
        """The durations, ascending."""
        self.counts: Integers = np.empty(0, np.int64)
        self._longest = 0
        self._sum = 0

    def __bool__(self) -> bool:
        return bool(len(self.values))

    def add(self, durations: Integers, counts: Integers | None = None) -> None:
        """Add each of the durations once, or `counts` times."""
        if not len(durations):
            return
        often = np.ones(len(durations), np.int64) if counts is None else counts
        self._longest = max(self._longest, int(durations.max()))
        self._sum += _dot(durations, often)
        self.values, index = np.unique(np.concatenate((self.values, _rounded(durations))), return_inverse=True)
        weights = np.concatenate((self.counts, often))
        self.counts = np.zeros(len(self.values), np.int64)
        np.add.at(self.counts, index, weights)

    def drain(self, durations: array[int]) -> None:
        """Add all of the durations, and empty the array."""
        self.add(np.array(durations, dtype=np.int64))
        del durations[:]

    def total(self) -> int:
        return int(self.counts.sum())

    def quantile(self, hundredths: int) -> int:
        """The smallest duration that at least this percentage of all durations do not exceed."""
        reached = np.cumsum(self.counts)
        rank = -(-int(reached[-1]) * hundredths // 100)
        return min(int(self.values[np.searchsorted(reached, rank)]), self._longest)

    def longest(self) -> int:
        return self._longest

    def mean(self) -> float:
        return self._sum / self.total()

    def summary(self) -> Latency | None:
        """None if nothing was measured."""
        if not self:
            return None
        p50, p99, longest, mean = self.quantile(50), self.quantile(99), self.longest(), self.mean()
        return Latency(*(duration / NANOSECONDS_PER_MS for duration in (p50, p99, longest, mean)))


def _dot(durations: Integers, often: Integers) -> int:
    if float(durations.max()) * float(often.sum()) < 2.0**62:
        return int(np.dot(durations, often))
    return sum((durations.astype(object) * often.astype(object)).tolist())  # In Python's integers, which do not overflow.


def _rounded(durations: Integers) -> Integers:
    digits = np.searchsorted(_POWERS, durations, side="right")
    step = _POWERS[np.maximum(digits - _DIGITS, 0)]
    return (durations + step // 2) // step * step
