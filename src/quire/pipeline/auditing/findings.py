"""The counts and first instances behind the verdicts, from the segments and the seams or from one task for all.

Where the segments cannot be judged apart (logical times that are missing or wrong, a message delivered long after it
had reached everyone, a log in which too much is in flight) one task judges the whole trace. Its answer is the
definition; the segments only get to the same answer sooner.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from quire.pipeline.auditing import kernel
from quire.pipeline.auditing.deliveries import DeliveriesResult, DeliveriesTask
from quire.pipeline.auditing.groups import WithinGroups
from quire.pipeline.auditing.ranks import one_order_explains
from quire.pipeline.auditing.seams import Event, join_segments
from quire.pipeline.auditing.segments import SegmentTask, StartState, Summary, correct_members
from quire.pipeline.auditing.serialisable import SerialisableResult
from quire.pipeline.auditing.significant import SignificantResult
from quire.pipeline.auditing.spells import SpellsResult
from quire.pipeline.auditing.tasks import Result, Task
from quire.pipeline.auditing.total import TotalResult
from quire.pipeline.layout import Layout, cut, later_members, overlapping
from quire.pipeline.tasks import Runner

Late = tuple[int, int, int, int, int]
"""(process, origin, seq, and the origin and seq of the message that it missed)"""


class Findings(msgspec.Struct, kw_only=True):
    messages: int = 0
    breaches: int = 0
    first_breach: tuple[int, int, int, int] | None = None
    """(process, origin, seq, kind of breach)"""
    lost: int = 0
    first_lost: tuple[int, int, int] | None = None
    """(origin, seq, process)"""
    late: tuple[int, int] = (0, 0)
    """Deliveries out of FIFO order, and out of causal order."""
    first_late: list[Late | None] = []
    unjudged: str = ""
    """Why nothing was judged in segments or in one piece: what follows from numbers, destinations and causes."""
    unrecorded: int = 0
    unordered: tuple[int, int] | None = None
    rebuilt: bool = False
    total: TotalResult = msgspec.field(default_factory=TotalResult)
    within: WithinGroups = msgspec.field(default_factory=WithinGroups)
    spells: SpellsResult = msgspec.field(default_factory=SpellsResult)
    significant: SignificantResult = msgspec.field(default_factory=SignificantResult)
    serialisable: SerialisableResult = msgspec.field(default_factory=SerialisableResult)
    segments: int = 1


def judge_trace(
    layout: Layout, segments: int, run: Runner, beside: Sequence[Task] = (),
    *, sparse: bool = False, block_shift: int = kernel.BLOCK_SHIFT,
) -> Findings:  # fmt: skip
    """Judge the trace in so many segments, or in one task where that cannot be done; and what these tasks judge.

    Messages must be numbered without gaps, unless they may be `sparse`: then it is said why nothing was judged.
    """
    if layout.timed and segments > 1:
        return _judge_in_segments(layout, segments, run, beside, sparse, block_shift)
    *others, summary = run([*beside, _whole(layout, sparse)])
    assert isinstance(summary, Summary)
    found = _of_whole(summary)
    _add_others(found, others)
    return found


def _add_others(found: Findings, results: Sequence[Result]) -> None:
    for result in results:
        if isinstance(result, DeliveriesResult):
            found.total, found.within, found.spells = result.total, result.within, result.spells
        elif isinstance(result, SignificantResult):
            found.significant = result
        elif isinstance(result, SerialisableResult):
            found.serialisable = result


def _whole(layout: Layout, sparse: bool) -> SegmentTask:
    return SegmentTask(layout.world, layout.groups, 0, None, None, later_members(layout, None), whole=True, sparse=sparse)


def _judge_in_segments(
    layout: Layout, segments: int, run: Runner, beside: Sequence[Task], sparse: bool, block_shift: int
) -> Findings:
    """Judge the segments beside each other, then their seams; in one piece if they turn out not to be separable. Total order
    follows from the segments' ranks; only where it does not are all deliveries compared in one task."""
    compare = [task for task in beside if isinstance(task, DeliveriesTask) and not task.grouped]
    beside = [task for task in beside if task not in compare]
    bounds: list[int | None] = [None, *cut(layout, segments), None]
    tasks = []
    for segment in range(segments):
        low, high = bounds[segment], bounds[segment + 1]
        later = later_members(layout, high)
        tasks.append(
            SegmentTask(
                layout.world,
                overlapping(layout.groups, low, high),
                segment,
                low,
                high,
                later,
                ranked=bool(compare),
                block_shift=block_shift,
            )
        )
    # What is judged beside the segments are long tasks: first in the queue, so that the others fill the time.
    results = run([*beside, *tasks])
    summaries = [result for result in results if isinstance(result, Summary)]
    seams = join_segments(summaries, [task.later for task in tasks], correct_members(layout.world))
    if seams.why:
        *compared, summary = run([*compare, _whole(layout, sparse)])
        assert isinstance(summary, Summary)
        found = _of_whole(summary)
        _add_others(found, [*results, *compared])
        return found
    if not seams.breaches and one_order_explains([summary.ranks for summary in summaries]):
        compare = []
    again = [(task, start) for task, start in zip(tasks, seams.starts, strict=True) if start is not None]
    resumed = run([*compare, *(_resume(task, start, summaries[task.segment]) for task, start in again)])
    compared, resumed = resumed[: len(compare)], resumed[len(compare) :]
    for (task, start), result in zip(again, resumed, strict=True):
        assert isinstance(result, Summary)
        redone = min(len(summaries[task.segment].late), (start.stop >> task.block_shift) + 1)
        summaries[task.segment].late[:redone] = result.late[:redone]
        summaries[task.segment].first_late[:redone] = result.first_late[:redone]
    found = _of_segments(summaries)
    _add_seams(found, summaries, seams.first_breach, seams.first_lost)
    found.breaches += seams.breaches
    found.lost += seams.lost
    _add_others(found, [*results, *compared])
    return found


