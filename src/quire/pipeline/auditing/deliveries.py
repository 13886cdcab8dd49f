"""The checks that compare members' whole sequences of deliveries, in one task beside the segments.

Without views a trace's groups never change, and total order needs nothing but the sequences. Where there are views, or
an order that speaks of groups is asked for, the events are read with their groups.
"""

from __future__ import annotations

import msgspec
import numpy as np

from quire.pipeline.auditing.group_history import COLUMNS, find_history
from quire.pipeline.auditing.group_logs import GroupLogsResult, compare_logs
from quire.pipeline.auditing.groups import Together, WithinGroups, disagreements_within
from quire.pipeline.auditing.total import (
    Disagreement,
    TotalResult,
    identify,
    judge_deliveries,
    judge_sequences,
    labels,
)
from quire.pipeline.labels import Labelled, read_labelled
from quire.pipeline.layout import RowGroup, World, correct_members
from quire.pipeline.slices import read_events
from quire.trace.kinds import DELIVER


class DeliveriesTask(msgspec.Struct, tag="deliveries"):
    world: World
    groups: tuple[RowGroup, ...]
    grouped: bool = False
    """Judge what happens within groups, too."""


class DeliveriesResult(msgspec.Struct, kw_only=True):
    total: TotalResult = msgspec.field(default_factory=TotalResult)
    within: WithinGroups = WithinGroups()
    logs: GroupLogsResult = msgspec.field(default_factory=GroupLogsResult)


def judge_all_deliveries(task: DeliveriesTask) -> DeliveriesResult:
    """Read the deliveries of every correct member and compare them."""
    if not task.grouped:
        groups = tuple(group for group in task.groups if group.process not in task.world.crashed)
        events = read_events(task.world, groups, times=False, dests=False)
        if not events.views:
            return DeliveriesResult(total=judge_deliveries(events))
    return judge_grouped(read_labelled(task.world, task.groups, COLUMNS), correct_members(task.world))


def judge_grouped(rows: Labelled, correct: np.ndarray) -> DeliveriesResult:
    """The part that needs no files."""
    is_message = rows.kind <= DELIVER
    origin, seq = rows.origin[is_message], rows.seq[is_message]
    numbers, size = identify(origin, seq)
    ids = np.zeros(len(rows.kind), np.int64)
    ids[is_message] = numbers
    history = find_history(rows, ids, size, correct)
    index = np.flatnonzero(history.first)
    start = np.searchsorted(index, rows.start).astype(np.int64)
    together = Together(history, rows.start[1:])
    total = judge_sequences(
        ids[index], start, size,
        lambda names: labels(origin, seq, numbers, names),
        lambda ids, start, size, chosen: together.disagreements(ids, start, size, index[chosen]),
    )  # fmt: skip
    group = history.group[index]
    within = WithinGroups(grouped=bool((group >= 0).any()) or not len(group))
    found = disagreements_within(ids[index], start, group, size, len(history.dynamic))
    if found.pairs:
        before, after = labels(origin, seq, numbers, np.array([found.first.before, found.first.after]))
        disagreement = Disagreement(int(found.first.one), int(found.first.other), before, after)
        name = rows.words["group"][found.group]
        within = WithinGroups(grouped=True, pairs=found.pairs, group=name, disagreement=disagreement)
    return DeliveriesResult(total=total, within=within, logs=compare_logs(rows, history, ids))
