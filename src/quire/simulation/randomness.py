"""Seeded random numbers that are identical on every machine.

Each purpose has its own stream, so that changing the workload does not change what the network does. The streams use the seeded
Mersenne twister, whose uniform numbers are specified to the bit. The natural logarithm is computed here from exact steps and
basic arithmetic, because that of the C library may differ in the last bit between machines.
"""

from __future__ import annotations

from collections.abc import Callable
from math import frexp
from random import Random

Uniform = Callable[[], float]
"""Draws a number from 0 up to, but not including, 1."""

_LN2_HIGH = 0.6931471803691238  # Ends in zeros, so that its product with an exponent is exact.
_LN2_LOW = 1.9082149292705877e-10
_SQRT_HALF = 0.7071067811865476
_TERMS = tuple(1.0 / k for k in range(23, 0, -2))


def stream(seed: int, purpose: str) -> Random:
    """The stream of random numbers for one purpose."""
    return Random(f"{seed}/{purpose}")


def natural_log(x: float) -> float:
    """ln x for x > 0: x = m * 2**e with m near 1, and ln m from its series in (m-1)/(m+1)."""
    mantissa, exponent = frexp(x)
    if mantissa < _SQRT_HALF:
        mantissa, exponent = mantissa * 2.0, exponent - 1
    s = (mantissa - 1.0) / (mantissa + 1.0)
    square, total = s * s, 0.0
    for term in _TERMS:
        total = total * square + term
    return exponent * _LN2_HIGH + (exponent * _LN2_LOW + 2.0 * s * total)


def exponential_ns(mean_ns: int, uniform: Uniform) -> int:
    """A draw from the exponential distribution with this mean."""
    return int(-natural_log(1.0 - uniform()) * mean_ns)
