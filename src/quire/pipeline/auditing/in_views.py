"""Applies views to the checks of any messages: which processes are excused from delivering which messages.

A message belongs to the view in which it was sent. A process that is bound to that view must deliver the message if its sender
is bound to the view, or if another bound process delivered it. A process is not bound to a view in which it crashed, was
excluded or left; nor is one that, at the end, has not reached the group's last view. A sender that left is bound by what it
sent, because it leaves only when all have it. A sender that crashed is not, even if it came back, because its last messages may
have reached nobody. FIFO and causal order apply only between messages of the same view.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np

from quire.model.errors import BadInput
from quire.pipeline.auditing.settling import Bound, nobody_excused
from quire.pipeline.auditing.total import message_ids
from quire.pipeline.auditing.view_history import COLUMNS, Ending, ViewHistory, find_views, has_views
from quire.pipeline.labels import Labelled, read_labelled
from quire.pipeline.layout import RowGroup, World, correct_members
from quire.pipeline.reading import TraceReader
from quire.pipeline.slices import Events
from quire.trace.kinds import DELIVER


class InViews(msgspec.Struct, frozen=True):
    """Sends and deliveries, with the view of each; the views are empty if the trace has none."""

    events: Events
    in_view: np.ndarray
    """As in `kernel.Logs`."""
    bound: Bound


class ViewTableTask(msgspec.Struct, tag="view table"):
    world: World
    groups: tuple[RowGroup, ...]


class ViewTable(msgspec.Struct, kw_only=True):
    """What the segments of a trace need to know about its views.

    If `why` is not empty, it is the reason that the trace has to be judged in one piece. If `why` and `process` are both empty,
    the trace has no views.
    """

    why: str = ""
    process: np.ndarray
    """The process of each view change; sorted by process and position."""
    pos: np.ndarray
    in_view: np.ndarray
    """The view after the change, numbered as in `kernel.Logs`."""
    receivers: np.ndarray
    """As in `settling.Bound`."""
    senders: np.ndarray

    def bound(self) -> Bound:
        return Bound(self.receivers, self.senders)


def find_view_table(task: ViewTableTask) -> ViewTable:
    """Read all views. There are few of them, but finding them takes reading the logs."""
    correct = correct_members(task.world)
    return view_table(read_labelled(task.world, task.groups, COLUMNS), correct)


def view_table(rows: Labelled, correct: np.ndarray) -> ViewTable:
    """The part of `find_view_table` that needs no files."""
    history = find_views(rows, correct)
    numbers = np.unique([stay.number for stay in history.stays]).astype(np.int64)
    bound = _bound(history, numbers, len(correct))
    return ViewTable(
        why="a restart undid deliveries, which may be made again anywhere" if history.forgotten.any() else "",
        process=np.array([stay.process for stay in history.stays], np.int64),
        pos=np.array([rows.pos(stay.first) for stay in history.stays], np.int64),
        in_view=_latest(history, numbers),
        receivers=bound.receivers,
        senders=bound.senders,
    )


def in_known_views(events: Events, table: ViewTable) -> InViews:
    """Find the view of each event in a slice of every process's events, by its position."""
    in_view = np.full(len(events.kind), -1, np.int32)
    for process, (first, end) in enumerate(pairwise(events.start.tolist())):
        own = table.process == process
        # Before a process's first view `at` is -1, which picks the appended -1.
        at = np.searchsorted(table.pos[own], events.pos[first:end], side="right") - 1
        in_view[first:end] = np.append(table.in_view[own], np.int32(-1))[at]
    return InViews(events, in_view, table.bound())


def in_executions(events: Events, begins: np.ndarray, members: int) -> InViews:
    """Treat each execution of a shared run like a view: a process that has moved on to the next one delivers nothing of the one
    before. But nobody is excused."""
    if not events.ordered:
        raise BadInput("the logical times of the run are wrong, so its executions cannot be told apart")
    in_view = (np.searchsorted(begins, events.lamport, side="right") - 1).astype(np.int32)
    return InViews(events, in_view, bound_in_executions(begins, members))


