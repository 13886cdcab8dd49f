"""Gathers a host's records from all chunks in local order and, with vector clocks, finds which entries grew at each event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quire.pipeline.compiled import compiled
from quire.pipeline.importing.defects import Defect, DefectKind, Defects
from quire.pipeline.importing.keys import save_keys
from quire.pipeline.importing.records import RECORDS, as_lists, rename_hosts
from quire.pipeline.importing.scratch import Scratch, load_records

_LOCAL_ORDER = ("execution", "order", "file", "line")
LEARNED = pa.schema([("row", pa.int64()), ("host", pa.int32()), ("count", pa.int64())])


class Part(msgspec.Struct, frozen=True):
    """Where records of a host are: rows of a batch in a chunk's file."""

    chunk: int
    batch: int
    first_row: int
    rows: int


class Member(msgspec.Struct, frozen=True):
    """A host of a run, and where its records are."""

    process: int
    host: str
    parts: tuple[Part, ...]


class Source(msgspec.Struct, frozen=True):
    """Names for error messages: the files, and the unit of line numbers."""

    files: tuple[str, ...]
    unit: str


class GatherTask(msgspec.Struct, tag="gather"):
    scratch: Scratch
    source: Source
    run: int
    hosts: tuple[str, ...]
    members: tuple[Member, ...]
    clocked: bool
    together: bool
    """Whether several executions share the run, one after the other. Each chunk then has a file with its executions'
    numbers."""
    buckets: int
    secret: int


class Gathered(msgspec.Struct):
    defects: Defects
    rows: int


def gather(task: GatherTask) -> Gathered:
    defects, rows = Defects([], {}), 0
    for member in task.members:
        strangers: dict[str, int] = {}
        table = pa.Table.from_batches([_load(task, part, strangers) for part in member.parts], RECORDS).combine_chunks()
        if task.clocked:
            table = _by_clock(task, member, table, list(strangers), defects)
        else:
            if not _is_sorted(table):
                table = table.take(pc.sort_indices(table, [(name, "ascending") for name in _LOCAL_ORDER]))
            save_keys(task.scratch, task.run, member.process, table, task.buckets, task.secret)
        task.scratch.save("local", task.run, member.process, table)
        rows += table.num_rows
    return Gathered(defects, rows)


def _load(task: GatherTask, part: Part, strangers: dict[str, int]) -> pa.RecordBatch:
    """The records, with the run's numbers for their executions and for the hosts in their clocks; hosts without records are
    numbered after the others."""
    names, batch = load_records(task.scratch.path("records", part.chunk), part.batch)
    batch = batch.slice(part.first_row, part.rows)
    if task.clocked:
        numbers = {host: number for number, host in enumerate(task.hosts)}
        spread = [
            numbers[name] if name in numbers else strangers.setdefault(name, len(task.hosts) + len(strangers)) for name in names
        ]
        batch = rename_hosts(batch, np.array(spread, np.int32))
    execution = np.zeros(part.rows, np.int64)
    if task.together:
        execution = task.scratch.load_numbers("executions", part.chunk)[np.asarray(batch["execution"])]
    return batch.set_column(batch.schema.get_field_index("execution"), "execution", pa.array(execution.astype(np.int32)))


def _is_sorted(table: pa.Table) -> bool:
    """Whether the records are in local order already, as those of most logs are."""
    if table["order"].null_count:
        return False
    same = np.ones(max(0, table.num_rows - 1), np.bool_)
    for name in _LOCAL_ORDER:
        values = np.asarray(table[name])
        if (same & (values[1:] < values[:-1])).any():
            return False
        same &= values[1:] == values[:-1]
    return True


class DefectReporter:
    """Reports defects in one host's records, with file and line."""

    def __init__(self, source: Source, host: str, table: pa.Table, defects: Defects) -> None:
        self._source, self._host, self._defects = source, host, defects
        self._file, self._line = table["file"], table["line"]

    def report(self, row: int, kind: DefectKind, because: str) -> None:
        file = self._source.files[self._file[row].as_py()]
        self._defects.add(Defect(file, self._line[row].as_py(), self._host, kind, because, self._source.unit))

    def where(self, row: int) -> str:
        return f"{self._source.files[self._file[row].as_py()]} {self._source.unit} {self._line[row].as_py()}"


