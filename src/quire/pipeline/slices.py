"""Reads a slice of every process's log into NumPy arrays, with only the columns and row groups that are needed.

Rows are grouped by process, in local order.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import pyarrow as pa

from quire.model.errors import BadInput
from quire.pipeline.columns import Chunks, destinations, flags, join, kinds, numbers, present, values
from quire.pipeline.layout import RowGroup, World
from quire.pipeline.reading import TraceReader
from quire.trace.kinds import DELIVER, SEND, VIEW
from quire.trace.schema import EVENT, IMPLIED


class Events(msgspec.Struct):
    """Sends and deliveries, or every event if requested. Those of process p are at `start[p]` to `start[p + 1]`."""

    start: np.ndarray
    kind: np.ndarray
    origin: np.ndarray
    seq: np.ndarray
    lamport: np.ndarray
    pos: np.ndarray
    """Empty unless requested, like the logical times. If events are `numbered`: the number of the event to which the row
    belongs."""
    dest_count: np.ndarray
    """For each send, in order: the number of destinations; -1 if they are not recorded."""
    dests: np.ndarray
    ordered: bool
    """Whether the logical times of every process are present and ascend."""
    time_ns: np.ndarray
    """Empty unless requested; 0 where it is not recorded."""
    views: bool
    """Whether there are views in the slice, even if they are not among these events."""
    implied: np.ndarray = msgspec.field(default_factory=lambda: np.empty(0, np.bool_))
    """Which rows are implied deliveries, and no events; empty unless events are numbered."""


class _Part(msgspec.Struct):
    """One file's share of `Events`."""

    rows: int
    ordered: bool
    kind: Chunks
    origin: Chunks
    seq: Chunks
    lamport: Chunks
    pos: Chunks
    dest_count: Chunks
    dests: Chunks
    time_ns: Chunks
    views: bool
    implied: Chunks


def read_events(
    world: World, groups: Sequence[RowGroup], low: int | None = None, high: int | None = None,
    *, times: bool = True, dests: bool = True, pos: bool = False, every: bool = False, clock: bool = False,
    numbered: bool = False,
) -> Events:  # fmt: skip
    """The events with `low` <= logical time < `high` in these row groups (None means no bound).

    Only sends and deliveries, unless `every` is set; with wall-clock times if `clock` is set. With `numbered`, positions are
    the event numbers of the log, and implied deliveries are marked.
    """
    columns = event_columns(times=times, dests=dests) + ["time_ns"] * clock
    optional = (EVENT, IMPLIED) if numbered else ()
    slices = EventSlices(world, pos=pos or numbered, numbered=numbered)
    with TraceReader(world.run) as reader:
        for own, table in reader.read_files(groups, columns, optional=optional):
            slices.add(own, table, low, high, every=every)
    return slices.events()


def event_columns(*, times: bool, dests: bool) -> list[str]:
    return ["kind", "origin", "seq"] + ["lamport", "pos"] * times + ["dests"] * dests


