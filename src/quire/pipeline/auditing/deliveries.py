"""Total order over a whole trace in one task, for traces whose segments do not decide it.

In a trace without views groups never change, so the members' delivery sequences suffice. In a trace with views, the events
are read together with their groups.
"""

from __future__ import annotations

import msgspec
import numpy as np

from quire.pipeline.auditing.group_history import COLUMNS, find_history
from quire.pipeline.auditing.groups import Together
from quire.pipeline.auditing.total import (
    TotalResult,
    judge_deliveries,
    judge_sequences,
    labels_of,
    message_ids,
)
from quire.pipeline.labels import Labelled, read_labelled
from quire.pipeline.layout import RowGroup, World, correct_members
from quire.pipeline.slices import read_events


class DeliveriesTask(msgspec.Struct, tag="deliveries"):
    world: World
    groups: tuple[RowGroup, ...]


class DeliveriesResult(msgspec.Struct, kw_only=True):
    total: TotalResult = msgspec.field(default_factory=TotalResult)


def judge_all_deliveries(task: DeliveriesTask) -> DeliveriesResult:
    """Read the deliveries of every correct member and compare them."""
    groups = tuple(group for group in task.groups if group.process not in task.world.crashed)
    events = read_events(task.world, groups, times=False, dests=False)
    if not events.views:
        return DeliveriesResult(total=judge_deliveries(events))
    return DeliveriesResult(total=judge_together(read_labelled(task.world, task.groups, COLUMNS), correct_members(task.world)))


def judge_together(rows: Labelled, correct: np.ndarray) -> TotalResult:
    """The part that needs no files, for groups whose members change."""
    ids, size = message_ids(rows)
    history = find_history(rows, ids, size, correct)
    index = np.flatnonzero(history.first)
    start = np.searchsorted(index, rows.start).astype(np.int64)
    together = Together(history, rows.start[1:])
    return judge_sequences(
        ids[index], start, size,
        lambda names: labels_of(rows, ids, names),
        lambda own, start, size, chosen: together.disagreements(own, start, size, index[chosen]),
    )  # fmt: skip
