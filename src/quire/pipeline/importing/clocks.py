"""Vector clocks against the events that they name: are these there, and does a clock know all that they knew?

A clock that has grown in entry g says that the event happened after event c of host g. Often several entries grow at once,
because the host that was heard had heard of others. An entry that another of them accounts for is no cause of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import msgspec
import numpy as np
import pyarrow as pa

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
    """The most causes that one record has."""
    sum_max: int = 0
    """The greatest sum of a clock's entries."""


class _Clocks:
    """The clocks of a host, by execution and its own entry."""

    def __init__(self, table: pa.Table) -> None:
        self.execution = np.asarray(table["execution"])
        self.own = np.asarray(table["own"])
        self.offsets, hosts, self.counts = flatten(table, "clock_hosts", "clock_counts")
        self.hosts = np.asarray(hosts)

    def find(self, execution: int, count: int) -> int | None:
        begin, end = np.searchsorted(self.execution, (execution, execution + 1)).tolist()
        index = begin + int(np.searchsorted(self.own[begin:end], count))
        return index if index < end and self.own[index] == count else None

    def at(self, index: int) -> dict[int, int]:
        part = slice(self.offsets[index], self.offsets[index + 1])
        return dict(zip(self.hosts[part].tolist(), self.counts[part].tolist(), strict=True))


def resolve(task: ResolveTask) -> Resolved:
    found = Resolved(Defects([], {}))
    clocks: dict[int, _Clocks] = {}

    def of(process: int) -> _Clocks:
        if process not in clocks:
            clocks[process] = _Clocks(task.scratch.load("local", task.run, process))
        return clocks[process]

    for member in task.members:
        reporter = DefectReporter(
            task.source, member.host, task.scratch.load("local", task.run, member.process), found.defects
        )  # fmt: skip
        mine = of(member.process)
        learned = task.scratch.load("learned", task.run, member.process)
        rows, hosts, counts = (np.asarray(learned[name]) for name in ("row", "host", "count"))
        edges: list[tuple[int, int, int]] = []
        borders = [0, *(np.flatnonzero(rows[1:] != rows[:-1]) + 1).tolist(), len(rows)] if len(rows) else []
        for begin, end in pairwise(borders):
            row = int(rows[begin])
            named = list(zip(hosts[begin:end].tolist(), counts[begin:end].tolist(), strict=True))
            edges += _causes(task, reporter, member.process, mine, row, named, of)
        found.sum_max = max(found.sum_max, sum(mine.at(len(mine.own) - 1).values()))
        causes = np.bincount([row for row, *_ in edges]) if edges else np.zeros(1, np.int64)
        found.causes_max = max(found.causes_max, int(causes.max()))
        table = np.array(edges, np.int64).reshape(-1, 3)
        columns = [pa.array(table[:, 0]), pa.array(table[:, 1].astype(np.int32)), pa.array(table[:, 2])]
        task.scratch.save("edges", task.run, member.process, pa.table(columns, schema=EDGES))
    return found


def _causes(
    task: ResolveTask, reporter: DefectReporter, own: int, mine: _Clocks, row: int,
    named: Sequence[tuple[int, int]], of: Callable[[int], _Clocks],
) -> list[tuple[int, int, int]]:  # fmt: skip
    """The events that this one is an immediate consequence of."""
    clock, execution = mine.at(row), int(mine.execution[row])
    there: dict[int, tuple[int, dict[int, int]]] = {}
    for host, count in named:
        index = of(host).find(execution, count)
        if index is None:
            because = f"its clock names event {count} of {task.hosts[host]}, which does not exist"
            reporter.report(row, DefectKind.NOT_THERE, because)
            continue
        theirs = of(host).at(index)
        there[host] = (index, theirs)
        if theirs.get(own, 0) >= clock[own]:
            because = f"its clock names event {count} of {task.hosts[host]}, whose clock names this event"
            reporter.report(row, DefectKind.CYCLE, because)
        for other, known in theirs.items():
            if clock.get(other, 0) < known:
                because = (
                    f"its clock names event {count} of {task.hosts[host]}, "
                    f"but has a lower entry for {task.hosts[other]} than that event's clock"
                )
                reporter.report(row, DefectKind.NOT_COVERED, because)
                break
    counts = dict(named)
    return [
        (row, host, index)
        for host, (index, _) in sorted(there.items())
        if not any(theirs.get(host, 0) >= counts[host] for other, (_, theirs) in there.items() if other != host)
    ]
