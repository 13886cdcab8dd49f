"""Converts the Arrow columns of a trace to NumPy arrays.

Arrow's own conversions import pandas, which takes half a second in every worker, so numbers are read from the buffers directly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from quire.trace.kinds import KINDS

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

KIND_CODES = {word: code for code, word in enumerate(KINDS)}

Chunks = list[np.ndarray]
"""The chunks of a column as they are in the file; they are copied only once, into the arrays of all processes."""


def join(arrays: Sequence[np.ndarray], kind: type) -> np.ndarray:
    """The chunks of a column as one array, without a copy if there is only one."""
    if len(arrays) == 1:
        return arrays[0].astype(kind, copy=False)
    return np.concatenate(arrays, dtype=kind) if arrays else np.empty(0, kind)


def array(chunk: Any, kind: type) -> np.ndarray:
    """The numbers of one chunk, without a copy; values at nulls are undefined."""
    if not len(chunk):
        return np.empty(0, kind)
    return np.frombuffer(chunk.buffers()[1], dtype=kind, count=chunk.offset + len(chunk))[chunk.offset :]


def valid(chunk: Any) -> Flags:
    """Which values of one chunk are not null."""
    bits = chunk.buffers()[0] if len(chunk) else None
    if bits is None:
        return np.ones(len(chunk), np.bool_)
    every = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little").astype(np.bool_)
    present: Flags = every[chunk.offset : chunk.offset + len(chunk)]
    return present


def values(column: Any, kind: type) -> Chunks:
    """The numbers of a column; values at nulls are undefined."""
    return [array(chunk, kind) for chunk in column.chunks]


def present(column: Any) -> Flags:
    """Which values of a column are not null."""
    return join([valid(chunk) for chunk in column.chunks], np.bool_)


def kinds(column: Any) -> npt.NDArray[np.int8]:
    """The codes of the events' kinds, independent of the file's own dictionary codes. All kinds must be known ones."""
    codes = []
    for chunk in column.chunks:
        indices = array(chunk.indices, np.int8)
        table = np.array([KIND_CODES[word] for word in chunk.dictionary.to_pylist()], dtype=np.int8)
        codes.append(indices if (table == np.arange(len(table))).all() else table[indices])
    return join(codes, np.int8)


def numbers(table: pa.Table, name: str) -> tuple[Integers, Flags]:
    """The values of a number column (0 for null), and which of them are not null."""
    column = table[name]
    known = present(column)
    kind = np.int32 if column.type == pa.int32() else np.int64
    found = join(values(column, kind), np.int64)
    return (found if known.all() else np.where(known, found, 0)), known


def flags(table: pa.Table, name: str) -> Flags:
    """The values of a boolean column; null is false."""
    column: Any = table[name]
    found: Flags = np.asarray(column.fill_null(False))
    return found


def destinations(column: Any, chosen: Flags) -> tuple[Chunks, Chunks]:
    """The number of destinations of each chosen event (-1: not recorded), and all destinations concatenated."""
    counts, found = [], []
    start = 0
    for chunk in column.chunks:
        wanted = chosen[start : start + len(chunk)]
        start += len(chunk)
        if not len(chunk):
            continue
        offsets = array(chunk.offsets, np.int32)
        own = np.diff(offsets)[wanted]
        dests = array(chunk.values, np.int32)[offsets[0] : offsets[-1]]
        if not own.all() or own.sum() != len(dests):
            # Rare: a send without destinations, or destinations on other events, which are ignored.
            kept = chunk.filter(pa.array(wanted))
            own = np.where(np.asarray(kept.is_null()), -1, np.asarray(pc.list_value_length(kept).fill_null(-1)))
            dests = np.asarray(kept.drop_null().flatten())
        counts.append(own)
        found.append(dests)
    return counts, found
