"""The intake of a micro-batch, one partition at a time: validates and sorts its events, and writes them to waiting files.

A waiting file holds each event with its sort key, in key order. So the final events are always a prefix of the file, and
waiting events are never rewritten. Events that cannot be ordered are set aside with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quire.pipeline.ordering.stream.options import CausalOrder, FollowingOrder, OrderOptions, TotalOrder

KEY_CLOCK, KEY_RANK, KEY_VECTOR = "quire_clock", "quire_rank", "quire_vector"
"""The columns of the sort key: the event's clock (or number), the index of its source, and its vector."""
KEY_NAME, KEY_CAUSES = "quire_name", "quire_causes"
"""Where events name what they follow: the event's name, and the names of the events that it follows."""
KEYS = (KEY_CLOCK, KEY_RANK, KEY_VECTOR, KEY_NAME, KEY_CAUSES)
TICK = "quire_tick"
"""Marks rows that only signal the passing of time."""
REASON = "reason"

CLOCK_MAX = (1 << 63) - 1
"""A heartbeat with this clock means that its source has ended."""
NOWHERE = -(1 << 63)
"""The transaction position of a source that has not been heard from."""
ROWS_PER_FILE = 1 << 18


class Open(msgspec.Struct, frozen=True):
    """A source's open transaction: its name, and the clock of its first event or its position among all transactions."""

    name: str
    first: int


class Waiting(msgspec.Struct, frozen=True):
    """The events in a waiting file from row `start` up to row `rows`, and the clock in the first one's key."""

    file: str
    start: int
    rows: int
    clock: int = 0


class IntakeTask(msgspec.Struct, frozen=True):
    """What the intake of a partition needs to know about earlier micro-batches."""

    options: OrderOptions
    directory: str
    marks: tuple[int, ...]
    """The latest clock of each source: events at or below it are late."""
    open: tuple[Open | None, ...]


class Intake(msgspec.Struct, frozen=True):
    """The result of taking in a partition."""

    marks: tuple[int | None, ...]
    """The latest clock of each source in the partition; None if it has no rows."""
    open: tuple[Open | None, ...]
    """The open transaction of each source in the partition; meaningful only if transactions are kept together."""
    heard: tuple[int, ...]
    waiting: tuple[Waiting, ...]
    rejected: tuple[Waiting, ...]


