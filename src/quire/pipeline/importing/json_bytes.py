"""Helpers for compiled loops over JSON bytes: number names in order of first occurrence, and skip white space."""

from __future__ import annotations

import numpy as np

from quire.pipeline.compiled import piece
from quire.pipeline.hashing import mix_in

NAMES_MAX = 1 << 14
"""The most distinct names in one piece; an import has fewer hosts than this."""
SLOTS = 4 * NAMES_MAX


@piece
def number_name(
    data: np.ndarray, begin: int, end: int, slots: np.ndarray, names: np.ndarray, known: int
) -> int:  # fmt: skip
    """The number of a name; `known` for a new one, which is recorded if there is room."""
    mixed = 0
    for at in range(begin, end):
        mixed = mix_in(mixed, data[at])
    slot = mixed % SLOTS
    while slots[slot] >= 0:
        one = int(slots[slot])
        first, length = names[one, 0], names[one, 1] - names[one, 0]
        if length == end - begin:
            same = 0
            while same < length and data[first + same] == data[begin + same]:
                same += 1
            if same == length:
                return one
        slot = (slot + 1) % SLOTS
    if known < NAMES_MAX:
        slots[slot] = known
        names[known, 0], names[known, 1] = begin, end
    return known


@piece
def skip_space(data: np.ndarray, at: int, end: int) -> int:
    while at < end and (data[at] == 32 or data[at] == 9 or data[at] == 10 or data[at] == 13):
        at += 1
    return at