def bound_in_executions(begins: np.ndarray, members: int) -> Bound:
    everybody = np.ones((len(begins) - 1, members), np.bool_)
    return Bound(everybody, everybody)


def without_views(events: Events, members: int) -> InViews:
    return InViews(events, np.empty(0, np.int32), nobody_excused(members))


def tells_of_views(world: World, groups: Sequence[RowGroup]) -> bool:
    """Whether these row groups contain numbered views, judging by the dictionary of the column `op`."""
    with TraceReader(world.run) as reader:
        chunks: Iterator[Any] = (chunk for _, table in reader.read_files(groups, ["op"]) for chunk in table["op"].chunks)
        return any(has_views(chunk.dictionary.to_pylist()) for chunk in chunks)


def in_views(events: Events, rows: Labelled, correct: np.ndarray) -> InViews:
    """Find the view of each event, and drop deliveries that were repeated because a restart had undone the first. `events` are
    the sends and deliveries among `rows`."""
    history = find_views(rows, correct)
    if not history.stays:
        return without_views(events, len(correct))
    numbers = np.unique([stay.number for stay in history.stays])
    is_message = rows.kind <= DELIVER
    kept = ~_made_again(rows, history)[is_message]
    view = _views(rows, history, numbers)[is_message][kept]
    return InViews(_only(events, kept), view, _bound(history, numbers, len(correct)))


def _made_again(rows: Labelled, history: ViewHistory) -> np.ndarray:
    """Which events repeat a delivery that a restart of the process had undone. The first delivery is the one that counts, since
    others may never be repeated: the group may go on without the process."""
    again = np.zeros(len(rows.kind), np.bool_)
    if history.forgotten.any():
        ids, _ = message_ids(rows)
        delivered = np.flatnonzero(rows.kind == DELIVER)
        process = rows.processes()[delivered]
        order = np.lexsort((delivered, ids[delivered], process))
        delivered, process = delivered[order], process[order]
        same = (ids[delivered[1:]] == ids[delivered[:-1]]) & (process[1:] == process[:-1])
        again[delivered[1:][same & history.forgotten[delivered[:-1]]]] = True
    return again


def _views(rows: Labelled, history: ViewHistory, numbers: np.ndarray) -> np.ndarray:
    """For each event, the latest view that its process had been in, as a rank among all view numbers."""
    view = np.full(len(rows.kind), -1, np.int32)
    ends = [*(stay.first for stay in history.stays[1:]), len(rows.kind)]
    for stay, latest, end in zip(history.stays, _latest(history, numbers).tolist(), ends, strict=True):
        view[stay.first : min(end, int(rows.start[stay.process + 1]))] = latest
    return view


def _latest(history: ViewHistory, numbers: np.ndarray) -> np.ndarray:
    """For each stay, the latest view that its process had been in until then, as a rank among all view numbers."""
    latest = np.searchsorted(numbers, [stay.number for stay in history.stays]).astype(np.int32)
    for index, (before, stay) in enumerate(pairwise(history.stays), start=1):
        if before.process == stay.process:
            latest[index] = max(latest[index], latest[index - 1])
    return latest


def _bound(history: ViewHistory, numbers: np.ndarray, members: int) -> Bound:
    receivers, senders, crashed = np.zeros((3, len(numbers), members), np.bool_)
    for stay, bound in zip(history.stays, history.bound().tolist(), strict=True):
        at = int(np.searchsorted(numbers, stay.number)), stay.process
        receivers[at] |= bound
        senders[at] |= bound or stay.ending is Ending.LEFT
        crashed[at] |= stay.ending is Ending.CRASHED
    return Bound(receivers, senders & ~crashed)


def _only(events: Events, kept: np.ndarray) -> Events:
    """The events without some deliveries."""
    if kept.all():
        return events
    count = np.concatenate(([0], np.cumsum(kept)))
    columns = {
        name: column[kept]
        for name in ("kind", "origin", "seq", "lamport", "pos", "time_ns")
        if len(column := getattr(events, name))
    }
    return msgspec.structs.replace(events, start=count[events.start].astype(np.int64), **columns)
