"""Formats numbers and times for display."""

from __future__ import annotations

from math import floor, log10

_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))


def number(value: float) -> str:
    """With as many digits as mean something: 12,345 or 12.3 or 0.0012."""
    if value != value:
        return "–"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    digits = max(0, 2 - floor(log10(abs(value))))
    return f"{value:.{min(digits, 9)}f}".rstrip("0").rstrip(".")


def duration(nanoseconds: float) -> str:
    """12.3 ms."""
    if nanoseconds == 0:
        return "0"
    scale, unit = next((each for each in _UNITS if abs(nanoseconds) >= each[0]), _UNITS[-1])
    return f"{number(float(f'{nanoseconds / scale:.3g}'))} {unit}"


def unit_for(nanoseconds: float) -> tuple[float, str]:
    """The unit in which to give times up to this one: how many nanoseconds it has, and its name."""
    return next((each for each in _UNITS if nanoseconds >= 2 * each[0]), _UNITS[-1])


def count(value: int, noun: str) -> str:
    """1 message, 2 messages."""
    return f"{value:,} {noun}{'' if value == 1 else 's'}"
