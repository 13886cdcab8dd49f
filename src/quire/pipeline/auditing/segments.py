"""The task that judges one segment of a trace.

Without a start state, the segment is judged as if nothing came before it. Its *summary* then holds all that is needed to join
it with the others: what each process learned, which messages were still in flight at its end, and which deliveries were
foreign. With the exact start state, the part of it that depends on that state is judged again, and only the verdicts on order
count.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import numpy as np

from quire.model.errors import BadInput
from quire.model.messages import MessageId
from quire.pipeline.auditing import kernel
from quire.pipeline.auditing.destinations import with_deliverers, with_destinations
from quire.pipeline.auditing.findings import Breach, Dated, Lost
from quire.pipeline.auditing.group_history import COLUMNS
from quire.pipeline.auditing.in_views import (
    InViews,
    ViewTable,
    in_executions,
    in_known_views,
    in_views,
    tells_of_views,
    without_views,
)
from quire.pipeline.auditing.ranks import Ranks, rank_deliveries
from quire.pipeline.auditing.settling import Bound, settle
from quire.pipeline.auditing.view_history import COLUMNS as VIEW_COLUMNS
from quire.pipeline.codec import decode, pack
from quire.pipeline.labels import read_labelled
from quire.pipeline.layout import RowGroup, World, correct_members
from quire.pipeline.merge import merge_by_lamport, rebuild
from quire.pipeline.numbering import NUMBER_END, UNKNOWN, gap, number_sends
from quire.pipeline.slices import read_events
from quire.trace.kinds import SEND

EXPORT_MAX = 1 << 18
"""With more messages in flight or foreign deliveries than this at a boundary, the trace is judged in one piece instead. They
are little beside what a task holds; the driver keeps those of all boundaries packed, and looks at one after the other."""


class Rows(msgspec.Struct):
    """Messages in flight, sorted by (origin, seq)."""

    origin: np.ndarray
    seq: np.ndarray
    status: np.ndarray
    vector: np.ndarray
    sent_at: np.ndarray
    """When it was sent: the index of the event in its segment's order."""
    sent_in: np.ndarray
    """The segment in which it was sent."""
    in_view: np.ndarray
    """The view in which it was sent; -1 if none."""


class StartState(msgspec.Struct):
    """The state when a segment begins: message numbers used so far, vector clocks, and the messages in flight."""

    base: np.ndarray
    known: np.ndarray
    in_flight: Rows


class Restart(msgspec.Struct):
    """From where, and how far, a segment is to be judged again."""

    state: bytes
    """The start state, packed."""
    stop: int
    """Judge the blocks up to the one with this event."""


class Crossing(msgspec.Struct):
    """What crosses the boundaries of a segment."""

    in_flight: Rows
    foreign: np.ndarray
    ranks: Ranks | None = None


class SegmentTask(msgspec.Struct, tag="segment"):
    world: World
    groups: tuple[RowGroup, ...]
    segment: int
    low: int | None
    high: int | None
    later: np.ndarray
    whole: bool = False
    """Whether the segment is the whole trace, so that the order may be rebuilt from the logs, and nothing is foreign."""
    sparse: bool = False
    """If message numbers have gaps, report that nothing can be judged instead of refusing the trace."""
    ranked: bool = False
    """Whether to rank the deliveries, for total order."""
    views: ViewTable | None = None
    """The views of the whole trace, if it has views and they were read."""
    executions: np.ndarray | None = None
    """The logical times at which the executions that share the run begin, and at which the last one ends."""
    start: Restart | None = None
    block_shift: int = kernel.BLOCK_SHIFT


class Summary(msgspec.Struct, kw_only=True):
    """The result of judging a segment.

    If `why` is not empty, it is the reason that only one task over the whole trace can judge it, and the rest is not set.
    """

    why: str = ""
    messages: int = 0
    base: np.ndarray
    new: np.ndarray
    known: np.ndarray
    crossing: bytes = b""
    """A packed `Crossing`; empty if the segment is the whole trace, or is judged again."""
    breaches: int = 0
    first_breach: Dated[Breach] | None = None
    late: np.ndarray
    """For each block, how many deliveries are out of FIFO order, and how many out of causal order."""
    first_late: np.ndarray
    """The first of each, in the kernel's format."""
    block_end: np.ndarray
    """The logical time of the last event of each block."""
    lost: int = 0
    first_lost: Dated[Lost] | None = None
    """The first delivery missing for agreement, by the time of the send."""
    unrecorded: int = 0
    """How many messages do not record their destinations. Segments are judged separately only if there are none."""
    unordered: MessageId | None = None
    """A message with a delivery that precedes its send, which means that happened-before is not known."""
    rebuilt: bool = False
    in_view: np.ndarray
    """The latest view that each process reached in this segment; -1 if none."""


