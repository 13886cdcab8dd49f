"""The layout of a trace: which row groups of which Parquet files hold which rows, and how to cut them into segments.

The driver reads footers only. From them it checks that the files of each process follow one another without gap or overlap, so
that a row's position is known without reading it, and cuts the trace into segments of logical time with about equal numbers of
rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np

from quire.model.errors import BadInput
from quire.trace.schema import RunInfo
from quire.trace.store import StoredRows, StoredRun, TraceFile

ROWS_PER_SEGMENT = 2_500_000
SEGMENTS_MAX = 512
_CELLS_PER_SEGMENT = 200_000_000
"""A segment keeps one vector for every message sent in it; this limits their memory to about a gigabyte per task."""


class RowGroup(msgspec.Struct, frozen=True):
    """Consecutive rows of one process. `low` and `high` bound their logical times; None if these are not recorded."""

    path: str
    index: int
    process: int
    rows: int
    first_pos: int
    low: int | None
    high: int | None
    numbers: tuple[int, int] | None = None
    """The numbers of its first and last event, if implied deliveries make event numbers differ from positions."""

    @property
    def first_event(self) -> int:
        return self.first_pos if self.numbers is None else self.numbers[0]

    @property
    def last_event(self) -> int:
        return self.first_pos + self.rows - 1 if self.numbers is None else self.numbers[1]


class World(msgspec.Struct, frozen=True):
    """The facts about a run that every task needs."""

    run: str
    members: int
    crashed: tuple[int, ...]


class Layout(msgspec.Struct, frozen=True):
    world: World
    groups: tuple[RowGroup, ...]
    """Sorted by process, then in local order."""
    rows: int
    timed: bool
    """Whether logical times may ascend at every process, as far as the footers tell."""
    hosts: tuple[str, ...] = ()
    """The log's names for the processes, if the trace was imported."""

    def sizes(self) -> list[int]:
        """The number of events of each process."""
        sizes = [0] * self.world.members
        for group in self.groups:
            sizes[group.process] = max(sizes[group.process], group.last_event + 1)
        return sizes

    @property
    def events(self) -> int:
        return sum(self.sizes())


def lay_out(run: StoredRun) -> Layout:
    """Find the layout of a run. Raises BadInput if files overlap or are missing."""
    groups: list[RowGroup] = []
    for file in run.files:
        groups.extend(_row_groups(file))
    groups.sort(key=lambda group: (group.process, group.first_pos))
    timed = all(group.low is not None for group in groups)
    expected = {group.process: 0 for group in groups}
    for group in groups:
        _check_follows(group, expected[group.process])
        expected[group.process] += group.rows
    for before, after in pairwise(groups):
        if before.process == after.process and timed:
            assert before.high is not None
            assert after.low is not None
            timed = before.high < after.low
    world = World(run.info.run, run.info.members, tuple(sorted(set(run.info.outcome.crashed))))
    return Layout(world, tuple(groups), sum(group.rows for group in groups), timed, _hosts(run.info))


def _hosts(info: RunInfo) -> tuple[str, ...]:
    named = info.settings.get("hosts")
    return tuple(map(str, named)) if isinstance(named, list) and len(named) == info.members else ()


def _check_follows(group: RowGroup, expected: int) -> None:
    if group.first_pos < expected:
        raise BadInput(
            f"{group.path} repeats positions of process {group.process} from {group.first_pos} on, which another file holds too"
        )
    if group.first_pos > expected:
        raise BadInput(
            f"process {group.process} lacks positions {expected} to {group.first_pos - 1} "
            f"before {group.path}: is a trace file missing?"
        )


def _row_groups(file: TraceFile) -> Sequence[RowGroup]:
    """The file's row groups with the positions that its footer states."""
    found = []
    # Absolute, because the worker that reads it may have another working directory.
    path = str(Path(file.path).absolute())
    for index, stored in enumerate(file.row_groups):
        if stored.rows == 0:
            continue
        first, last = stored.pos.low, stored.pos.high
        if first is None or last is None:
            raise BadInput(f"{file.path} does not state the positions of its rows: write it again with Quire")
        if last - first + 1 != stored.rows:
            raise BadInput(f"{file.path} does not number the events of process {file.process} one by one")
        low, high = stored.lamport.low, stored.lamport.high
        found.append(RowGroup(path, index, file.process, stored.rows, first, low, high, _numbers(stored)))
    return found


def _numbers(stored: StoredRows) -> tuple[int, int] | None:
    if stored.event is None or stored.event.low is None or stored.event.high is None:
        return None
    return stored.event.low, stored.event.high


def check_segments(segments: int | None) -> None:
    """Refuse a number of segments that makes no sense; None leaves it to the size of the trace."""
    if segments is not None and not 1 <= segments <= SEGMENTS_MAX:
        raise BadInput(f"segments must be between 1 and {SEGMENTS_MAX}, not {segments}")


def segment_count(layout: Layout) -> int:
    """A good number of segments: each has enough work to justify a task, and fits in memory."""
    by_rows = layout.rows // ROWS_PER_SEGMENT
    by_memory = layout.rows * layout.world.members // (2 * _CELLS_PER_SEGMENT) + 1
    return int(np.clip(max(by_rows, by_memory), 1, SEGMENTS_MAX))


def cut(layout: Layout, segments: int) -> list[int]:
    """The `segments` - 1 ascending logical times at which to cut; a segment holds the events from one cut to before the
    next."""
    rows = np.array([group.rows for group in layout.groups], dtype=np.float64)
    low = np.array([group.low for group in layout.groups], dtype=np.float64)
    span = np.array([group.high for group in layout.groups], dtype=np.float64) - low + 1
    cuts = []
    for segment in range(1, segments):
        wanted = layout.rows * segment / segments
        bottom, top = int(low.min()), int((low + span).max())
        while bottom < top:
            middle = (bottom + top) // 2
            if float((rows * np.clip((middle - low) / span, 0, 1)).sum()) < wanted:
                bottom = middle + 1
            else:
                top = middle
        cuts.append(bottom)
    return cuts


def overlapping(groups: Sequence[RowGroup], low: int | None, high: int | None) -> tuple[RowGroup, ...]:
    """The row groups that may hold events with `low` <= logical time < `high`; None means no bound."""
    return tuple(
        group
        for group in groups
        if (low is None or (group.high is not None and group.high >= low))
        and (high is None or (group.low is not None and group.low < high))
    )


def later_members(layout: Layout, high: int | None) -> np.ndarray:
    """Which processes have events at or after logical time `high`; none of them if it is None."""
    later = np.zeros(layout.world.members, dtype=np.bool_)
    if high is not None:
        for group in layout.groups:
            if group.high is not None and group.high >= high:
                later[group.process] = True
    return later


def correct_members(world: World) -> np.ndarray:
    """A mask of the processes that did not crash."""
    correct = np.ones(world.members, np.bool_)
    correct[[member for member in world.crashed if 0 <= member < world.members]] = False
    return correct
