"""Functions that numba compiles: loops over millions of events that no array operation can express."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np

_F = TypeVar("_F", bound=Callable[..., Any])


def compiled(function: _F) -> _F:
    """Compile when first called, and keep the machine code (in NUMBA_CACHE_DIR, or beside the module) for next time."""
    try:
        return cast(_F, numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:
        # There is no folder in which the machine code could be kept: compile in every process.
        return cast(_F, numba.njit(nogil=True)(function))


def piece(function: _F) -> _F:
    """A piece of a compiled function, which must not make any array.

    Numba counts the references to arrays that are handed on, which would take longer than what most pieces do. Here it is
    told that there is nothing to count, so that a piece costs nothing and a long loop can be read.
    """
    options: dict[str, Any] = {"nogil": True, "_nrt": False}
    return cast(_F, numba.njit(**options)(function))


@piece
def first_not_below(numbers: np.ndarray, low: int, high: int, number: int) -> int:
    """Where `number` is, or would be, among those from `low` to before `high`, which are in order."""
    while low < high:
        middle = (low + high) >> 1
        if numbers[middle] < number:
            low = middle + 1
        else:
            high = middle
    return low