def no_rows(members: int) -> Rows:
    nothing = np.empty(0, np.int64)
    cells = (0, members)
    return Rows(nothing, nothing, np.empty(cells, np.int8), np.empty(cells, np.int32), nothing, nothing, np.empty(0, np.int32))


def judge_segment(task: SegmentTask) -> Summary:
    """Read the segment's slice of every log and judge it."""
    events = read_events(task.world, task.groups, task.low, task.high, pos=task.views is not None)
    if not events.ordered and not task.whole:
        return _unfit("logical times do not ascend")
    if task.executions is not None:
        return judge_events(task, in_executions(events, task.executions, task.world.members))
    if task.views is not None:
        return judge_events(task, in_known_views(events, task.views))
    viewed = events.views and tells_of_views(task.world, task.groups)
    if viewed and not task.whole:
        return _unfit("who has to deliver what depends on views before the segment and after it")
    if viewed:
        rows = read_labelled(task.world, task.groups, VIEW_COLUMNS)
        return judge_events(task, in_views(events, rows, correct_members(task.world)))
    if task.whole and events.views and (events.dest_count < 0).any():
        events = with_destinations(events, read_labelled(task.world, task.groups, COLUMNS))
    return judge_events(task, without_views(events, task.world.members))


def judge_events(task: SegmentTask, found_in: InViews) -> Summary:
    """The part of `judge_segment` that needs no files."""
    unrecorded = 0
    if task.whole and (found_in.events.dest_count < 0).any():
        filled, unrecorded = with_deliverers(found_in.events, correct_members(task.world))
        found_in = msgspec.structs.replace(found_in, events=filled)
    events = found_in.events
    start = decode(task.start.state, StartState) if task.start else None
    base = start.base.copy() if start else np.full(task.world.members, 0 if task.whole else -1, np.int64)
    new, process, expected, found = number_sends(events.start, events.kind, events.origin, events.seq, base)
    if process >= 0:
        if not task.whole:
            return _unfit("a process repeats a send across segments")
        refusal = gap(process, expected, found)
        if task.sparse:
            return msgspec.structs.replace(_unfit(str(refusal)), messages=int((events.kind == SEND).sum()))
        raise refusal
    if len(base) and int((base + new)[base < UNKNOWN].max(initial=0)) >= NUMBER_END:
        raise BadInput(f"a process sends more than {NUMBER_END - 1} messages, which is more than can be audited")
    judged = _judge(task, start, found_in, base, new, rebuilding=False) if events.ordered else None
    if judged is None and task.whole:
        judged = _judge(task, start, found_in, base, new, rebuilding=True)
    if judged is None:
        return _unfit("a delivery's logical time does not follow its send's")
    if judged.foreign > len(judged.found.foreign) and not task.whole and not task.start:
        return _unfit("too many messages cross the segments")
    summary = _summarise(task, judged)
    if task.whole:
        summary.unrecorded = unrecorded
    if not task.start:
        in_flight = _settle(task, summary, judged, found_in.bound)
        if not task.whole and not summary.why:
            ranks = None
            if task.ranked and (task.views is not None or not events.views):
                ranks = rank_deliveries(events, correct_members(task.world), base, judged.messages.first_row, in_flight)
            rows = _rows_in_flight(task, judged.messages, in_flight)
            summary.crossing = pack(Crossing(rows, judged.found.foreign[: judged.foreign], ranks))
    return summary


class _Judged(NamedTuple):
    """A segment after the kernel has gone through it."""

    messages: kernel.Messages
    state: kernel.State
    found: kernel.Found
    foreign: int
    unrecorded: int
    unordered: MessageId | None
    rebuilt: bool


def _judge(
    task: SegmentTask, start: StartState | None, found_in: InViews, base: np.ndarray, new: np.ndarray, *, rebuilding: bool
) -> _Judged | None:
    """Judge the events in the order of their logical times, or in an order rebuilt from the logs; None if the logical times
    turn out to contradict happened-before."""
    events = found_in.events
    logs = kernel.Logs(events.start, events.kind, events.origin, events.seq, events.lamport, found_in.in_view)
    unordered = None
    if rebuilding:
        turn, exists, stuck = rebuild(*logs[:4], new)
        unordered = None if exists else MessageId(*stuck[stuck[:, 0] >= 0][0, :2].tolist())
    else:
        turn = merge_by_lamport(logs.start, logs.lamport)
    members = task.world.members
    messages = _rows(start.in_flight if start else no_rows(members), base, new, viewed=len(found_in.in_view) > 0)
    wrong = kernel.register(logs, events.dest_count, events.dests, messages)
    if wrong.process >= 0:
        raise BadInput(
            f"message {wrong.process}:{wrong.seq} is addressed to process {wrong.destination}, "
            f"but the run has processes 0 to {members - 1}"
        )
    stop = int(logs.start[-1])
    if task.start:
        stop = min(stop, ((task.start.stop >> task.block_shift) + 1) << task.block_shift)
    known = start.known.astype(np.int32) if start else np.zeros((members, members), np.int32)
    state = kernel.new_state(members, messages.first_row, known)
    found = kernel.nothing_found((stop >> task.block_shift) + 1, 1 if task.whole else EXPORT_MAX)
    foreign, true_order = kernel.judge(turn, stop, logs, messages, state, found, task.block_shift, unordered is not None)
    if not true_order:
        return None
    return _Judged(messages, state, found, foreign, wrong.unrecorded, unordered, rebuilding)