def _resume(task: SegmentTask, start: StartState, summary: Summary) -> SegmentTask:
    """The same segment from its exact start, read only as far as the seam reaches."""
    high, last = task.high, start.stop >> task.block_shift
    if last < len(summary.block_end) - 1:
        high = int(summary.block_end[last]) + 1
    return msgspec.structs.replace(task, start=start, high=high, groups=overlapping(task.groups, task.low, high))


def _of_whole(summary: Summary) -> Findings:
    if summary.why:
        return Findings(messages=summary.messages, unjudged=summary.why, first_late=[None, None])
    found = _of_segments([summary])
    _add_seams(found, [summary], None, None)
    found.unrecorded, found.unordered, found.rebuilt = summary.unrecorded, summary.unordered, summary.rebuilt
    return found


def _of_segments(summaries: Sequence[Summary]) -> Findings:
    late = np.sum([summary.late.sum(axis=0) for summary in summaries], axis=0)
    found = Findings(
        messages=sum(summary.messages for summary in summaries),
        breaches=int(sum(summary.breaches.sum() for summary in summaries)),
        lost=sum(summary.lost for summary in summaries),
        late=(int(late[0]), int(late[1])),
        segments=len(summaries),
        first_late=[],
    )
    for order in range(2):
        first: Late | None = None
        for summary in summaries:
            blocks = np.flatnonzero(summary.late[:, order])
            if len(blocks):
                process, origin, seq, missing, missing_seq = summary.first_late[blocks[0], order, 1:].tolist()
                first = (process, origin, seq, missing, missing_seq)
                break
        found.first_late.append(first)
    return found


def _add_seams(
    found: Findings,
    summaries: Sequence[Summary],
    breach: tuple[Event, tuple[int, int, int, int]] | None,
    lost: tuple[Event, tuple[int, int, int]] | None,
) -> None:
    """The first instances of all, those that only the seams show included."""
    breaches = [breach] if breach else []
    losses = [lost] if lost else []
    for segment, summary in enumerate(summaries):
        if summary.breaches.sum():
            event, process, origin, seq, kind = summary.first_breach.tolist()
            breaches.append(((segment, event), (process, origin, seq, kind)))
        if summary.first_lost:
            event, origin, seq, process = summary.first_lost
            losses.append(((segment, event), (origin, seq, process)))
    found.first_breach = min(breaches)[1] if breaches else None
    found.first_lost = min(losses)[1] if losses else None