class _Rows:
    """Accumulates the result over the batches of a partition."""

    def __init__(self, task: IntakeTask) -> None:
        self.task = task
        self.marks: list[int | None] = [None] * len(task.options.sources)
        self.open: list[Open | None] = [None] * len(task.options.sources)
        self.heard: set[int] = set()
        self.waiting: list[Waiting] = []
        self.rejected: list[Waiting] = []

    def absorb(self, table: pa.Table) -> None:
        options = self.task.options
        if TICK in table.column_names:
            table = table.filter(pc.is_null(table[TICK])).drop_columns([TICK])
        if not table.num_rows:
            return
        table = table.combine_chunks()
        if isinstance(options, FollowingOrder):
            self._absorb_names(table)
            return
        table, rank = self._known_sources(table, options)
        if isinstance(options, TotalOrder):
            self._absorb_clocks(table, rank, options)
        else:
            self._absorb_vectors(table, rank, options)

    def done(self) -> Intake:
        return Intake(tuple(self.marks), tuple(self.open), tuple(sorted(self.heard)), tuple(self.waiting), tuple(self.rejected))

    def _absorb_names(self, table: pa.Table) -> None:
        names, causes = table[KEY_NAME], table[KEY_CAUSES]
        events, (kept,) = self._keep(
            table.drop_columns([KEY_NAME, KEY_CAUSES]), (np.arange(table.num_rows),), np.asarray(names.is_valid()),
            lambda _row, _key: "it has no name",
        )  # fmt: skip
        chosen = pa.array(kept)
        events = events.append_column(KEY_NAME, names.take(chosen)).append_column(KEY_CAUSES, causes.take(chosen))
        if events.num_rows:
            self.waiting.append(write_waiting(self.task.directory, events))

    def _known_sources(self, table: pa.Table, options: TotalOrder | CausalOrder) -> tuple[pa.Table, np.ndarray]:
        column = table[options.source]
        rank = _numbers(pc.index_in(column, pa.array(options.sources, column.type)), -1)
        table, (rank,) = self._keep(table, (rank,), rank >= 0, lambda row, _: _unknown(row[options.source]))
        self.heard.update(np.unique(rank).tolist())
        return table, rank

    def _absorb_clocks(self, table: pa.Table, rank: np.ndarray, options: TotalOrder) -> None:
        clock_column = table[options.clock].cast(pa.int64())
        present = np.asarray(clock_column.is_valid())
        table, (rank, clock) = self._keep(
            table, (rank, _numbers(clock_column, 0)), present, lambda _row, _key: "it has no clock"
        )
        beats = np.zeros(len(clock), np.bool_)
        if options.heartbeat is not None:
            beats = _numbers(table[options.heartbeat], False)
        table, (rank, clock, beats) = self._keep(
            table, (rank, clock, beats), beats | (clock < CLOCK_MAX), lambda _row, _key: f"its clock is not below {CLOCK_MAX}"
        )
        marks = np.array(self.task.marks, np.int64)
        # A late heartbeat carries no information, so it is not rejected.
        table, (rank, clock, beats) = self._keep(
            table, (rank, clock, beats), beats | (clock > marks[rank]), lambda _row, key: self._late(*key)
        )
        position = clock
        if options.transaction_position is not None:
            table, (rank, clock, beats, position, _) = self._join_transactions(table, rank, clock, beats, options)
        self._raise_marks(rank, clock)
        if options.transaction is not None:
            position = self._place_transactions(table[options.transaction].cast(pa.string()), rank, clock)
        order = np.lexsort((clock, rank, position))
        order = order[~beats[order]]
        self._wait(table, order, {KEY_CLOCK: position[order], KEY_RANK: rank[order]})

    def _absorb_vectors(self, table: pa.Table, rank: np.ndarray, options: CausalOrder) -> None:
        vectors, whole = _vectors_of(table[options.vector], options)
        number = vectors[np.arange(len(rank)), rank]
        table, (rank, number, vectors) = self._keep(
            table, (rank, number, vectors), whole & (number > 0),
            lambda _row, _key: "its vector does not have one number for each source, its own above 0",
        )  # fmt: skip
        marks = np.array(self.task.marks, np.int64)
        table, (rank, number, vectors) = self._keep(
            table, (rank, number, vectors), number > marks[rank], lambda _row, key: self._late(*key[:2])
        )
        order = np.lexsort((number, rank))
        self._wait(table, order, {KEY_CLOCK: number[order], KEY_RANK: rank[order], KEY_VECTOR: vectors[order]})

    def _place_transactions(self, names: Any, rank: np.ndarray, clock: np.ndarray) -> np.ndarray:
        """The clock by which each row is sorted: that of the first event of the transaction it continues."""
        vocabulary = sorted(set(names.unique().to_pylist()) - {None})
        codes = _numbers(pc.index_in(names, pa.array(vocabulary, pa.string())), -1)
        order = np.lexsort((codes, clock, rank))
        rank, clock, codes = rank[order], clock[order], codes[order]
        goes_on = np.zeros(len(order), np.bool_)
        goes_on[1:] = (rank[1:] == rank[:-1]) & (codes[1:] == codes[:-1]) & (codes[1:] >= 0)
        begins = np.maximum.accumulate(np.where(goes_on, 0, np.arange(len(order))))
        position = clock[begins]
        for source in np.unique(rank).tolist():
            start, end = np.searchsorted(rank, [source, source + 1]).tolist()
            running = self.task.open[source]
            if running is not None and codes[start] >= 0 and vocabulary[codes[start]] == running.name:
                position[start:end][begins[start:end] == start] = running.first
            last = int(codes[end - 1])
            self.open[source] = None if last < 0 else Open(vocabulary[last], int(position[end - 1]))
        placed = np.empty_like(position)
        placed[order] = position
        return placed

    def _join_transactions(
        self, table: pa.Table, rank: np.ndarray, clock: np.ndarray, beats: np.ndarray, options: TotalOrder
    ) -> tuple[pa.Table, Any]:
        """The rows whose transaction position does not go backwards within their source, and these positions."""
        assert options.transaction_position is not None
        column = table[options.transaction_position].cast(pa.int64())
        ended = beats & (clock == CLOCK_MAX)
        known = np.asarray(column.is_valid()) | ended
        position = np.where(ended, CLOCK_MAX, _numbers(column, 0))
        table, (rank, clock, beats, position) = self._keep(
            table, (rank, clock, beats, position), known, lambda _row, _key: "its transaction has no position"
        )
        order = np.lexsort((clock, rank))
        reached = position.copy()
        for source in np.unique(rank).tolist():
            own = order[rank[order] == source]
            running = self.task.open[source]
            floor = NOWHERE if running is None else running.first
            reached[own] = np.maximum.accumulate(np.maximum(position[own], floor))
            last = int(reached[own[-1]])
            self.open[source] = None if last == CLOCK_MAX else Open(str(last), last)
        good = (position == reached) | beats
        return self._keep(
            table, (rank, clock, beats, position, reached), good,
            lambda _row, key: f"its transaction is late: {key[3]} is before {key[4]}, which its source had already reached",
        )  # fmt: skip

    def _raise_marks(self, rank: np.ndarray, clock: np.ndarray) -> None:
        latest = np.full(len(self.marks), -CLOCK_MAX - 1, np.int64)
        np.maximum.at(latest, rank, clock)
        for source in np.unique(rank).tolist():
            before = self.marks[source]
            self.marks[source] = int(latest[source]) if before is None else max(before, int(latest[source]))

    def _keep(self, table: pa.Table, keys: tuple[np.ndarray, ...], good: np.ndarray, reason: Any) -> tuple[pa.Table, Any]:
        """The good rows and their keys; the others are set aside with the reason."""
        if good.all():
            return table, keys
        bad = np.flatnonzero(~good)
        rows = table.take(bad)
        key_rows = zip(*(key[bad].tolist() for key in keys), strict=True)
        reasons = [reason(row, key) for row, key in zip(rows.to_pylist(), key_rows, strict=True)]
        self.rejected.append(write_waiting(self.task.directory, rows.append_column(REASON, pa.array(reasons, pa.string()))))
        chosen = np.flatnonzero(good)
        return table.take(chosen), tuple(key[chosen] for key in keys)

    def _late(self, rank: int, clock: int, *_: object) -> str:
        source = self.task.options.sources[rank]
        return f"it is late: {clock} is not above {self.task.marks[rank]}, which source {source} had already reached"

    def _wait(self, table: pa.Table, order: np.ndarray, keys: dict[str, np.ndarray]) -> None:
        if not len(order):
            return
        events = table.take(order)
        for name, values in reversed(keys.items()):
            events = events.add_column(0, name, _as_column(values))
        self.waiting.append(write_waiting(self.task.directory, events))


