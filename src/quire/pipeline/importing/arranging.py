"""Finds a local order for events that name their causes but have no order at their host: spans, commits, agents' steps.

Start times do not give an order: clocks differ, a host may do several things at once, and many events start at the same time.
So chains of events of a host that follow each other become lanes, each a process of the trace, and nothing is ordered that the
log does not order. If the log states positions at the hosts, or there would be too many lanes, each host has one order: with
causes first, which follows the positions or times otherwise.

Executions that share a run are placed one after the other.

One task does this for a run, with about 100 bytes per event, and 8 bytes per host for each event that others follow.
"""

from __future__ import annotations

import os
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from quire.model.errors import BadInput
from quire.pipeline.causes import arrange as arrange_graph
from quire.pipeline.causes import begins, circle, in_order, news
from quire.pipeline.importing.defects import KEPT_MAX, DefectKind, Defects
from quire.pipeline.importing.gathering import DefectReporter, Source
from quire.pipeline.importing.lanes import LANES_MAX, find_lanes, name_lanes
from quire.pipeline.importing.mapping import NOWHERE
from quire.pipeline.importing.scratch import EDGES, Scratch, save_table, sort_edges
from quire.trace.kinds import DELIVER, VIEW

_VECTORS_MAX = 400_000_000
"""If vectors would need more entries than this, they are not computed, and causes that another one implies are kept."""

_UNTIMED = -(1 << 62)


class ArrangeTask(msgspec.Struct, tag="arrange"):
    scratch: Scratch
    source: Source
    run: int
    hosts: tuple[str, ...]
    active: tuple[int, ...]
    """The processes that have records."""
    lanes: bool | None
    """Whether to split hosts into lanes, so that only events which follow each other are ordered. None: if few suffice."""


class Skew(msgspec.Struct, frozen=True, order=True):
    """How far the clock of one host is behind another's: a lower bound, from events that began before the ones they followed;
    and an estimate from the shortest delays in both directions, if there are both."""

    behind: str
    ahead: str
    events: int
    at_least_ns: int
    estimate_ns: int | None


class ArrangedRecords(msgspec.Struct):
    defects: Defects
    hosts: list[str]
    """The resulting processes: hosts, or lanes of hosts."""
    skews: list[Skew]
    dropped: int = 0
    timed: bool = False
    """Whether events of a host that do not follow each other are in the order of their times."""
    crowded: bool = False
    """Whether they are because there would be too many lanes."""


class _Graph(NamedTuple):
    """All records of a run, grouped by process, and the (effect, cause) pairs between them."""

    start: np.ndarray
    process: np.ndarray
    execution: np.ndarray
    """The execution of each record; there are no causes across executions."""
    time: np.ndarray
    known: np.ndarray
    placed: bool
    """Whether the log states positions at the hosts."""
    follows: bool
    """Whether the log says what follows what at all."""
    effect: np.ndarray
    cause: np.ndarray
    kept: np.ndarray
    """Which records are kept: those that do not repeat others."""


def arrange(task: ArrangeTask) -> ArrangedRecords:
    graph = _read(task)
    found = arrange_graph(graph.effect, graph.cause, graph.time)
    if (found.depth < 0).any():
        raise BadInput(_explain(task, graph, circle(graph.effect, graph.cause, found.depth)))
    order = in_order(graph.execution, found.time, found.depth)
    order = order[graph.kept[order]]
    done = ArrangedRecords(Defects([], {}), list(task.hosts), [], int((~graph.kept).sum()))
    if task.hosts != (NOWHERE,):
        _compare_clocks(task, graph, done)
    effect, cause = graph.effect, graph.cause
    if not (effect[1:] > effect[:-1]).all():  # Otherwise each event has one cause, and they are sorted.
        by_effect = np.lexsort((_ranks(order, len(graph.time))[cause], effect))
        effect, cause = effect[by_effect], cause[by_effect]
    begin = begins(effect, len(graph.time))
    process = graph.process
    if task.lanes or (task.lanes is None and graph.follows and not graph.placed):
        lane = find_lanes(order, begin, cause, graph.execution, process, task.hosts, many=bool(task.lanes))
        if lane is not None:
            # Records that repeat others have no lane, and are not written.
            used, process = np.unique(process * LANES_MAX + np.maximum(lane, 0), return_inverse=True)
            done.hosts = name_lanes(task.hosts, used)
        done.timed = done.crowded = lane is None
    else:
        done.timed = not graph.placed
    members = len(done.hosts)
    # Number the records of each process, in the common order.
    by_process = order[np.argsort(process[order].astype(np.uint16), kind="stable")]
    sizes = np.bincount(process[by_process], minlength=members)
    first = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    number = np.zeros(len(graph.time), np.int64)
    number[by_process] = np.arange(len(by_process)) - np.repeat(first[:-1], sizes)
    told = _told(order, process, number, begin, effect, cause, members)
    _write(task, graph, by_process, first, process, number, effect[told], cause[told])
    return done


