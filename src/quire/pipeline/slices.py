"""Reading a slice of every process's log into plain arrays, only the columns and row groups that are needed.

Rows come out process by process in local order. What is not a trace of this run, or is damaged, is refused here in
one sentence that names the file, because only the task that reads a page can find out that it is broken.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from quire.model.errors import BadInput
from quire.pipeline.layout import RowGroup, World
from quire.trace.schema import DELIVER, KINDS, SEND, VIEW

_CODES = {word: code for code, word in enumerate(KINDS)}


class Events(msgspec.Struct):
    """Sends and deliveries, or every event where that was asked for. Those of process p are at `start[p]` to `start[p + 1]`."""

    start: np.ndarray
    kind: np.ndarray
    origin: np.ndarray
    seq: np.ndarray
    lamport: np.ndarray
    pos: np.ndarray
    """Empty unless it was asked for, as is the logical time where only deliveries count."""
    dest_count: np.ndarray
    """For each send, in order: how many destinations, -1 where they are not recorded."""
    dests: np.ndarray
    ordered: bool
    """Whether the logical times of every process were there and ascended."""
    time_ns: np.ndarray
    """Empty unless it was asked for; 0 where it is not recorded."""
    views: bool
    """Whether there are views among the events read, or among those left out."""


_Chunks = list[np.ndarray]
"""A column as the file has it, in pieces: they are copied once, into the arrays of all processes."""


class _Part(msgspec.Struct):
    """One file's share of `Events`."""

    rows: int
    ordered: bool
    kind: _Chunks
    origin: _Chunks
    seq: _Chunks
    lamport: _Chunks
    pos: _Chunks
    dest_count: _Chunks
    dests: _Chunks
    time_ns: _Chunks
    views: bool


def read_events(
    world: World, groups: Sequence[RowGroup], low: int | None = None, high: int | None = None,
    *, times: bool = True, dests: bool = True, pos: bool = False, every: bool = False, clock: bool = False,
) -> Events:  # fmt: skip
    """The events with `low` <= logical time < `high` in these row groups (all of them where there is no bound).

    Only sends and deliveries, unless `every` event is wanted; with what the wall `clock` said, if that is.
    """
    columns = ["run", "kind", "origin", "seq"] + ["lamport", "pos"] * times + ["dests"] * dests + ["time_ns"] * clock
    parts: list[_Part] = []
    sizes = [0] * world.members
    ordered = True
    for process, own in groupby(groups, key=lambda group: group.process):
        last = None
        for path, in_file in groupby(own, key=lambda group: group.path):
            part = _read_part(world, path, list(in_file), low, high, columns, every)
            ordered = ordered and part.ordered
            if part.ordered and part.rows and times:
                ordered = ordered and (last is None or last < part.lamport[0][0])
                last = part.lamport[0][-1]
            parts.append(part)
            sizes[process] += part.rows
    return Events(
        np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
        _gather([chunk for part in parts for chunk in part.kind], np.int8),
        _gather([chunk for part in parts for chunk in part.origin], np.int32),
        _gather([chunk for part in parts for chunk in part.seq], np.int64),
        _gather([chunk for part in parts for chunk in part.lamport], np.int64),
        _gather([chunk for part in parts for chunk in part.pos] if pos else [], np.int64),
        _gather([chunk for part in parts for chunk in part.dest_count], np.int32),
        _gather([chunk for part in parts for chunk in part.dests], np.int32),
        ordered,
        _gather([chunk for part in parts for chunk in part.time_ns], np.int64),
        any(part.views for part in parts),
    )


def _gather(chunks: Sequence[np.ndarray], kind: type) -> np.ndarray:
    """The pieces in one writable array: the kernels would be compiled once more for any other kind of array."""
    return np.concatenate([np.empty(0, kind), *chunks], dtype=kind)


def join(arrays: Sequence[np.ndarray], kind: type) -> np.ndarray:
    """The pieces of a column in one array, without a copy where there is only one."""
    if len(arrays) == 1:
        return arrays[0].astype(kind, copy=False)
    return np.concatenate(arrays, dtype=kind) if arrays else np.empty(0, kind)


def _read_part(
    world: World, path: str, groups: Sequence[RowGroup], low: int | None, high: int | None, columns: list[str], every: bool
) -> _Part:  # fmt: skip
    """The wanted rows of one file."""
    try:
        with pq.ParquetFile(path) as file:
            table = file.read_row_groups([group.index for group in groups], columns=columns, use_threads=False)
        table.validate()
        return _to_part(world, path, groups, table, low, high, every)
    except (OSError, pa.ArrowException, MemoryError) as error:
        raise BadInput(f"{path} cannot be read: {str(error).splitlines()[0] or type(error).__name__}") from error


