"""Decorators for functions that numba compiles: loops over millions of events that array operations cannot express."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np

_F = TypeVar("_F", bound=Callable[..., Any])


def compiled(function: _F) -> _F:
    """Compile on the first call, and cache the machine code (in NUMBA_CACHE_DIR, or beside the module)."""
    try:
        return cast(_F, numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:
        # There is no writable directory for the cache: compile in every process.
        return cast(_F, numba.njit(nogil=True)(function))


def piece(function: _F) -> _F:
    """Mark a function that is part of a compiled function and creates no arrays.

    Numba counts references to the arrays that are passed on, which would take longer than the work of most of these functions.
    Here reference counting is turned off, so that splitting a long loop into readable functions costs nothing.
    """
    options: dict[str, Any] = {"nogil": True, "_nrt": False}
    return cast(_F, numba.njit(**options)(function))


@piece
def first_not_below(numbers: np.ndarray, low: int, high: int, number: int) -> int:
    """Binary search: the index of `number`, or where it would be, in the sorted range from `low` to before `high`."""
    while low < high:
        middle = (low + high) >> 1
        if numbers[middle] < number:
            low = middle + 1
        else:
            high = middle
    return low
