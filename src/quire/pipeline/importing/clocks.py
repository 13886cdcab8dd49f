"""Resolves vector clocks to causes: checks that the events which clocks name exist, and that clocks are consistent.

A clock whose entry for host g has grown to c says that its event happened after event c of host g. Often several entries grow
at once, because the host it heard from had itself heard from others. An entry that another one of them implies is not a cause.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from quire.pipeline.compiled import compiled
from quire.pipeline.importing.defects import DefectKind, Defects
from quire.pipeline.importing.gathering import DefectReporter, Member, Source, flatten
from quire.pipeline.importing.scratch import EDGES, Scratch


class ResolveTask(msgspec.Struct, tag="resolve"):
    scratch: Scratch
    source: Source
    run: int
    hosts: tuple[str, ...]
    members: tuple[Member, ...]


class Resolved(msgspec.Struct):
    defects: Defects
    causes_max: int = 0
    """The largest number of causes of one record."""
    sum_max: int = 0
    """The largest sum of a clock's entries."""


class _Clocks:
    """The clocks of a host, sorted by execution and by the host's own entry."""

    def __init__(self, table: pa.Table) -> None:
        self.execution = np.asarray(table["execution"])
        self.own = np.asarray(table["own"])
        self.offsets, hosts, self.counts = flatten(table, "clock_hosts", "clock_counts")
        self.hosts = np.asarray(hosts)

    def find(self, execution: np.ndarray, count: np.ndarray) -> np.ndarray:
        """The events of these executions whose own entry is `count`; -1 if there is none."""
        if not len(self.own):
            return np.full(len(count), -1, np.int64)
        if self.execution[0] == self.execution[-1]:
            index = np.searchsorted(self.own, count)
        else:
            # Combine both into one key: there are fewer than 2**31 executions, but own entries may be as large as 2**53.
            _, both = np.unique(np.concatenate((self.own, count)), return_inverse=True)
            width = len(both)
            keys = np.concatenate((self.execution, execution)).astype(np.int64) * width + both
            index = np.searchsorted(keys[: len(self.own)], keys[len(self.own) :])
        index = np.minimum(index, len(self.own) - 1).astype(np.int64)
        return np.where((self.own[index] == count) & (self.execution[index] == execution), index, -1)


class _Learned(NamedTuple):
    """The clock entries that grew at the events of a host: the event's row, and the event of another host that it names."""

    row: np.ndarray
    host: np.ndarray
    number: np.ndarray
    """The value of the entry."""
    first: np.ndarray
    """For each entry, the range `first` to `end` of all entries of the same row."""
    end: np.ndarray


def resolve(task: ResolveTask) -> Resolved:
    found = Resolved(Defects([], {}))
    clocks: dict[int, _Clocks] = {}

    def of(process: int) -> _Clocks:
        if process not in clocks:
            clocks[process] = _Clocks(task.scratch.load("local", task.run, process))
        return clocks[process]

    for member in task.members:
        mine = of(member.process)
        row, source, index = _causes(task, member, mine, of, found.defects)
        found.sum_max = max(found.sum_max, int(mine.counts[mine.offsets[-2] : mine.offsets[-1]].sum()))
        found.causes_max = max(found.causes_max, int(np.bincount(row).max()) if len(row) else 0)
        columns = [pa.array(row), pa.array(source.astype(np.int32)), pa.array(index)]
        task.scratch.save("edges", task.run, member.process, pa.table(columns, schema=EDGES))
    return found


def _causes(
    task: ResolveTask, member: Member, mine: _Clocks, of: Callable[[int], _Clocks], defects: Defects
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """The immediate causes of a host's events: the event's row, and the cause's process and row."""
    table = task.scratch.load("learned", task.run, member.process)
    row, host, count = (np.asarray(table[name]) for name in ("row", "host", "count"))
    learned = _Learned(row, host, count, np.searchsorted(row, row), np.searchsorted(row, row, "right"))
    index = np.full(len(row), -1, np.int64)
    covered = np.zeros(len(row), np.bool_)
    problem = np.zeros((len(row), 2), np.int32)
    for other in np.unique(host).tolist():
        theirs, chosen = of(other), np.flatnonzero(host == other)
        index[chosen] = theirs.find(mine.execution[row[chosen]], count[chosen])
        compare(
            chosen[index[chosen] >= 0], index, learned.row, learned.host, learned.number, learned.first, learned.end,
            mine.offsets, mine.hosts, mine.counts, theirs.offsets, theirs.hosts, theirs.counts, member.process,
            len(task.hosts), covered, problem,
        )  # fmt: skip
    _report(task, member, learned, index, problem, defects)
    chosen = np.flatnonzero((index >= 0) & ~covered)
    return row[chosen], host[chosen], index[chosen]


def _report(
    task: ResolveTask, member: Member, learned: _Learned, index: np.ndarray, problem: np.ndarray, defects: Defects
) -> None:  # fmt: skip
    """Report events that clocks name but that do not exist or contradict them."""
    wrong = np.flatnonzero((index < 0) | problem.any(axis=1)).tolist()
    if not wrong:
        return
    reporter = DefectReporter(task.source, member.host, task.scratch.load("local", task.run, member.process), defects)
    for each in wrong:
        row, names = int(learned.row[each]), f"its clock names event {learned.number[each]} of {task.hosts[learned.host[each]]}"
        if index[each] < 0:
            reporter.report(row, DefectKind.NOT_THERE, f"{names}, which does not exist")
        if problem[each, 0]:
            reporter.report(row, DefectKind.CYCLE, f"{names}, whose clock names this event")
        if problem[each, 1]:
            less = task.hosts[problem[each, 1] - 1]
            reporter.report(row, DefectKind.NOT_COVERED, f"{names}, but has a lower entry for {less} than that event's clock")


@compiled
def compare(
    chosen: np.ndarray, index: np.ndarray, row: np.ndarray, host: np.ndarray, count: np.ndarray, first: np.ndarray,
    end: np.ndarray, offsets: np.ndarray, hosts: np.ndarray, counts: np.ndarray, their_offsets: np.ndarray,
    their_hosts: np.ndarray, their_counts: np.ndarray, own: int, members: int, covered: np.ndarray, problem: np.ndarray,
) -> None:  # fmt: skip
    """Compare the clocks of a host with those of another host's events that they name. Entries that the other clock implies are
    marked `covered`. `problem`: whether the other clock names the event itself, and 1 + the first host of which it knows
    more."""
    now, at = np.zeros(members, np.int64), np.full(members, -1, np.int64)
    for each in chosen:
        mine, theirs = row[each], index[each]
        for entry in range(offsets[mine], offsets[mine + 1]):
            now[hosts[entry]] = counts[entry]
        for entry in range(first[each], end[each]):
            at[host[entry]] = entry
        for entry in range(their_offsets[theirs], their_offsets[theirs + 1]):
            other, known = their_hosts[entry], their_counts[entry]
            if other == own and known >= now[own]:
                problem[each, 0] = 1
            if known > now[other] and problem[each, 1] == 0:
                problem[each, 1] = 1 + other
            if other != host[each] and at[other] >= 0 and known >= count[at[other]]:
                covered[at[other]] = True
        for entry in range(offsets[mine], offsets[mine + 1]):
            now[hosts[entry]] = 0
        for entry in range(first[each], end[each]):
            at[host[entry]] = -1