def _read(task: ArrangeTask) -> _Graph:
    sizes = np.zeros(len(task.hosts), np.int64)
    executions, times, known, kept, placed, follows = [], [], [], [], False, False
    for process in task.active:
        local = task.scratch.load("local", task.run, process)
        sizes[process] = local.num_rows
        kind = np.asarray(local["kind"])
        if others := np.flatnonzero((kind == DELIVER) | (kind == VIEW)).tolist():
            where = DefectReporter(task.source, task.hosts[process], local, Defects([], {})).where(others[0])
            raise BadInput(f"{where} delivers a message, but other events of the log say what they follow; import them apart")
        executions.append(np.asarray(local["execution"]))
        column = local["order"]
        known.append(np.asarray(column.is_valid()))
        placed = placed or not local["order"].equals(local["time_ns"])
        follows = follows or local["causes"].null_count < local.num_rows
        times.append(np.asarray(column.fill_null(pa.scalar(_UNTIMED, pa.int64()))))
        repeats = np.zeros(local.num_rows, np.bool_)
        repeats[np.asarray(task.scratch.load("again", task.run, process)["row"])] = True
        kept.append(~repeats)
    start = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    effects, causes = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for process in task.active:
        edges = task.scratch.load("edges", task.run, process)
        row, source, index = (np.asarray(edges[name]) for name in ("row", "source", "index"))
        effects.append(start[process] + row)
        causes.append(start[source] + index)
    effect, cause = np.concatenate(effects), np.concatenate(causes)
    whole = np.concatenate(kept)
    wanted = whole[effect]
    processes = np.repeat(np.arange(len(task.hosts)), sizes)
    return _Graph(
        start, processes, np.concatenate(executions), np.concatenate(times), np.concatenate(known), placed, follows,
        effect[wanted], cause[wanted], whole,
    )  # fmt: skip


def _ranks(order: np.ndarray, events: int) -> np.ndarray:
    ranks = np.full(events, -1, np.int64)
    ranks[order] = np.arange(len(order))
    return ranks


def _told(
    order: np.ndarray, process: np.ndarray, number: np.ndarray, begin: np.ndarray, effect: np.ndarray, cause: np.ndarray,
    members: int,
) -> np.ndarray:  # fmt: skip
    """Which (effect, cause) pairs are needed: the others follow from these and from the local orders."""
    is_named = np.zeros(len(process), np.bool_)
    is_named[cause[process[cause] != process[effect]]] = True
    named = np.flatnonzero(is_named)
    if len(named) * members > _VECTORS_MAX:
        return np.asarray(process[cause] != process[effect])
    row = np.full(len(process), -1, np.int64)
    row[named] = np.arange(len(named))
    found: np.ndarray = news(order, process, number, begin, cause, row, members, len(named))
    return found