class EventSlices:
    """Collects events from several files, which must be added in ascending order of processes, each in local order."""

    def __init__(self, world: World, *, pos: bool = False, numbered: bool = False) -> None:
        self._pos, self._numbered = pos, numbered
        self._parts: list[_Part] = []
        self._sizes = [0] * world.members
        self._ordered = True
        self._last: tuple[int, int] | None = None
        """The process that was added last, and its last logical time."""

    def add(
        self, groups: Sequence[RowGroup], table: pa.Table, low: int | None = None, high: int | None = None, *, every: bool
    ) -> None:
        """Add the events of a file between two logical times."""
        process = groups[0].process
        part = _to_part(groups, table, low, high, every)
        self._ordered = self._ordered and part.ordered
        if part.ordered and part.rows and part.lamport:
            follows = self._last is None or self._last[0] != process or self._last[1] < part.lamport[0][0]
            self._ordered = self._ordered and follows
            self._last = process, part.lamport[0][-1]
        self._parts.append(part)
        self._sizes[process] += part.rows

    def events(self) -> Events:
        """All that was added; call it once, at the end."""
        parts = self._parts
        if not self._pos:
            for part in parts:
                part.pos = []
        if self._numbered:
            for part in parts:
                part.implied = part.implied or [np.zeros(part.rows, np.bool_)]
        return Events(
            np.concatenate(([0], np.cumsum(self._sizes))).astype(np.int64),
            _gather(parts, "kind", np.int8),
            _gather(parts, "origin", np.int32),
            _gather(parts, "seq", np.int64),
            _gather(parts, "lamport", np.int64),
            _gather(parts, "pos", np.int64),
            _gather(parts, "dest_count", np.int32),
            _gather(parts, "dests", np.int32),
            self._ordered,
            _gather(parts, "time_ns", np.int64),
            any(part.views for part in parts),
            _gather(parts, "implied", np.bool_),
        )


def _gather(parts: Sequence[_Part], name: str, kind: type) -> np.ndarray:
    """A column in one writable array; for a read-only one, the kernels would be compiled again. The parts lose it, so that
    little is in memory twice."""
    chunks: Chunks = [chunk for part in parts for chunk in getattr(part, name)]
    for part in parts:
        setattr(part, name, [])
    return np.concatenate([np.empty(0, kind), *chunks], dtype=kind)


def _to_part(groups: Sequence[RowGroup], table: pa.Table, low: int | None, high: int | None, every: bool) -> _Part:
    path = groups[0].path
    lamport, pos, ordered = _times(path, groups, table) if "lamport" in table.column_names else ([], [], True)
    if ordered and (low is not None or high is not None):
        first = 0 if low is None else int(np.searchsorted(lamport[0], low))
        end = table.num_rows if high is None else int(np.searchsorted(lamport[0], high))
        table, lamport, pos = table.slice(first, end - first), [lamport[0][first:end]], [pos[0][first:end]]
    kind = kinds(table["kind"])
    dest_count, dests = destinations(table["dests"], kind == SEND) if "dests" in table.column_names else ([], [])
    origin, seq = values(table["origin"], np.int32), values(table["seq"], np.int64)
    time_ns = [numbers(table, "time_ns")[0]] if "time_ns" in table.column_names else []
    implied: Chunks = []
    if EVENT in table.column_names:
        pos, implied = [numbers(table, EVENT)[0]], [flags(table, IMPLIED)]
    is_message = kind <= DELIVER
    for name in ("origin", "seq"):
        if table[name].null_count and not present(table[name])[is_message].all():
            raise BadInput(f"{path} has a send or a delivery without {name}")
    views = not is_message.all() and bool((kind == VIEW).any())
    if not every and not is_message.all():
        for chunks in (lamport, pos, time_ns, implied):
            chunks[:] = [chunk[is_message] for chunk in chunks]
        origin, seq = [join(origin, np.int32)[is_message]], [join(seq, np.int64)[is_message]]
        kind = kind[is_message]
    return _Part(len(kind), ordered, [kind], origin, seq, lamport, pos, dest_count, dests, time_ns, views, implied)


def _times(path: str, groups: Sequence[RowGroup], table: pa.Table) -> tuple[Chunks, Chunks, bool]:
    """Logical times and positions, and whether the times are present and ascend. Positions must: they are the local order."""
    pos = join(values(table["pos"], np.int64), np.int64)
    if table["pos"].null_count or pos[0] != groups[0].first_pos or not (pos[1:] == pos[:-1] + 1).all():
        raise BadInput(f"{path} does not hold the events of process {groups[0].process} in local order")
    if table["lamport"].null_count:
        return [np.zeros(len(pos), np.int64)], [pos], False
    lamport = join(values(table["lamport"], np.int64), np.int64)
    return [lamport], [pos], bool((lamport[1:] > lamport[:-1]).all())
