"""Turns records and their causes into the rows of a trace, with message numbers and logical times.

An event becomes one delivery for each of its causes, then a row for the event itself, which is a send if others name it.
"""

from __future__ import annotations

import msgspec
import numpy as np

from quire.model.errors import BadInput
from quire.pipeline.causality.cycles import CycleStep, shortest_cycle
from quire.pipeline.causality.kernel import logical_times, older_deliveries
from quire.pipeline.importing.defects import Defects
from quire.pipeline.importing.gathering import DefectReporter, Source, flatten
from quire.pipeline.importing.scratch import Scratch
from quire.pipeline.merge import merge_by_lamport, rebuild
from quire.pipeline.slices import Events
from quire.trace.kinds import DELIVER, LOCAL, SEND, VIEW

TIME_END = 1 << 62
"""Logical times stay below this."""


class NumberTask(msgspec.Struct, tag="number"):
    """Number the messages of some processes of a run."""

    scratch: Scratch
    run: int
    active: tuple[int, ...]
    """All processes that have records."""
    processes: tuple[int, ...]
    clocked: bool


class Numbered(msgspec.Struct):
    messages: int


class StampTask(msgspec.Struct, tag="stamp"):
    """Assign every row of a run a logical time; raises BadInput if the logs contradict each other."""

    scratch: Scratch
    source: Source
    run: int
    hosts: tuple[str, ...]
    active: tuple[int, ...]
    clocked: bool
    together: int
    """How many executions share the run, one after the other; 0 if it is a single one."""


class Stamped(msgspec.Struct):
    kept: bool
    """Whether the log's own logical times were kept, because they were consistent."""
    begins: np.ndarray
    """If executions share the run: the logical times at which each begins and the last one ends."""
    events: np.ndarray
    """The number of events of each execution."""


class Rows(msgspec.Struct):
    """The rows of a process: the kind and message of each, and its record."""

    kind: np.ndarray
    origin: np.ndarray
    seq: np.ndarray
    record: np.ndarray
    rank: np.ndarray
    """The index among the rows of its record."""


def number(task: NumberTask) -> Numbered:
    kinds = [np.asarray(task.scratch.load("local", task.run, process)["kind"]) for process in task.processes]
    first = np.concatenate(([0], np.cumsum([len(kind) for kind in kinds]))).astype(np.int64)
    named = np.concatenate(kinds) == SEND
    begin = np.full(max((*task.active, *task.processes)) + 1, -1, np.int64)
    begin[list(task.processes)] = first[:-1]
    for process in task.active:
        source, index = _sources(task.scratch, "edges", task.run, process)[1:]
        ours = np.flatnonzero((source >= 0) & (begin[source] >= 0))
        named[begin[source[ours]] + index[ours]] = True
    messages = 0
    for process, low, high in zip(task.processes, first[:-1].tolist(), first[1:].tolist(), strict=True):
        flags = named[low:high]
        if not task.clocked:
            flags[_sources(task.scratch, "again", task.run, process)[0]] = False
        numbers = np.where(flags, np.cumsum(flags) - 1, -1)
        task.scratch.save_numbers("numbers", task.run, process, values=numbers)
        messages += int(flags.sum())
    return Numbered(messages)


class Numbers:
    """The numbers of the messages that the records of a run sent; -1 for those that sent none."""

    def __init__(self, scratch: Scratch, run: int) -> None:
        self._scratch, self._run = scratch, run
        self._of: dict[int, np.ndarray] = {}

    def of(self, process: int) -> np.ndarray:
        if process not in self._of:
            self._of[process] = self._scratch.load_numbers("numbers", self._run, process)
        return self._of[process]

    def messages(self, source: np.ndarray, index: np.ndarray) -> np.ndarray:
        """The numbers of the messages that these records sent; a message that nobody sent keeps its hashed name."""
        seq = index.copy()
        by_source = np.argsort(source, kind="stable")
        processes, first = np.unique(source[by_source], return_index=True)
        for process, chosen in zip(processes.tolist(), np.split(by_source, first[1:]), strict=False):
            if process >= 0:
                seq[chosen] = self.of(process)[index[chosen]]
        return seq


