"""Queries on each of many executions: its critical path, and the causally first matches of a pattern.

Executions are small and independent, so a task reads several consecutive ones at once and answers for each in turn. It needs no
vector times: whether an event has a match in its past is passed on with the messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from quire.model.errors import BadInput
from quire.pipeline.causality.critical import Path, find_path, is_timed
from quire.pipeline.causality.events import matches_of, words_of
from quire.pipeline.columns import flags, numbers
from quire.pipeline.compiled import compiled
from quire.pipeline.layout import RowGroup, World
from quire.pipeline.merge import merge_by_lamport
from quire.pipeline.numbering import number_sends
from quire.pipeline.reading import TraceReader
from quire.pipeline.slices import Events, read_events
from quire.trace.kinds import DELIVER, SEND
from quire.trace.schema import EVENT, FILE, IMPLIED, LINE

FIRST_MAX = 20
"""How many causally first matches of an execution are listed."""


class EachTask(msgspec.Struct, tag="each"):
    """The queries on some consecutive executions of a run."""

    world: World
    groups: tuple[RowGroup, ...]
    begins: np.ndarray
    """The logical times at which each begins and the last one ends; empty if the run is a single execution."""
    by: str | None
    """The measure of the critical path."""
    pattern: str | None
    """The pattern whose first matches are sought, in RE2's syntax."""
    column: str


class FirstMatch(msgspec.Struct, frozen=True):
    """A match with no other match in its causal past."""

    process: int
    pos: int
    text: str
    file: str | None
    line: int | None


class ExecutionAnswer(msgspec.Struct):
    """The answers for one execution."""

    events: int
    processes: int
    lasted_ns: int | None
    """From its first event to its last, by the clocks of their processes; None if times are not recorded."""
    path: Path | None
    first: list[FirstMatch]
    matches: int


class Answers(msgspec.Struct):
    executions: list[ExecutionAnswer]


def ask_each(task: EachTask) -> Answers:
    bounds = (int(task.begins[0]), int(task.begins[-1])) if len(task.begins) else (None, None)
    events = read_events(task.world, task.groups, *bounds, dests=False, every=True, clock=True, numbered=True)
    if not events.ordered:
        raise BadInput(f"the logical times of {task.world.run} are wrong, so its executions cannot be told apart")
    matches = _Matches(np.zeros(len(events.kind), np.bool_), {})
    if task.pattern is not None:
        matches = _find(task, task.pattern, *bounds)
    return Answers([_answer(task, one, matches) for one in _apart(events, task.begins)])


class _Apart(NamedTuple):
    """One execution on its own, with its processes, and the messages of each, renumbered from 0."""

    processes: np.ndarray
    """Their numbers in the run."""
    rows: np.ndarray
    """The indices of its events among those of all executions."""
    events: Events
    new: np.ndarray


def _apart(events: Events, begins: np.ndarray) -> Iterator[_Apart]:
    """Split the events into executions."""
    process = np.repeat(np.arange(len(events.start) - 1), np.diff(events.start))
    execution = np.zeros(len(process), np.int64)
    if len(begins):
        execution = np.searchsorted(begins, events.lamport, side="right") - 1
    # A stable sort: within an execution the events stay by process and position.
    order = np.argsort(execution, kind="stable")
    ends = np.searchsorted(execution[order], np.arange(max(len(begins) - 1, 1) + 1))
    for begin, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        rows = order[begin:end]
        processes, own = np.unique(process[rows], return_inverse=True)
        start = np.concatenate(([0], np.cumsum(np.bincount(own, minlength=len(processes))))).astype(np.int64)
        origin = np.searchsorted(processes, events.origin[rows])
        known = np.append(processes, -1)[origin] == events.origin[rows]
        origin = np.where(known, origin, -1).astype(np.int32)
        kind, seq = events.kind[rows], events.seq[rows]
        base = np.full(len(processes), -1, np.int64)
        new, *_ = number_sends(start, kind, origin, seq, base)
        seq = seq - np.where(known, base[origin], 0)
        nothing = np.empty(0, np.int32)
        yield _Apart(processes, rows, Events(
            start, kind, origin, seq, events.lamport[rows], events.pos[rows], nothing, nothing, True, events.time_ns[rows],
            False, events.implied[rows],
        ), new)  # fmt: skip


