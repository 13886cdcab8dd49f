"""Columns of a trace as plain arrays.

Arrow's own conversions would import pandas, half a second for every worker, so numbers are taken from the buffers.
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
"""A column as the file has it, in pieces: they are copied once, into the arrays of all processes."""


def join(arrays: Sequence[np.ndarray], kind: type) -> np.ndarray:
    """The pieces of a column in one array, without a copy where there is only one."""
    if len(arrays) == 1:
        return arrays[0].astype(kind, copy=False)
    return np.concatenate(arrays, dtype=kind) if arrays else np.empty(0, kind)


def array(chunk: Any, kind: type) -> np.ndarray:
    """The numbers of one piece, without a copy; where it has nulls, anything."""
    if not len(chunk):
        return np.empty(0, kind)
    return np.frombuffer(chunk.buffers()[1], dtype=kind, count=chunk.offset + len(chunk))[chunk.offset :]


def valid(chunk: Any) -> Flags:
    """Which values of one piece are not null."""
    bits = chunk.buffers()[0] if len(chunk) else None
    if bits is None:
        return np.ones(len(chunk), np.bool_)
    every = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little").astype(np.bool_)
    present: Flags = every[chunk.offset : chunk.offset + len(chunk)]
    return present


def values(column: Any, kind: type) -> Chunks:
    """The numbers of a column; where it has nulls, anything."""
    return [array(chunk, kind) for chunk in column.chunks]


def present(column: Any) -> Flags:
    """Which values of a column are not null."""
    return join([valid(chunk) for chunk in column.chunks], np.bool_)


def kinds(column: Any) -> npt.NDArray[np.int8]:
    """The events' codes, whatever numbers the file's own dictionaries give the words, all of which are known."""
    codes = []
    for chunk in column.chunks:
        indices = array(chunk.indices, np.int8)
        table = np.array([KIND_CODES[word] for word in chunk.dictionary.to_pylist()], dtype=np.int8)
        codes.append(indices if (table == np.arange(len(table))).all() else table[indices])
    return join(codes, np.int8)


def numbers(table: pa.Table, name: str) -> tuple[Integers, Flags]:
    """The values of a column of numbers, 0 where it has none, and where it has some."""
    column = table[name]
    known = present(column)
    kind = np.int32 if column.type == pa.int32() else np.int64
    found = join(values(column, kind), np.int64)
    return (found if known.all() else np.where(known, found, 0)), known


def flags(table: pa.Table, name: str) -> Flags:
    """The values of a column of true and false; false where it has none."""
    column: Any = table[name]
    found: Flags = np.asarray(column.fill_null(False))
    return found


def destinations(column: Any, chosen: Flags) -> tuple[Chunks, Chunks]:
    """How many destinations each of the chosen events has (-1: not recorded), and all of them end to end."""
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
            # Rare: a send without destinations, or destinations on other events, which say nothing.
            kept = chunk.filter(pa.array(wanted))
            own = np.where(np.asarray(kept.is_null()), -1, np.asarray(pc.list_value_length(kept).fill_null(-1)))
            dests = np.asarray(kept.drop_null().flatten())
        counts.append(own)
        found.append(dests)
    return counts, found