def lay_rows(scratch: Scratch, run: int, process: int, clocked: bool, numbers: Numbers) -> Rows:
    """The rows of a process, in local order."""
    kinds = np.asarray(scratch.load("local", run, process)["kind"])
    row, source, index = _sources(scratch, "edges", run, process)
    deliveries = np.bincount(row, minlength=len(kinds)).astype(np.int64)
    sizes = deliveries + (kinds != DELIVER) * (kinds != VIEW)
    record = np.repeat(np.arange(len(kinds)), sizes)
    rank = np.arange(len(record)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    is_delivery = rank < deliveries[record]
    own = numbers.of(process)[record]
    # A transaction's read names the write that it saw, as a delivery names its message, but implies no order.
    heard = np.where(kinds[record] == VIEW, VIEW, DELIVER)
    kind = np.where(is_delivery, heard, np.where(own >= 0, SEND, LOCAL)).astype(np.int8)
    origin, seq = np.full(len(record), process, np.int32), own.astype(np.int64)
    origin[is_delivery], seq[is_delivery] = source, numbers.messages(source, index)
    if not clocked:
        again, first, where = _sources(scratch, "again", run, process)
        at = np.cumsum(sizes)[again] - 1
        kind[at], origin[at], seq[at] = SEND, first, numbers.messages(first, where)
    return Rows(kind, origin, seq, record, rank)


def stamp(task: StampTask) -> Stamped:
    scratch, run = task.scratch, task.run
    numbers = Numbers(scratch, run)
    laid = {process: lay_rows(scratch, run, process, task.clocked, numbers) for process in task.active}
    nothing = Rows(
        np.empty(0, np.int8), np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64)
    )
    rows = [laid.get(process, nothing) for process in range(len(task.hosts))]
    given = [
        _given(task, process, laid[process]) if process in laid else np.empty(0, np.int64) for process in range(len(task.hosts))
    ]
    start = np.concatenate(([0], np.cumsum([len(its.kind) for its in rows]))).astype(np.int64)
    kind, origin, seq = (np.concatenate([getattr(its, name) for its in rows]) for name in ("kind", "origin", "seq"))
    new = np.zeros(len(rows), np.int64)
    for process in task.active:
        new[process] = (numbers.of(process) >= 0).sum()
    executions = [_executions(task, process) for process in range(len(task.hosts))]
    execution = np.concatenate([those[its.record] for those, its in zip(executions, rows, strict=True)])
    times = None if any(its is None for its in given) else np.concatenate([its for its in given if its is not None])
    begins = np.zeros(0, np.int64)
    if task.together and times is not None:
        times, begins = one_after_the_other(times, execution, task.together)
    kept = times is not None and _fits(times, start, kind, origin, seq, new)
    if not kept:
        turn, exists, stuck = rebuild(start, kind, origin, seq, new)
        if not exists:
            positions = np.concatenate([np.arange(len(its.kind)) for its in rows]).astype(np.int64)
            nowhere = np.empty(0, np.int64)
            events = Events(start, kind, origin, seq, nowhere, positions, nowhere, nowhere, False, nowhere, False)
            raise BadInput(_explain_cycle(task, laid, shortest_cycle(events, stuck)))
        times = logical_times(turn, start, kind, origin, seq, new, np.empty(0, np.bool_))
        if task.together:
            times, begins = one_after_the_other(times, execution, task.together)
    assert times is not None
    for process in task.active:
        scratch.save_numbers("times", run, process, values=times[start[process] : start[process + 1]])
    return Stamped(kept, begins, np.bincount(np.concatenate(executions), minlength=task.together))


def one_after_the_other(times: np.ndarray, execution: np.ndarray, count: int) -> tuple[np.ndarray | None, np.ndarray]:
    """Logical times shifted so that executions follow one another (None if they would overflow); and where each begins."""
    low, high = np.full(count, np.iinfo(np.int64).max), np.full(count, np.iinfo(np.int64).min)
    np.minimum.at(low, execution, times)
    np.maximum.at(high, execution, times)
    # In floating point first, because the sum of clock times may overflow.
    if (high.astype(np.float64) - low + 1).sum() >= TIME_END:
        return None, np.zeros(0, np.int64)
    begins = np.concatenate(([0], np.cumsum(high - low + 1)))
    return times - low[execution] + begins[execution], begins


def _executions(task: StampTask, process: int) -> np.ndarray:
    """The execution of each record of a process."""
    if process not in task.active:
        return np.empty(0, np.int32)
    return np.asarray(task.scratch.load("local", task.run, process)["execution"])


def clock_times(scratch: Scratch, run: int, process: int, rows: Rows, stride: int) -> np.ndarray:
    """Logical times from vector clocks: an event that happens after another has a clock with a greater sum."""
    offsets, _, counts = flatten(scratch.load("local", run, process), "clock_hosts", "clock_counts")
    sums = np.add.reduceat(np.append(counts, 0), offsets[:-1])
    times: np.ndarray = sums[rows.record] * stride + rows.rank
    return times


def _given(task: StampTask, process: int, rows: Rows) -> np.ndarray | None:
    """The log's own logical times, if every record is a single row and has one."""
    column = task.scratch.load("local", task.run, process)["lamport"]
    if column.null_count or (rows.rank > 0).any():
        return None
    return np.asarray(column).astype(np.int64)


def _fits(
    times: np.ndarray, start: np.ndarray, kind: np.ndarray, origin: np.ndarray, seq: np.ndarray, new: np.ndarray
) -> bool:  # fmt: skip
    ascends = np.concatenate(([True], times[1:] > times[:-1]))
    ascends[start[:-1][start[:-1] < len(times)]] = True
    if not ascends.all():
        return False
    turn = merge_by_lamport(start, times)
    return bool(older_deliveries(turn, start, kind, origin, seq, np.zeros(len(new), np.int64), new)[1])


def _explain_cycle(task: StampTask, laid: dict[int, Rows], cycle: list[CycleStep]) -> str:
    steps = []
    for step in cycle:
        rows = laid[step.member]
        reporter = DefectReporter(task.source, "", task.scratch.load("local", task.run, step.member), Defects([], {}))
        heard, said = (reporter.where(int(rows.record[pos])) for pos in (step.pos, step.then_pos))
        steps.append(
            f"{task.hosts[step.member]} learned of {task.hosts[step.delivered[0]]} at {heard} before its own event at {said}"
        )
    return f"the log contradicts itself in a cycle: {', and '.join(steps)}"


def _sources(scratch: Scratch, stage: str, run: int, process: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    table = scratch.load(stage, run, process)
    row, source, index = (np.asarray(table[name]) for name in ("row", "source", "index"))
    return row, source, index
