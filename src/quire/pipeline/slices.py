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
from quire.trace.schema import DELIVER, KINDS, SEND

_CODES = {word: code for code, word in enumerate(KINDS)}


class Events(msgspec.Struct):
    """Sends and deliveries. Those of process p are at `start[p]` to `start[p + 1]`."""

    start: np.ndarray
    kind: np.ndarray
    origin: np.ndarray
    seq: np.ndarray
    lamport: np.ndarray
    pos: np.ndarray
    """Empty unless it was asked for."""
    dest_count: np.ndarray
    """For each send, in order: how many destinations, -1 where they are not recorded."""
    dests: np.ndarray
    ordered: bool
    """Whether the logical times of every process were there and ascended."""


class Part(msgspec.Struct):
    """One process's share of `Events`."""

    kind: np.ndarray
    origin: np.ndarray
    seq: np.ndarray
    lamport: np.ndarray
    pos: np.ndarray
    dest_count: np.ndarray
    dests: np.ndarray
    ordered: bool


def read_events(
    world: World, groups: Sequence[RowGroup], low: int | None = None, high: int | None = None,
    *, dests: bool = True, pos: bool = False,
) -> Events:  # fmt: skip
    """The events with `low` <= logical time < `high` in these row groups (all of them where there is no bound)."""
    parts: list[list[Part]] = [[] for _ in range(world.members)]
    ordered = True
    for process, own in groupby(groups, key=lambda group: group.process):
        last = None
        for path, in_file in groupby(own, key=lambda group: group.path):
            part = read_part(world, path, list(in_file), low, high, dests=dests, pos=pos)
            ordered = ordered and part.ordered
            if part.ordered and len(part.lamport):
                ordered = ordered and (last is None or last < part.lamport[0])
                last = part.lamport[-1]
            parts[process].append(part)
    flat = [part for process in parts for part in process]
    sizes = [sum(len(part.kind) for part in process) for process in parts]
    return Events(
        np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
        _join([part.kind for part in flat], np.int8),
        _join([part.origin for part in flat], np.int32),
        _join([part.seq for part in flat], np.int64),
        _join([part.lamport for part in flat], np.int64),
        _join([part.pos for part in flat], np.int64),
        _join([part.dest_count for part in flat], np.int32),
        _join([part.dests for part in flat], np.int32),
        ordered,
    )


def _join(arrays: Sequence[np.ndarray], kind: type) -> np.ndarray:
    return np.concatenate(arrays) if arrays else np.empty(0, kind)


def read_part(
    world: World, path: str, groups: Sequence[RowGroup], low: int | None, high: int | None, *, dests: bool, pos: bool
) -> Part:
    """The wanted rows of one file."""
    columns = ["run", "kind", "origin", "seq", "lamport"] + ["dests"] * dests + ["pos"] * pos
    try:
        with pq.ParquetFile(path) as file:
            table = file.read_row_groups([group.index for group in groups], columns=columns, use_threads=False)
        table.validate()
        return _to_part(world, path, groups, table, low, high)
    except (OSError, pa.ArrowException, MemoryError) as error:
        raise BadInput(f"{path} cannot be read: {str(error).splitlines()[0] or type(error).__name__}") from error


def _to_part(world: World, path: str, groups: Sequence[RowGroup], table: pa.Table, low: int | None, high: int | None) -> Part:
    if table.num_rows != sum(group.rows for group in groups):
        raise BadInput(f"{path} changed while it was read")
    _check_run(world, path, table["run"])
    ordered = table["lamport"].null_count == 0
    if ordered:
        lamport = _numbers(table["lamport"], np.int64)
        ordered = bool((lamport[1:] > lamport[:-1]).all())
    if ordered and (low is not None or high is not None):
        first = 0 if low is None else int(np.searchsorted(lamport, low))
        end = len(lamport) if high is None else int(np.searchsorted(lamport, high))
        table, lamport = table.slice(first, end - first), lamport[first:end]
    if not ordered:
        lamport = np.zeros(table.num_rows, np.int64)
    kind = _kinds(path, table["kind"])
    dest_count, dests = _destinations(table["dests"], kind == SEND) if "dests" in table.column_names else (kind[:0], kind[:0])
    if (kind > DELIVER).any():
        wanted = kind <= DELIVER
        table, lamport, kind = table.filter(pa.array(wanted)), lamport[wanted], kind[wanted]
    if table["origin"].null_count or table["seq"].null_count:
        raise BadInput(f"{path} has a send or a delivery without origin or seq")
    return Part(
        kind,
        _numbers(table["origin"], np.int32),
        _numbers(table["seq"], np.int64),
        lamport,
        _numbers(table["pos"], np.int64) if "pos" in table.column_names else np.empty(0, np.int64),
        dest_count.astype(np.int32, copy=False),
        dests.astype(np.int32, copy=False),
        ordered,
    )


def _check_run(world: World, path: str, column: Any) -> None:
    """Every row says which run it belongs to; files of two runs in one directory would otherwise be judged as one."""
    for chunk in column.chunks:
        words = set(chunk.dictionary.to_pylist()) if chunk.null_count == 0 else {None}
        if words != {world.run}:
            words = set(pc.unique(chunk).to_pylist())
        for word in words - {world.run}:
            raise BadInput(f"{path} holds events of run {word!r}, but run.json describes run {world.run!r}")


def _kinds(path: str, column: Any) -> np.ndarray:
    """The events' codes, whatever numbers the file's own dictionaries give the words."""
    if column.null_count:
        raise BadInput(f"{path} has an event without a kind")
    codes = []
    for chunk in column.chunks:
        words = chunk.dictionary.to_pylist()
        indices = np.asarray(chunk.indices)
        if unknown := [word for word in words if word not in _CODES]:
            raise BadInput(f"{path} has events of the unknown kind {unknown[0]!r}")
        table = np.array([_CODES[word] for word in words], dtype=np.int8)
        codes.append(indices.astype(np.int8, copy=False) if (table == np.arange(len(table))).all() else table[indices])
    return _join(codes, np.int8)


def _numbers(column: Any, kind: type) -> np.ndarray:
    return _join([np.asarray(chunk) for chunk in column.chunks], kind)


def _destinations(column: Any, is_send: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How many destinations each send has (-1: not recorded), and all of them end to end."""
    counts, values = [], []
    start = 0
    for chunk in column.chunks:
        sends = is_send[start : start + len(chunk)]
        start += len(chunk)
        offsets = np.asarray(chunk.offsets)
        lengths = np.diff(offsets)
        own = lengths[sends]
        dests = np.asarray(chunk.values)[offsets[0] : offsets[-1]]
        if not own.all() or own.sum() != len(dests):
            # Rare: a send without destinations, or destinations on other events, which say nothing.
            chosen = chunk.filter(pa.array(sends))
            own = np.where(np.asarray(chosen.is_null()), -1, np.asarray(pc.list_value_length(chosen).fill_null(-1)))
            dests = np.asarray(chosen.drop_null().flatten())
        counts.append(own)
        values.append(dests)
    return _join(counts, np.int32), _join(values, np.int32)
