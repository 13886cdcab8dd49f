"""The task that writes the trace of a process, in local order, with extra columns for what the log said."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quire.pipeline.columns import flags, kinds
from quire.pipeline.importing.building import clock_times, lay_rows
from quire.pipeline.importing.gathering import Source
from quire.pipeline.importing.scratch import Scratch
from quire.trace.kinds import DELIVER, KINDS, LOCAL, SEND
from quire.trace.schema import EVENT, FILE, IMPLIED, IMPORTED, LINE, MESSAGE, SCHEMA, TEXT, WORD_COLUMNS
from quire.trace.store import open_trace, write_rows


class WriteTask(msgspec.Struct, tag="write"):
    scratch: Scratch
    source: Source
    run: int
    run_id: str
    hosts: tuple[str, ...]
    processes: tuple[int, ...]
    clocked: bool
    stride: int
    """The stride of logical times that come from clocks; 0 if they do not."""
    out: str


class Written(msgspec.Struct):
    rows: int
    deliveries: int
    links: int

    def add(self, other: Written) -> None:
        self.rows += other.rows
        self.deliveries += other.deliveries
        self.links += other.links


def write(task: WriteTask) -> Written:
    done = Written(0, 0, 0)
    for process in task.processes:
        table = _table(task, process)
        with open_trace(Path(task.out) / f"p{process:05d}.parquet", IMPORTED) as file:
            write_rows(file, table)
        done.rows += table.num_rows
        links = int(flags(table, IMPLIED).sum())
        done.links += links
        done.deliveries += int((kinds(table["kind"]) == DELIVER).sum()) - links
    return done


def _table(task: WriteTask, process: int) -> pa.Table:
    records = task.scratch.load("local", task.run, process)
    rows = lay_rows(task.scratch, task.run, process, task.clocked)
    count = len(rows.kind)
    if task.stride:
        lamport = clock_times(task.scratch, task.run, process, rows, task.stride)
    else:
        lamport = task.scratch.load_numbers("times", task.run, process)
    taken = records.take(pa.array(rows.record))
    # An implied delivery, which stands for a cause of its event, has no text of its own.
    is_whole = (rows.kind != DELIVER) | (np.asarray(taken["kind"]) == DELIVER)
    known = rows.kind != LOCAL
    columns: dict[str, Any] = {
        "run": _word(np.zeros(count, np.int32), [task.run_id]),
        "process": pa.array(np.full(count, process), pa.int32()),
        "pos": pa.array(np.arange(count), pa.int64()),
        "kind": _word(rows.kind, KINDS),
        "origin": pa.array(rows.origin, pa.int32(), mask=~known),
        "seq": pa.array(rows.seq, pa.int64(), mask=~known),
        "dests": _dests(task, taken, rows.kind),
        "lamport": pa.array(np.asarray(lamport), pa.int64()),
        "time_ns": taken["time_ns"],
        EVENT: pa.array(rows.record, pa.int64()),
        IMPLIED: pa.array(~is_whole, pa.bool_()),
        TEXT: _only(taken["text"], is_whole),
        LINE: taken["line"],
        FILE: _word(np.asarray(taken["file"]), task.source.files),
    }
    if not task.clocked:
        columns[MESSAGE] = _only(_messages(records).take(pa.array(rows.record)), is_whole)
    for name in WORD_COLUMNS:
        columns[name] = _only(taken[name], is_whole).dictionary_encode()
    arrays = [_cast(columns.get(field.name), field.type, count) for field in IMPORTED]
    return pa.table(arrays, schema=IMPORTED)


def _messages(records: pa.Table) -> Any:
    """The log's name for the message of each record; a delivery names it as its cause."""
    causes = records["causes"].combine_chunks()
    counts = np.asarray(pc.list_value_length(causes).fill_null(0))
    first = pa.array(np.cumsum(counts) - counts, pa.int64(), mask=counts == 0)
    return pc.coalesce(records["key"].combine_chunks(), pc.list_flatten(causes).take(first))


def _word(codes: np.ndarray, words: Sequence[str]) -> Any:
    """A dictionary column from codes, with only the values that occur."""
    used, indices = np.unique(codes, return_inverse=True)
    vocabulary = pa.array([words[code] for code in used.tolist()], pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), vocabulary)


def _only(column: Any, wanted: np.ndarray) -> Any:
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return pc.if_else(pa.array(wanted), whole, pa.scalar(None, column.type))


def _cast(column: Any, kind: Any, count: int) -> Any:
    if column is None:
        return pa.nulls(count, kind)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return column if column.type == kind else column.cast(kind)


def _dests(task: WriteTask, taken: pa.Table, kind: np.ndarray) -> Any:
    if taken["dests"].null_count == taken.num_rows:
        return pa.nulls(taken.num_rows, SCHEMA.field("dests").type)
    numbers = {host: process for process, host in enumerate(task.hosts)}
    lists = [
        None if names is None or code != SEND else sorted({numbers[name] for name in names})
        for names, code in zip(taken["dests"].to_pylist(), kind.tolist(), strict=True)
    ]
    return pa.array(lists, SCHEMA.field("dests").type)
