"""Packed records as NumPy tables of integers, for reading in bulk; `records` defines the columns."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from quire.trace.records import RECORD_FIELDS

Integers = npt.NDArray[np.int64]


def as_records(data: bytes) -> Integers:
    """Packed records as a table with one record per row."""
    return np.frombuffer(data, np.int64).reshape(-1, RECORD_FIELDS)