def _rows(in_flight: Rows, base: np.ndarray, new: np.ndarray, *, viewed: bool) -> kernel.Messages:
    """The kernel's rows: filled for the messages in flight, empty for those that are sent in the segment."""
    members = len(base)
    old = np.bincount(in_flight.origin, minlength=members).astype(np.int64)
    first_row = np.concatenate(([0], np.cumsum(old + new))).astype(np.int64)
    at = np.repeat(first_row[:-1], old) + np.arange(len(in_flight.seq)) - np.repeat(np.cumsum(old) - old, old)
    total = int(first_row[-1])
    seq = np.zeros(total, np.int64)
    status, vector = np.zeros((total, members), np.int8), np.zeros((total, members), np.int32)
    seq[at], status[at], vector[at] = in_flight.seq, in_flight.status, in_flight.vector
    view = np.full(total if viewed else 0, -1, np.int32)
    if viewed:
        view[at] = in_flight.in_view
    return kernel.Messages(first_row, old, new, base, seq, status, vector, np.full(total, -1, np.int64), view)


def _summarise(task: SegmentTask, judged: _Judged) -> Summary:
    messages, found = judged.messages, judged.found
    if task.whole:
        # Nothing came before the whole trace, so nobody sent the foreign messages.
        if judged.foreign and (not found.breaches.any() or found.foreign[0, 0] < found.first_breach[0]):
            found.first_breach[:4], found.first_breach[4] = found.foreign[0], kernel.PHANTOM
        found.breaches[kernel.PHANTOM] = judged.foreign
    return Summary(
        messages=int(messages.new.sum()), base=messages.base, new=messages.new, known=judged.state.known,
        breaches=int(found.breaches.sum()),
        first_breach=_dated(task, found.first_breach) if found.breaches.any() else None, late=found.late,
        first_late=found.first_late, block_end=found.block_end, unrecorded=judged.unrecorded, unordered=judged.unordered,
        rebuilt=judged.rebuilt, in_view=judged.state.in_view,
    )  # fmt: skip


def _settle(task: SegmentTask, summary: Summary, judged: _Judged, bound: Bound) -> np.ndarray:
    """Judge agreement as far as this segment can. Returns which messages are still in flight at its end."""
    messages = judged.messages
    in_flight = np.zeros(len(messages.seq), np.bool_)
    settled = settle(messages, judged.state.in_view, correct_members(task.world), bound, task.later, in_flight)
    summary.lost = settled.lost
    if settled.lost:
        origin = int(np.searchsorted(messages.first_row, settled.row, side="right")) - 1
        message = MessageId(origin, int(messages.seq[settled.row]))
        lost = Lost(message, settled.process, settled.because_of)
        summary.first_lost = Dated(task.segment, int(messages.sent_at[settled.row]), lost)
    if settled.in_flight > EXPORT_MAX:
        summary.why = "too many messages cross the segments"
    return in_flight


def _rows_in_flight(task: SegmentTask, messages: kernel.Messages, in_flight: np.ndarray) -> Rows:
    rows = np.flatnonzero(in_flight)
    origins = np.searchsorted(messages.first_row, rows, side="right") - 1
    segment = np.full(len(rows), task.segment, np.int64)
    view = messages.in_view[rows] if len(messages.in_view) else np.full(len(rows), -1, np.int32)
    return Rows(
        origins, messages.seq[rows], messages.status[rows], messages.vector[rows], messages.sent_at[rows], segment, view
    )


def _dated(task: SegmentTask, breach: np.ndarray) -> Dated[Breach]:
    event, process, origin, seq, kind = breach.tolist()
    return Dated(task.segment, event, Breach(process, MessageId(origin, seq), kind))


def _unfit(why: str) -> Summary:
    return Summary(
        why=why, base=np.empty(0, np.int64), new=np.empty(0, np.int64), known=np.empty((0, 0), np.int32),
        late=np.zeros((0, 2), np.int64), first_late=np.zeros((0, 2, 6), np.int64), block_end=np.empty(0, np.int64),
        in_view=np.empty(0, np.int32),
    )  # fmt: skip