def _compare_clocks(task: ArrangeTask, graph: _Graph, done: ArrangedRecords) -> None:
    """Report events that began before their causes, and what that reveals about the clocks of two hosts."""
    timed = graph.known[graph.effect] & graph.known[graph.cause]
    effect, cause = graph.effect[timed], graph.cause[timed]
    took = graph.time[effect] - graph.time[cause]
    early_pairs = np.flatnonzero(took < 0)
    for pair in early_pairs[:KEPT_MAX].tolist():
        one, other = int(effect[pair]), int(cause[pair])
        early = f"it began {-int(took[pair]):,} ns before {_where(task, graph, other)}, which it follows"
        _reporter(task, graph, one, done.defects).report(_row(graph, one), DefectKind.EARLY, early)
    if not len(early_pairs):
        return
    done.defects.counts[DefectKind.EARLY] = len(early_pairs)
    # Only the ways on which something was early matter, and the ways back.
    hosts = len(task.hosts)
    way, back = graph.process[cause] * hosts + graph.process[effect], graph.process[effect] * hosts + graph.process[cause]
    chosen = np.flatnonzero(np.isin(way, way[early_pairs]) | np.isin(back, way[early_pairs]))
    ways, inverse = np.unique(way[chosen], return_inverse=True)
    least = np.full(len(ways), np.iinfo(np.int64).max)
    np.minimum.at(least, inverse, took[chosen])
    early_counts = np.bincount(inverse, weights=took[chosen] < 0, minlength=len(ways)).astype(np.int64)
    shortest = dict(zip(ways.tolist(), least.tolist(), strict=True))
    for index, both in enumerate(ways.tolist()):
        ahead, behind = divmod(both, hosts)
        if least[index] < 0 and ahead != behind:
            returned = shortest.get(behind * hosts + ahead)
            estimate = None if returned is None else max(-int(least[index]), (returned - int(least[index])) // 2)
            done.skews.append(
                Skew(task.hosts[behind], task.hosts[ahead], int(early_counts[index]), -int(least[index]), estimate)
            )
    done.skews.sort(key=lambda skew: (-skew.at_least_ns, skew))


def _write(
    task: ArrangeTask, graph: _Graph, by_process: np.ndarray, first: np.ndarray, process: np.ndarray, number: np.ndarray,
    effect: np.ndarray, cause: np.ndarray,
) -> None:  # fmt: skip
    """Write the records of each process in their new order, and their causes."""
    records = pa.concat_tables([task.scratch.load("local", task.run, active) for active in task.active])
    sizes = np.diff(graph.start)
    place = np.empty(len(graph.time), np.int64)
    place[by_process] = np.arange(len(by_process))
    edge_order = sort_edges(place[effect], process[cause], number[cause])
    effect, cause = effect[edge_order], cause[edge_order]
    of = process[effect]
    bounds = np.searchsorted(of, np.arange(len(first)))
    nothing = EDGES.empty_table()
    for own in range(len(first) - 1):
        mine = by_process[first[own] : first[own + 1]]
        if not len(mine) and own not in task.active:
            continue
        if (
            len(first) - 1 > len(task.hosts)
            or len(mine) != sizes[own]
            or (mine != graph.start[own] + np.arange(len(mine))).any()
        ):
            _replace(task, "local", own, records.take(pa.array(mine)))
        edges = slice(bounds[own], bounds[own + 1])
        columns = [
            pa.array(number[effect[edges]]), pa.array(process[cause[edges]].astype(np.int32)), pa.array(number[cause[edges]])
        ]  # fmt: skip
        _replace(task, "edges", own, pa.table(columns, schema=EDGES))
        if own >= len(task.hosts) or own not in task.active or task.scratch.load("again", task.run, own).num_rows:
            _replace(task, "again", own, nothing)


def _replace(task: ArrangeTask, stage: str, process: int, table: pa.Table) -> None:
    """Replace a table that is still memory-mapped."""
    path = task.scratch.path(stage, task.run, process)
    save_table(f"{path}.new", table)
    os.replace(f"{path}.new", path)


def _explain(task: ArrangeTask, graph: _Graph, found: list[int]) -> str:
    names = [_where(task, graph, event) for event in found]
    steps = [f"{one} follows {other}" for one, other in zip(names, [*names[1:], names[0]], strict=True)]
    return f"the log contradicts itself in a circle: {', and '.join(steps)}"


def _where(task: ArrangeTask, graph: _Graph, event: int) -> str:
    local = task.scratch.load("local", task.run, int(graph.process[event]))
    name = local["key"][_row(graph, event)].as_py()
    return f"{name} ({_reporter(task, graph, event, Defects([], {})).where(_row(graph, event))})"


def _row(graph: _Graph, event: int) -> int:
    return event - int(graph.start[graph.process[event]])


def _reporter(task: ArrangeTask, graph: _Graph, event: int, defects: Defects) -> DefectReporter:
    process = int(graph.process[event])
    return DefectReporter(task.source, task.hosts[process], task.scratch.load("local", task.run, process), defects)
