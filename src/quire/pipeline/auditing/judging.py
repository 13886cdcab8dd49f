"""The audit's pass over all events: in parallel segments where possible, otherwise in one task.

Segments cannot be judged separately if logical times are missing or wrong, if a message is delivered again long after it had
reached everyone, or if too many messages are in flight. Then one task judges the whole trace. Its answer is the definition;
the segments only reach the same answer sooner.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np

from quire.model.messages import MessageId
from quire.pipeline.auditing import kernel
from quire.pipeline.auditing.boundaries import Boundaries, join_segments
from quire.pipeline.auditing.deliveries import DeliveriesTask
from quire.pipeline.auditing.findings import Late, Orders, Tally, first_of
from quire.pipeline.auditing.in_groups import GroupsTask
from quire.pipeline.auditing.in_views import ViewTable, ViewTableTask, bound_in_executions
from quire.pipeline.auditing.results import Results
from quire.pipeline.auditing.segments import Restart, SegmentTask, Summary
from quire.pipeline.auditing.settling import nobody_excused
from quire.pipeline.layout import Layout, correct_members, cut, later_members, overlapping
from quire.pipeline.tasks import Runner


def judge_trace(
    layout: Layout, segments: int, run: Runner, beside: Sequence[object] = (),
    *, sparse: bool = False, viewed: bool = False, executions: np.ndarray | None = None,
    block_shift: int = kernel.BLOCK_SHIFT,
) -> Results:  # fmt: skip
    """Judge the trace in this many segments, or in one task where that is not possible, and run the tasks in `beside` as well.

    Messages must be numbered without gaps, unless `sparse` is set: then, if there are gaps, nothing is judged. A trace with
    views can be judged in segments only if `viewed` is set, so that its views are read first. `executions`: the logical times
    at which the executions that share the run begin.
    """
    whole = _whole(layout, sparse, executions)
    if layout.timed and segments > 1:
        views = _views(layout, run) if viewed else None
        if views is None or not views.why:
            return _judge_in_segments(
                layout, segments, run, beside, whole, views=views, executions=executions, block_shift=block_shift
            )
    *others, summary = run([*beside, whole])
    return Results([*others, _orders_of_whole(summary)])


def _whole(layout: Layout, sparse: bool, executions: np.ndarray | None) -> SegmentTask:
    later = later_members(layout, None)
    return SegmentTask(layout.world, layout.groups, 0, None, None, later, whole=True, sparse=sparse, executions=executions)


def _views(layout: Layout, run: Runner) -> ViewTable | None:
    """The views of the trace; None if it has none."""
    (found,) = run([ViewTableTask(layout.world, layout.groups)])
    assert isinstance(found, ViewTable)
    return found if len(found.process) else None


def _judge_in_segments(
    layout: Layout, segments: int, run: Runner, beside: Sequence[object], whole: SegmentTask,
    *, views: ViewTable | None, executions: np.ndarray | None, block_shift: int,
) -> Results:  # fmt: skip
    """Judge the segments in parallel, then what crosses their boundaries; judge the trace in one piece if the segments turn out
    not to be separable. If the segments' ranks prove total order, they prove the order within groups, too; all deliveries are
    compared only if they do not."""
    compare: list[object] = [task for task in beside if isinstance(task, DeliveriesTask | GroupsTask)]
    beside = [task for task in beside if task not in compare]
    ranked = any(isinstance(task, DeliveriesTask) for task in compare)
    tasks = _segments(
        layout, segments, ranked=ranked, views=views, executions=executions, block_shift=block_shift
    )  # fmt: skip
    # The tasks beside the segments are long, so they go first in the queue and the segments fill the gaps.
    results = run([*beside, *tasks])
    others, summaries = results[: len(beside)], results[len(beside) :]
    members = layout.world.members
    bound = views.bound() if views else nobody_excused(members)
    if executions is not None:
        bound = bound_in_executions(executions, members)
    boundaries = join_segments(summaries, [task.later for task in tasks], correct_members(layout.world), bound)
    if boundaries.why:
        *compared, summary = run([*compare, whole])
        return Results([*others, *compared, _orders_of_whole(summary)])
    if boundaries.one_order:
        compare = _only_named(compare) if views is None else [task for task in compare if isinstance(task, GroupsTask)]
    again = [(task, start) for task, start in zip(tasks, boundaries.starts, strict=True) if start is not None]
    resumed = run([*compare, *(_resume(task, start, summaries[task.segment]) for task, start in again)])
    compared, resumed = resumed[: len(compare)], resumed[len(compare) :]
    for (task, start), result in zip(again, resumed, strict=True):
        redone = min(len(summaries[task.segment].late), (start.stop >> task.block_shift) + 1)
        summaries[task.segment].late[:redone] = result.late[:redone]
        summaries[task.segment].first_late[:redone] = result.first_late[:redone]
    return Results([*others, *compared, _orders(summaries, boundaries)])


def _only_named(compare: Sequence[object]) -> list[object]:
    """The task left if one order explains all deliveries and nobody joins or leaves (otherwise there would be no ranks)."""
    asked = [task for task in compare if isinstance(task, GroupsTask)]
    return [msgspec.structs.replace(task, pieces=1, piece=0, only_named=True) for task in asked[:1]]


def _segments(
    layout: Layout, segments: int, *, ranked: bool, views: ViewTable | None, executions: np.ndarray | None, block_shift: int
) -> list[SegmentTask]:
    bounds: list[int | None] = [None, *cut(layout, segments), None]
    return [
        SegmentTask(
            layout.world, overlapping(layout.groups, low, high), segment, low, high, later_members(layout, high),
            ranked=ranked, views=views, executions=executions, block_shift=block_shift,
        )
        for segment, (low, high) in enumerate(pairwise(bounds))
    ]  # fmt: skip


def _resume(task: SegmentTask, start: Restart, summary: Summary) -> SegmentTask:
    """The task that judges the same segment again, from its exact start state, as far as that state matters."""
    high, last = task.high, start.stop >> task.block_shift
    if last < len(summary.block_end) - 1:
        high = int(summary.block_end[last]) + 1
    return msgspec.structs.replace(task, start=start, high=high, groups=overlapping(task.groups, task.low, high))


def _orders_of_whole(summary: Summary) -> Orders:
    if summary.why:
        return Orders(messages=summary.messages, gaps=True)
    found = _orders([summary], Boundaries())
    found.unrecorded, found.unordered, found.rebuilt = summary.unrecorded, summary.unordered, summary.rebuilt
    return found


def _orders(summaries: Sequence[Summary], boundaries: Boundaries) -> Orders:
    """Combine the segments' findings with the violations that show only across their boundaries."""
    every: list[Any] = [boundaries, *summaries]
    breaches = [each.first_breach for each in every if each.first_breach is not None]
    losses = [each.first_lost for each in every if each.first_lost is not None]
    fifo, causal = (
        Tally(int(sum(each.late[:, order].sum() for each in summaries)), _first_late(summaries, order)) for order in (0, 1)
    )
    return Orders(
        messages=sum(summary.messages for summary in summaries),
        integrity=Tally(sum(each.breaches for each in every), first_of(breaches)),
        agreement=Tally(sum(each.lost for each in every), first_of(losses)),
        fifo=fifo,
        causal=causal,
        segments=len(summaries),
    )


def _first_late(summaries: Sequence[Summary], order: int) -> Late | None:
    for summary in summaries:
        blocks = np.flatnonzero(summary.late[:, order])
        if len(blocks):
            _, process, origin, seq, missed_origin, missed_seq = summary.first_late[blocks[0], order].tolist()
            return Late(process, MessageId(origin, seq), MessageId(missed_origin, missed_seq))
    return None