def _by_clock(
    task: GatherTask, member: Member, table: pa.Table, strangers: Sequence[str], defects: Defects
) -> pa.Table:  # fmt: skip
    """Sort the records by the host's own clock entry, and save what each event learned about others, to be resolved later."""
    own = _own_entries(table, member.process)
    execution = np.asarray(table["execution"])
    order = np.lexsort((np.asarray(table["line"]), np.asarray(table["file"]), own, execution))
    if (order[1:] < order[:-1]).any():
        table, own, execution = table.take(order), own[order], execution[order]
    begins = np.concatenate(([True], execution[1:] != execution[:-1]))
    offsets, hosts, counts = flatten(table, "clock_hosts", "clock_counts")
    host = np.asarray(hosts)
    reporter = DefectReporter(task.source, member.host, table, defects)
    for row in np.flatnonzero(own == 0).tolist():
        reporter.report(row, DefectKind.NO_OWN_ENTRY, "its clock has no entry for the host itself")
    for row in (np.flatnonzero((own[1:] == own[:-1]) & (own[1:] > 0) & ~begins[1:]) + 1).tolist():
        reporter.report(
            row, DefectKind.DUPLICATE,
            f"its own entry is {own[row]}, as at {reporter.where(row - 1)}; --delimiter separates several executions",
        )  # fmt: skip
    before = np.where(begins, 0, np.concatenate(([0], own[:-1])))
    for row in np.flatnonzero((own > before + 1) & (own > 0)).tolist():
        reporter.report(
            row, DefectKind.GAP, f"its own entry is {own[row]}, but there is no event {before[row] + 1} of the host"
        )
    if strangers:
        row_of = np.repeat(np.arange(len(own)), np.diff(offsets))
        keep = host < len(task.hosts)
        for entry in np.flatnonzero(~keep).tolist():
            name = strangers[host[entry] - len(task.hosts)]
            reporter.report(int(row_of[entry]), DefectKind.UNKNOWN_HOST, f"its clock names host {name}, which has no events")
        host, counts = host[keep], counts[keep]
        offsets = np.concatenate(([0], np.cumsum(np.bincount(row_of[keep], minlength=len(own))))).astype(np.int64)
    learned, backwards = learn(offsets, host, counts, begins, member.process, len(task.hosts))
    for row, which in backwards.tolist():
        reporter.report(
            row, DefectKind.BACKWARDS, f"its clock has a lower entry for {task.hosts[which]} than the host's previous event"
        )
    task.scratch.save(
        "learned", task.run, member.process,
        pa.table([learned[:, 0], learned[:, 1].astype(np.int32), learned[:, 2]], schema=LEARNED),
    )  # fmt: skip
    lengths = np.diff(offsets)
    table = table.drop_columns(["clock_hosts", "clock_counts", "causes", "key"])
    lists = (("clock_hosts", as_lists(lengths, host)), ("clock_counts", as_lists(lengths, counts)))
    for name, column in (("own", pa.array(own)), *lists):
        table = table.append_column(name, column)
    return table


def _own_entries(table: pa.Table, process: int) -> np.ndarray:
    """The entry of each clock for its own host; 0 if there is none."""
    offsets, hosts, counts = flatten(table, "clock_hosts", "clock_counts")
    own = np.zeros(table.num_rows, np.int64)
    mine = np.flatnonzero(np.asarray(hosts) == process)
    own[np.searchsorted(offsets, mine, "right") - 1] = counts[mine]
    return own


def flatten(table: pa.Table, *names: str) -> tuple[np.ndarray, Any, np.ndarray]:
    """Two list columns, flattened, and the offsets of the rows; null is an empty list."""
    first, second = (table[name].combine_chunks() for name in names)
    lengths = np.asarray(pc.list_value_length(first).fill_null(0))
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    return offsets, pc.list_flatten(first), np.asarray(pc.list_flatten(second), dtype=np.int64)


@compiled
def learn(
    offsets: np.ndarray, host: np.ndarray, count: np.ndarray, begins: np.ndarray, own: int, hosts: int
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """The entries for other hosts that grew since the previous event's clock, as (row, host, count); and those that shrank, as
    (row, host). At the beginning of an execution, all entries count as 0 before."""
    last = np.zeros(hosts, np.int64)
    now = np.zeros(hosts, np.int64)
    learned = np.empty((len(host), 3), np.int64)
    backwards = np.empty((len(offsets) - 1, 2), np.int64)
    known, wrong = 0, 0
    for row in range(len(offsets) - 1):
        now[:] = 0
        if begins[row]:
            last[:] = 0
        for entry in range(offsets[row], offsets[row + 1]):
            now[host[entry]] = count[entry]
        for other in range(hosts):
            if now[other] < last[other] and (wrong == 0 or backwards[wrong - 1, 0] != row):
                backwards[wrong, 0] = row
                backwards[wrong, 1] = other
                wrong += 1
            if now[other] > last[other] and other != own:
                learned[known, 0] = row
                learned[known, 1] = other
                learned[known, 2] = now[other]
                known += 1
            last[other] = now[other]
    return learned[:known], backwards[:wrong]
