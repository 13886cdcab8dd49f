"""Releases the final events of a streaming total order, in pieces that tasks merge and write in parallel.

Every waiting file is in key order, so the final events are a prefix of every file, and a piece of the order is one slice of
each file. Pieces are cut by key, so they are independent, and concatenated they are the order.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa

from quire.pipeline.ordering.reading import Format
from quire.pipeline.ordering.stream.frontier import Key
from quire.pipeline.ordering.stream.intake import (
    CLOCK_MAX,
    KEY_CLOCK,
    KEY_RANK,
    KEYS,
    REASON,
    Waiting,
    all_waiting,
    open_waiting,
    write_waiting,
)
from quire.pipeline.ordering.stream.writing import write_events
from quire.pipeline.ordering.writing import POSITION

ROWS_PER_PIECE = 1 << 18
_SAMPLES_PER_PIECE = 64


class ReleaseTask(msgspec.Struct, frozen=True, tag="release"):
    """Merge these slices of waiting files, and write the result from this position on."""

    directory: str
    slices: tuple[Waiting, ...]
    clock: str
    """The column of the events' own clock, which distinguishes the events of one transaction."""
    position: int
    out: str
    format: Format


class Released(msgspec.Struct, frozen=True):
    rows: int
    rejected: tuple[Waiting, ...]


def release(task: ReleaseTask) -> Released:
    events = all_waiting(task.directory, task.slices)
    rank, position, clock = (np.asarray(events[name]) for name in (KEY_RANK, KEY_CLOCK, task.clock))
    order = np.lexsort((clock, rank, position))
    rank, position, clock = rank[order], position[order], clock[order]
    same = (rank[1:] == rank[:-1]) & (position[1:] == position[:-1]) & (clock[1:] == clock[:-1])
    events = without_keys(events.take(order))
    rejected: tuple[Waiting, ...] = ()
    if same.any():
        events, rejected = keep_one_of_each(events, same, task.directory, "there is another event of its source with its clock")
    write_events(with_positions(events, task.position), Path(task.out), task.format)
    return Released(events.num_rows, rejected)


def keep_one_of_each(events: pa.Table, same: np.ndarray, directory: str, reason: str) -> tuple[pa.Table, tuple[Waiting, ...]]:
    """Keep one event of each key, chosen by `first_of_each`; the others are set aside."""
    kept = first_of_each(events, same)
    return events.filter(pa.array(kept)), (set_apart(directory, events.filter(pa.array(~kept)), reason),)


def first_of_each(events: pa.Table, same: np.ndarray) -> np.ndarray:
    """Of consecutive events with the same key, mark the one whose content sorts first, whichever arrived first.

    `same[i]`: whether event i + 1 has the same key as event i.
    """
    twins = np.flatnonzero(np.concatenate(([False], same)) | np.concatenate((same, [False])))
    contents = [repr(row) for row in events.take(twins).to_pylist()]
    group = np.cumsum(np.concatenate(([True], ~same)))[twins]
    best: dict[int, tuple[str, int]] = {}
    for number, content, row in zip(group.tolist(), contents, twins.tolist(), strict=True):
        best[number] = min(best.get(number, (content, row)), (content, row))
    kept = np.ones(events.num_rows, np.bool_)
    kept[twins] = False
    kept[[row for _, row in best.values()]] = True
    return kept


def set_apart(directory: str, events: pa.Table, reason: str) -> Waiting:
    """Write events that cannot be ordered to a file, with the reason."""
    reasons = pa.array([reason] * events.num_rows, pa.string())
    return write_waiting(directory, without_keys(events).append_column(REASON, reasons))


def without_keys(events: pa.Table) -> pa.Table:
    """The events as they arrived."""
    return events.select([name for name in events.column_names if name not in KEYS])


def with_positions(events: pa.Table, position: int) -> pa.Table:
    return events.append_column(POSITION, pa.array(np.arange(position, position + events.num_rows, dtype=np.int64)))


def split(directory: str, waiting: Sequence[Waiting], limit: Key | None) -> tuple[list[Waiting], list[Waiting]]:
    """Split the waiting events into those below `limit`, which leave (None: all), and those that go on waiting."""
    leaving, staying = [], []
    for part in waiting:
        if limit is not None and part.clock > limit[0]:
            staying.append(part)
            continue
        stop, clock = part.rows, 0
        if limit is not None:
            table = open_waiting(directory, part)
            stop = part.start + _rows_below(table, limit)
            clock = table[KEY_CLOCK][stop - part.start].as_py() if stop < part.rows else 0
        if stop > part.start:
            leaving.append(msgspec.structs.replace(part, rows=stop))
        if stop < part.rows:
            staying.append(msgspec.structs.replace(part, start=stop, clock=clock))
    return leaving, staying


def pieces(directory: str, leaving: Sequence[Waiting], rows_max: int = ROWS_PER_PIECE) -> list[list[Waiting]]:
    """The leaving events in pieces of about `rows_max` rows; each piece has the slices with keys between two bounds."""
    rows = sum(part.rows - part.start for part in leaving)
    count = -(-rows // rows_max)
    if count <= 1:
        return [list(leaving)] * count
    found: list[list[Waiting]] = []
    rest: list[Waiting] = list(leaving)
    for bound in _bounds(directory, leaving, count, max(1, rows // (count * _SAMPLES_PER_PIECE))):
        piece, rest = split(directory, rest, bound)
        if piece:
            found.append(piece)
    return [*found, rest] if rest else found


def _bounds(directory: str, leaving: Sequence[Waiting], count: int, step: int) -> list[Key]:
    """Keys that cut the events into `count` parts of about equal size, from a sample of every `step`-th key of each file."""
    samples: list[Key] = []
    for part in leaving:
        table = open_waiting(directory, part)
        samples.extend(
            zip(np.asarray(table[KEY_CLOCK])[::step].tolist(), np.asarray(table[KEY_RANK])[::step].tolist(), strict=True)
        )
    samples.sort()
    return [samples[len(samples) * index // count] for index in range(1, count)]


def _rows_below(table: pa.Table, limit: Key) -> int:
    """How many rows of a sorted table have a key below this one."""
    clock, rank = limit
    if clock > CLOCK_MAX:
        return table.num_rows
    clocks = np.asarray(table[KEY_CLOCK])
    low, high = (int(np.searchsorted(clocks, clock, side=side)) for side in ("left", "right"))
    return low + int(np.searchsorted(np.asarray(table[KEY_RANK])[low:high], rank))
