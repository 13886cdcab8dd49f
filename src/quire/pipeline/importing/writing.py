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
from quire.pipeline.importing.building import Numbers, clock_times, lay_rows
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
    done, numbers = Written(0, 0, 0), Numbers(task.scratch, task.run)
    for process in task.processes:
        table = _table(task, process, numbers)
        if not table.num_rows:
            continue  # All its records repeat those of others.
        with open_trace(Path(task.out) / f"p{process:05d}.parquet", IMPORTED) as file:
            write_rows(file, table)
        done.rows += table.num_rows
        links = int(flags(table, IMPLIED).sum())
        done.links += links
        done.deliveries += int((kinds(table["kind"]) == DELIVER).sum()) - links
    return done


def _table(task: WriteTask, process: int, numbers: Numbers) -> pa.Table:
    records = task.scratch.load("local", task.run, process)
    rows = lay_rows(task.scratch, task.run, process, task.clocked, numbers)
    count = len(rows.kind)
    if task.stride:
        lamport = clock_times(task.scratch, task.run, process, rows, task.stride)
    else:
        lamport = task.scratch.load_numbers("times", task.run, process)
    # An implied delivery, which stands for a cause of its event, has no text of its own.
    is_implied = (rows.kind == DELIVER) & (np.asarray(records["kind"])[rows.record] != DELIVER)
    every, own = pa.array(rows.record), pa.array(rows.record, mask=is_implied)
    known = rows.kind != LOCAL
    columns: dict[str, Any] = {
        "run": _word(np.zeros(count, np.int32), [task.run_id]),
        "process": pa.array(np.full(count, process), pa.int32()),
        "pos": pa.array(np.arange(count), pa.int64()),
        "kind": _word(rows.kind, KINDS),
        "origin": pa.array(rows.origin, pa.int32(), mask=~known),
        "seq": pa.array(rows.seq, pa.int64(), mask=~known),
        "dests": _dests(task, records["dests"], rows.kind, every),
        "lamport": pa.array(np.asarray(lamport), pa.int64()),
        "time_ns": records["time_ns"].take(every),
        EVENT: every,
        IMPLIED: pa.array(is_implied, pa.bool_()),
        TEXT: records["text"].take(own),
        LINE: records["line"].take(every),
        FILE: _word(np.asarray(records["file"])[rows.record], task.source.files),
    }
    if not task.clocked:
        columns[MESSAGE] = _messages(records).take(own)
    for name in WORD_COLUMNS:
        if records[name].null_count < records.num_rows:
            columns[name] = records[name].take(own).combine_chunks().dictionary_encode()
    arrays = [_cast(columns.get(field.name), field.type, count) for field in IMPORTED]
    return pa.table(arrays, schema=IMPORTED)


def _messages(records: pa.Table) -> Any:
    """The log's name for the message of each record; a delivery names it as its cause."""
    key = records["key"].combine_chunks()
    if not key.null_count:
        return key
    causes = records["causes"].combine_chunks()
    counts = np.asarray(pc.list_value_length(causes).fill_null(0))
    first = pa.array(np.cumsum(counts) - counts, pa.int64(), mask=counts == 0)
    return pc.coalesce(key, pc.list_flatten(causes).take(first))


def _word(codes: np.ndarray, words: Sequence[str]) -> Any:
    """A dictionary column from codes, with only the values that occur."""
    used = np.bincount(codes, minlength=1) > 0
    indices = (np.cumsum(used) - 1)[codes]
    vocabulary = pa.array([words[code] for code in np.flatnonzero(used).tolist()], pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), vocabulary)


def _cast(column: Any, kind: Any, count: int) -> Any:
    if column is None:
        return pa.nulls(count, kind)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return column if column.type == kind else column.cast(kind)


def _dests(task: WriteTask, dests: Any, kind: np.ndarray, record: Any) -> Any:
    if dests.null_count == len(dests):
        return pa.nulls(len(record), SCHEMA.field("dests").type)
    numbers = {host: process for process, host in enumerate(task.hosts)}
    lists = [
        None if names is None or code != SEND else sorted({numbers[name] for name in names})
        for names, code in zip(dests.take(record).to_pylist(), kind.tolist(), strict=True)
    ]
    return pa.array(lists, SCHEMA.field("dests").type)