def take_in(task: IntakeTask, batches: Iterable[pa.RecordBatch]) -> Intake:
    """Read a partition to its end."""
    rows = _Rows(task)
    # Consecutive events of a source can be grouped only if all of its rows are in one table.
    whole = isinstance(task.options, TotalOrder) and task.options.in_runs
    for table in _tables(batches, None if whole else ROWS_PER_FILE):
        rows.absorb(table)
    return rows.done()


def _tables(batches: Iterable[pa.RecordBatch], rows_max: int | None) -> Iterator[pa.Table]:
    """The batches combined into tables of bounded size, or into a single one."""
    pending: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        pending.append(batch)
        rows += batch.num_rows
        if rows_max is not None and rows >= rows_max:
            yield pa.Table.from_batches(pending)
            pending, rows = [], 0
    if pending:
        yield pa.Table.from_batches(pending)


def _vectors_of(column: Any, options: CausalOrder) -> tuple[np.ndarray, np.ndarray]:
    """One row of numbers for each event, and whether its vector is present and valid."""
    sources = len(options.sources)
    vectors = np.zeros((len(column), sources), np.int64)
    whole = np.zeros(len(column), np.bool_)
    column = column.combine_chunks()
    if pa.types.is_map(column.type):
        names = {str(source): index for index, source in enumerate(options.sources)}
        for row, pairs in enumerate(column.to_pylist()):
            whole[row] = pairs is not None and all(
                name in names and value is not None and 0 <= value < CLOCK_MAX for name, value in pairs
            )
            if whole[row]:
                for name, value in pairs:
                    vectors[row, names[name]] = value
        return vectors, whole
    lengths = _numbers(pc.list_value_length(column), -1)
    whole = lengths == sources
    flat = column.filter(pa.array(whole)).flatten().cast(pa.int64())
    values = _numbers(flat, -1).reshape(-1, sources)
    vectors[whole] = values
    whole[whole] = ((values >= 0) & (values < CLOCK_MAX)).all(axis=1)
    return vectors, whole


def write_waiting(directory: str, events: pa.Table) -> Waiting:
    """Write events to a new file with a unique name: a task that Spark retries writes another file."""
    name = f"{uuid4().hex}.arrow"
    with pa.OSFile(str(Path(directory) / name), "wb") as file, pa.ipc.new_file(file, events.schema) as writer:
        writer.write_table(events.combine_chunks())
    clock = events[KEY_CLOCK][0].as_py() if KEY_CLOCK in events.column_names else 0
    return Waiting(name, 0, events.num_rows, clock)


def open_waiting(directory: str, waiting: Waiting) -> pa.Table:
    """The waiting events, memory-mapped so that only what is used is read."""
    with pa.memory_map(str(Path(directory) / waiting.file)) as file:
        return pa.ipc.open_file(file).read_all().slice(waiting.start, waiting.rows - waiting.start)


def all_waiting(directory: str, waiting: Iterable[Waiting]) -> pa.Table:
    """All events of these files, which may have their columns in different orders, or more or fewer: a query that is started
    again may find other columns in its input."""
    tables = [open_waiting(directory, part) for part in waiting]
    return pa.concat_tables(tables, promote_options="default").combine_chunks()


def _as_column(values: np.ndarray) -> Any:
    return (
        pa.array(values)
        if values.ndim == 1
        else pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), values.shape[1])
    )


def _unknown(source: object) -> str:
    return "it has no source" if source is None else f"its source {source} was not named"


def _numbers(column: Any, missing: int | bool) -> np.ndarray:
    return np.asarray(column.fill_null(missing))
