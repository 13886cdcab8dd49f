"""The checks that compare members' whole sequences of deliveries, in one task beside the segments.

Without views a trace's groups never change, and total order needs nothing but the sequences. Where there are views, or
an order that speaks of groups is asked for, the events are read with their groups.
"""

from __future__ import annotations

import msgspec
import numpy as np

from quire.pipeline.auditing.groups import Together, WithinGroups, disagreements_within
from quire.pipeline.auditing.memberships import COLUMNS, find_memberships
from quire.pipeline.auditing.segments import correct_members
from quire.pipeline.auditing.spells import SpellsResult, judge_spells
from quire.pipeline.auditing.total import TotalResult, identify, judge_deliveries, judge_sequences, labels
from quire.pipeline.labels import Labelled, read_labelled
from quire.pipeline.layout import RowGroup, World
from quire.pipeline.slices import read_events
from quire.trace.schema import DELIVER


class DeliveriesTask(msgspec.Struct, tag="deliveries"):
    world: World
    groups: tuple[RowGroup, ...]
    grouped: bool = False
    """Judge what happens within groups, too."""


class DeliveriesResult(msgspec.Struct, kw_only=True):
    total: TotalResult
    within: WithinGroups = WithinGroups()
    spells: SpellsResult = msgspec.field(default_factory=SpellsResult)


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
    known = find_memberships(rows, ids, size, correct)
    index = np.flatnonzero(known.first)
    start = np.searchsorted(index, rows.start).astype(np.int64)
    together = Together(known, rows.start[1:])
    total = judge_sequences(
        ids[index], start, size,
        lambda names: labels(origin, seq, numbers, names),
        lambda ids, start, size, places: together.disagreements(ids, start, size, index[places]),
    )  # fmt: skip
    group = known.group[index]
    within = WithinGroups(grouped=bool((group >= 0).any()) or not len(group))
    pairs, of, one, other, before, after = disagreements_within(ids[index], start, group, size, len(known.dynamic))
    if pairs:
        first, second = labels(origin, seq, numbers, np.array([before, after]))
        within = WithinGroups(
            grouped=True, pairs=pairs, group=rows.words["group"][of], disagreement=(one, other, first, second)
        )
    return DeliveriesResult(total=total, within=within, spells=judge_spells(rows, known, ids))