def _to_part(
    world: World, path: str, groups: Sequence[RowGroup], table: pa.Table, low: int | None, high: int | None, every: bool
) -> _Part:  # fmt: skip
    if table.num_rows != sum(group.rows for group in groups):
        raise BadInput(f"{path} changed while it was read")
    _check_run(world, path, table["run"])
    lamport, pos, ordered = _times(path, groups, table) if "lamport" in table.column_names else ([], [], True)
    if ordered and (low is not None or high is not None):
        first = 0 if low is None else int(np.searchsorted(lamport[0], low))
        end = table.num_rows if high is None else int(np.searchsorted(lamport[0], high))
        table, lamport, pos = table.slice(first, end - first), [lamport[0][first:end]], [pos[0][first:end]]
    kind = _kinds(path, table["kind"])
    is_send = kind == SEND
    dest_count, dests = _destinations(table["dests"], is_send) if "dests" in table.column_names else ([], [])
    origin, seq = _values(table["origin"], np.int32), _values(table["seq"], np.int64)
    time_ns = _or_zero(table["time_ns"]) if "time_ns" in table.column_names else []
    is_message = kind <= DELIVER
    for name in ("origin", "seq"):
        if table[name].null_count and not _valid(table[name])[is_message].all():
            raise BadInput(f"{path} has a send or a delivery without {name}")
    views = not is_message.all() and bool((kind == VIEW).any())
    if not every and not is_message.all():
        for chunks in (lamport, pos, time_ns):
            chunks[:] = [chunk[is_message] for chunk in chunks]
        origin, seq = [join(origin, np.int32)[is_message]], [join(seq, np.int64)[is_message]]
        kind = kind[is_message]
    return _Part(len(kind), ordered, [kind], origin, seq, lamport, pos, dest_count, dests, time_ns, views)


def _check_run(world: World, path: str, column: Any) -> None:
    """Every row says which run it belongs to; files of two runs in one directory would otherwise be judged as one."""
    for chunk in column.chunks:
        words = set(chunk.dictionary.to_pylist()) if chunk.null_count == 0 else {None}
        if words != {world.run}:
            words = set(pc.unique(chunk).to_pylist())
        for word in words - {world.run}:
            raise BadInput(f"{path} holds events of run {word!r}, but run.json describes run {world.run!r}")


def _times(path: str, groups: Sequence[RowGroup], table: pa.Table) -> tuple[_Chunks, _Chunks, bool]:
    """Logical times and positions, and whether the times are there and ascend. Positions must: they are the local order."""
    pos = join(_values(table["pos"], np.int64), np.int64)
    if table["pos"].null_count or pos[0] != groups[0].first_pos or not (pos[1:] == pos[:-1] + 1).all():
        raise BadInput(f"{path} does not hold the events of process {groups[0].process} in local order")
    if table["lamport"].null_count:
        return [np.zeros(len(pos), np.int64)], [pos], False
    lamport = join(_values(table["lamport"], np.int64), np.int64)
    return [lamport], [pos], bool((lamport[1:] > lamport[:-1]).all())


def _kinds(path: str, column: Any) -> np.ndarray:
    """The events' codes, whatever numbers the file's own dictionaries give the words."""
    if column.null_count:
        raise BadInput(f"{path} has an event without a kind")
    codes = []
    for chunk in column.chunks:
        words = chunk.dictionary.to_pylist()
        if unknown := [word for word in words if word not in _CODES]:
            raise BadInput(f"{path} has events of the unknown kind {unknown[0]!r}")
        indices = array(chunk.indices, np.int8)
        table = np.array([_CODES[word] for word in words], dtype=np.int8)
        codes.append(indices if (table == np.arange(len(table))).all() else table[indices])
    return join(codes, np.int8)


def _values(column: Any, kind: type) -> _Chunks:
    """The numbers of a column; where it has nulls, anything."""
    return [array(chunk, kind) for chunk in column.chunks]


def _or_zero(column: Any) -> _Chunks:
    """The numbers of a column in one piece, 0 where it has nulls."""
    return [np.where(_valid(column), join(_values(column, np.int64), np.int64), 0)]


def array(chunk: Any, kind: type) -> np.ndarray:
    """The numbers of one piece, without a copy. Arrow's own way would import pandas, half a second for every worker."""
    if not len(chunk):
        return np.empty(0, kind)
    return np.frombuffer(chunk.buffers()[1], dtype=kind, count=chunk.offset + len(chunk))[chunk.offset :]


def valid(chunk: Any) -> np.ndarray:
    """Which values of one piece are not null."""
    bits = chunk.buffers()[0] if len(chunk) else None
    if bits is None:
        return np.ones(len(chunk), np.bool_)
    every = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little").astype(np.bool_)
    present: np.ndarray = every[chunk.offset : chunk.offset + len(chunk)]
    return present


def _valid(column: Any) -> np.ndarray:
    return join([valid(chunk) for chunk in column.chunks], np.bool_)


def _destinations(column: Any, is_send: np.ndarray) -> tuple[_Chunks, _Chunks]:
    """How many destinations each send has (-1: not recorded), and all of them end to end."""
    counts, values = [], []
    start = 0
    for chunk in column.chunks:
        sends = is_send[start : start + len(chunk)]
        start += len(chunk)
        if not len(chunk):
            continue
        offsets = array(chunk.offsets, np.int32)
        own = np.diff(offsets)[sends]
        dests = array(chunk.values, np.int32)[offsets[0] : offsets[-1]]
        if not own.all() or own.sum() != len(dests):
            # Rare: a send without destinations, or destinations on other events, which say nothing.
            chosen = chunk.filter(pa.array(sends))
            own = np.where(np.asarray(chosen.is_null()), -1, np.asarray(pc.list_value_length(chosen).fill_null(-1)))
            dests = np.asarray(chosen.drop_null().flatten())
        counts.append(own)
        values.append(dests)
    return counts, values