class _Matches(NamedTuple):
    hit: np.ndarray
    """Which rows match, in the order in which events are read."""
    said: dict[int, tuple[str, str | None, int | None]]
    """What each of them says, and where."""


def _find(task: EachTask, pattern: str, low: int | None, high: int | None) -> _Matches:
    hits: list[np.ndarray] = []
    said: dict[int, tuple[str, str | None, int | None]] = {}
    first = 0
    with TraceReader(task.world.run) as reader:
        for _, table in reader.read_files(task.groups, (task.column, "lamport"), optional=(EVENT, IMPLIED, FILE, LINE)):
            lamport = numbers(table, "lamport")[0]
            wanted = np.ones(len(lamport), np.bool_)
            if low is not None and high is not None:
                wanted = (lamport >= low) & (lamport < high)
            table = table.filter(pa.array(wanted))
            text = words_of(table, task.column)
            hit = matches_of(text, pattern)
            if IMPLIED in table.column_names:
                hit = hit & ~flags(table, IMPLIED)
            for row in np.flatnonzero(hit).tolist():
                file, line = (table[name][row].as_py() if name in table.column_names else None for name in (FILE, LINE))
                said[first + row] = text[row].as_py(), file, line
            hits.append(hit)
            first += len(hit)
    return _Matches(np.concatenate([np.empty(0, np.bool_), *hits]), said)


def _answer(task: EachTask, one: _Apart, matches: _Matches) -> ExecutionAnswer:
    events = one.events
    turn = merge_by_lamport(events.start, events.lamport)
    hit = matches.hit[one.rows]
    first: list[FirstMatch] = []
    if hit.any():
        found = first_matches(turn, events.start, events.kind, events.origin, events.seq, one.new, hit)
        for row in np.flatnonzero(found)[:FIRST_MAX].tolist():
            process = int(np.searchsorted(events.start, row, side="right")) - 1
            first.append(FirstMatch(int(one.processes[process]), int(events.pos[row]), *matches.said[int(one.rows[row])]))
    path = None
    if task.by == "events" or (task.by is not None and is_timed(events)):
        path = find_path(events, turn, one.new, task.by)
        path.stretches = [
            msgspec.structs.replace(stretch, process=int(one.processes[stretch.process]), message=None)
            for stretch in path.stretches
        ]
    times = events.time_ns[~events.implied & (events.time_ns != 0)]
    lasted = int(times.max() - times.min()) if len(times) else None
    return ExecutionAnswer(int((~events.implied).sum()), len(one.processes), lasted, path, first, int(hit.sum()))


@compiled
def first_matches(
    turn: np.ndarray, start: np.ndarray, kind: np.ndarray, origin: np.ndarray, seq: np.ndarray, new: np.ndarray,
    hit: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Which of the matches have no other match in their causal past."""
    members = len(start) - 1
    cursor = start[:members].copy()
    first_row = np.zeros(members + 1, np.int64)
    for process in range(members):
        first_row[process + 1] = first_row[process] + new[process]
    heard = np.zeros(members, np.bool_)
    told = np.zeros(first_row[members], np.bool_)
    first = np.zeros(len(kind), np.bool_)
    for process in turn:
        row = cursor[process]
        cursor[process] += 1
        source, number = origin[row], seq[row]
        is_known = 0 <= source < members and 0 <= number < new[source]
        if kind[row] == DELIVER and is_known and told[first_row[source] + number]:
            heard[process] = True
        if hit[row]:
            first[row] = not heard[process]
            heard[process] = True
        if kind[row] == SEND and is_known and source == process:
            told[first_row[source] + number] = heard[process]
    return first
