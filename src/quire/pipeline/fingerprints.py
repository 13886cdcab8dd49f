"""Fingerprints of names: 128 bits each, so that names are compared and joined as numbers, without their texts.

A log must not be able to make two different names look the same. So the hash is strongly universal (Lemire and Kaser,
Strongly universal string hashing is fast, 2014): the words of a name are multiplied by random numbers, which are new for
each import and each stream. Then whatever the names are, two different ones have the same fingerprint with probability
2**-128.
"""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np

from quire.pipeline.compiled import compiled
from quire.pipeline.hashing import bytes_of

_HEADER = 3
"""The words before those of the text: a constant, the length of the text and the execution."""

_ONE, _TWO, _THREE = np.uint64(1), np.uint64(2), np.uint64(3)


def new_secret() -> int:
    """What the random numbers of an import or of a stream are derived from. All its tasks need the same."""
    return secrets.randbits(63)


def fingerprints(texts: Any, execution: np.ndarray, secret: int) -> np.ndarray:
    """The fingerprints of an Arrow column of texts, in two columns. Equal texts in different executions differ."""
    letters, offsets = bytes_of(texts)
    longest = int(np.diff(offsets).max(initial=0))
    # A longer table begins like a shorter one.
    factors = np.random.Generator(np.random.PCG64(secret)).integers(
        np.iinfo(np.int64).min, np.iinfo(np.int64).max, size=(_HEADER + longest // 4 + 1, 4), dtype=np.int64
    )
    with np.errstate(over="ignore"):  # Products are meant modulo 2**64; only code that is not compiled would warn of it.
        found: np.ndarray = _fingerprints(letters, offsets, execution, factors)
    return found


@compiled
def _fingerprints(letters: np.ndarray, offsets: np.ndarray, execution: np.ndarray, factors: np.ndarray) -> np.ndarray:
    found = np.empty((len(offsets) - 1, 2), np.int64)
    for row in range(len(found)):
        at, end = np.int64(offsets[row]), np.int64(offsets[row + 1])
        length, number = end - at, np.int64(execution[row])
        one = factors[0, 0] + factors[1, 0] * length + factors[2, 0] * number
        two = factors[0, 1] + factors[1, 1] * length + factors[2, 1] * number
        three = factors[0, 2] + factors[1, 2] * length + factors[2, 2] * number
        four = factors[0, 3] + factors[1, 3] * length + factors[2, 3] * number
        step = _HEADER
        while at < end:
            here = np.uint64(at)
            word = np.int64(letters[here])
            if end - at >= 4:
                word |= np.int64(letters[here + _ONE]) << 8
                word |= np.int64(letters[here + _TWO]) << 16 | np.int64(letters[here + _THREE]) << 24
            else:
                for more in range(1, end - at):
                    word |= np.int64(letters[at + more]) << (8 * more)
            one += factors[step, 0] * word
            two += factors[step, 1] * word
            three += factors[step, 2] * word
            four += factors[step, 3] * word
            step += 1
            at += 4
        found[row, 0] = (one >> 32 << 32) | ((two >> 32) & 0xFFFFFFFF)
        found[row, 1] = (three >> 32 << 32) | ((four >> 32) & 0xFFFFFFFF)
    return found


@compiled
def number_alike(high: np.ndarray, low: np.ndarray) -> np.ndarray:
    """Number the different fingerprints in order of first occurrence."""
    size = 16
    while size < 2 * len(high):
        size *= 2
    slots, numbers, known = np.full(size, -1, np.int64), np.empty(len(high), np.int64), 0
    for row in range(len(high)):
        slot = high[row] & (size - 1)
        while slots[slot] >= 0 and (high[slots[slot]] != high[row] or low[slots[slot]] != low[row]):
            slot = (slot + 1) & (size - 1)
        if slots[slot] < 0:
            slots[slot] = row
            numbers[row] = known
            known += 1
        else:
            numbers[row] = numbers[slots[slot]]
    return numbers
