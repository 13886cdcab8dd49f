"""One segment of the trace, judged in one task.

Without a start state the segment is judged as if nothing came before it, and its *summary* says all that the segments
around it need: what each process learned, which messages left it undelivered, which deliveries were foreign. With the
exact start state it is judged again as far as the seam reaches, and only the verdicts on order count.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from quire.model.errors import BadInput
from quire.pipeline.auditing import kernel
from quire.pipeline.auditing.destinations import with_destinations
from quire.pipeline.auditing.memberships import COLUMNS
from quire.pipeline.auditing.ranks import Ranks, rank_deliveries
from quire.pipeline.labels import read_labelled
from quire.pipeline.layout import RowGroup, World
from quire.pipeline.merge import merge_by_lamport, rebuild
from quire.pipeline.numbering import NUMBER_END, UNKNOWN, gap, number_sends
from quire.pipeline.slices import Events, read_events
from quire.trace.schema import SEND

EXPORT_MAX = 50_000
"""More messages in flight or foreign deliveries than this are not worth sending around: the trace is judged in one piece."""


class Rows(msgspec.Struct):
    """Messages, in the order of (origin, seq)."""

    origin: np.ndarray
    seq: np.ndarray
    status: np.ndarray
    vector: np.ndarray
    sent_at: np.ndarray
    """When it was sent, as the number of the event in its segment's order."""
    sent_in: np.ndarray
    """The segment in which it was sent."""


class StartState(msgspec.Struct):
    """What is true when a segment begins: numbers used, what each process knows, and the messages in flight."""

    base: np.ndarray
    known: np.ndarray
    in_flight: Rows
    stop: int
    """Judge the blocks up to the one that holds this event."""


class SegmentTask(msgspec.Struct, tag="segment"):
    world: World
    groups: tuple[RowGroup, ...]
    segment: int
    low: int | None
    high: int | None
    later: np.ndarray
    whole: bool = False
    """The segment is the whole trace, so that an order may be rebuilt and nothing is foreign."""
    sparse: bool = False
    """Do not refuse messages that are numbered with gaps: say that they cannot be judged."""
    ranked: bool = False
    """Say of the order of deliveries what total order needs."""
    start: StartState | None = None
    block_shift: int = kernel.BLOCK_SHIFT


class Summary(msgspec.Struct, kw_only=True):
    """What a segment found. `why` says, instead of the rest, why only one task over the whole trace can judge it."""

    why: str = ""
    messages: int = 0
    base: np.ndarray
    new: np.ndarray
    known: np.ndarray
    in_flight: Rows
    foreign: np.ndarray
    breaches: np.ndarray
    first_breach: np.ndarray
    late: np.ndarray
    first_late: np.ndarray
    block_end: np.ndarray
    """The logical time of the last event of each block."""
    lost: int = 0
    first_lost: tuple[int, int, int, int] | None = None
    """(event of the send, origin, seq, process) of the first delivery that agreement lacks."""
    unrecorded: int = 0
    unordered: tuple[int, int] | None = None
    """A message some delivery of which precedes its send, so that nothing is known about happened-before."""
    rebuilt: bool = False
    ranks: Ranks | None = None


def no_rows(members: int) -> Rows:
    nothing = np.empty(0, np.int64)
    cells = (0, members)
    return Rows(nothing, nothing, np.empty(cells, np.int8), np.empty(cells, np.int32), nothing, nothing)


def judge_segment(task: SegmentTask) -> Summary:
    """Read the segment's slice of every log and judge it."""
    events = read_events(task.world, task.groups, task.low, task.high)
    if not events.ordered and not task.whole:
        return _unfit(task, "logical times do not ascend")
    if task.whole and events.views and (events.dest_count < 0).any():
        events = with_destinations(events, read_labelled(task.world, task.groups, COLUMNS))
    return judge_events(task, events)


def judge_events(task: SegmentTask, events: Events) -> Summary:
    """The part of `judge_segment` that needs no files."""
    members = task.world.members
    state = task.start
    base = state.base.copy() if state else np.full(members, 0 if task.whole else -1, np.int64)
    new, process, expected, found = number_sends(events.start, events.kind, events.origin, events.seq, base)
    if process >= 0:
        if not task.whole:
            return _unfit(task, "a process repeats a send across segments")
        refusal = gap(process, expected, found)
        if task.sparse:
            return msgspec.structs.replace(_unfit(task, str(refusal)), messages=int((events.kind == SEND).sum()))
        raise refusal
    if len(base) and int((base + new)[base < UNKNOWN].max(initial=0)) >= NUMBER_END:
        raise BadInput(f"a process sends more than {NUMBER_END - 1} messages, which is more than can be audited")

    in_flight = state.in_flight if state else no_rows(members)
    old = np.bincount(in_flight.origin, minlength=members).astype(np.int64)
    first_row = np.concatenate(([0], np.cumsum(old + new))).astype(np.int64)
    total = int(first_row[-1])
    at = np.repeat(first_row[:-1], old) + np.arange(len(in_flight.seq)) - np.repeat(np.cumsum(old) - old, old)
    events_count = int(events.start[-1])
    stop = events_count
    if state:
        stop = min(stop, ((state.stop >> task.block_shift) + 1) << task.block_shift)
    orders = [False] if events.ordered else []
    for rebuilding in [*orders, True]:
        if rebuilding and not task.whole:
            return _unfit(task, "a delivery's logical time does not follow its send's")
        unordered = None
        if rebuilding:
            turn, exists, stuck = rebuild(events.start, events.kind, events.origin, events.seq, new)
            unordered = None if exists else tuple(stuck[stuck[:, 0] >= 0][0, :2].tolist())
        else:
            turn = merge_by_lamport(events.start, events.lamport)
        row_seq = np.zeros(total, np.int64)
        status = np.zeros((total, members), np.int8)
        vector = np.zeros((total, members), np.int32)
        sent_at = np.full(total, -1, np.int64)
        row_seq[at], status[at], vector[at] = in_flight.seq, in_flight.status, in_flight.vector
        process, number, destination, unrecorded = kernel.register(
            events.start, events.kind, events.origin, events.seq, events.dest_count, events.dests,
            base, first_row, old, row_seq, status,
        )  # fmt: skip
        if process >= 0:
            raise BadInput(
                f"message {process}:{number} is addressed to process {destination}, "
                f"but the run has processes 0 to {members - 1}"
            )
        known = state.known.astype(np.int32) if state else np.zeros((members, members), np.int32)
        blocks = (stop >> task.block_shift) + 1
        breaches, first_breach = np.zeros(5, np.int64), np.zeros(5, np.int64)
        late, first_late = np.zeros((blocks, 2), np.int64), np.zeros((blocks, 2, 6), np.int64)
        block_end = np.zeros(blocks, np.int64)
        foreign = np.zeros((1 if task.whole else EXPORT_MAX, 4), np.int64)
        foreign_count, true_order = kernel.judge(
            turn, stop, events.start, events.kind, events.origin, events.seq, events.lamport,
            base, new, first_row, old, row_seq,
            status, vector, known, sent_at, unordered is not None, breaches, first_breach, late, first_late,
            task.block_shift, block_end, foreign,
        )  # fmt: skip
        if true_order:
            break
    if foreign_count > len(foreign) and not task.whole and not state:
        return _unfit(task, "too many messages cross the segments")
    if task.whole:
        if foreign_count and (not breaches.sum() or foreign[0, 0] < first_breach[0]):
            first_breach[:4], first_breach[4] = foreign[0], kernel.PHANTOM
        breaches[kernel.PHANTOM] = foreign_count

    summary = Summary(
        messages=int(new.sum()), base=base, new=new, known=known, in_flight=no_rows(members), foreign=foreign[:foreign_count],
        breaches=breaches, first_breach=first_breach, late=late, first_late=first_late, block_end=block_end,
        unrecorded=unrecorded, unordered=unordered, rebuilt=rebuilding,
    )  # fmt: skip
    if not state:
        flying = _settle(task, summary, first_row, row_seq, status, vector, sent_at)
        if task.ranked and not events.views and not summary.why and not breaches.any():
            summary.ranks = rank_deliveries(events, correct_members(task.world), base, first_row, flying)
    return summary


def _settle(
    task: SegmentTask, summary: Summary, first_row: np.ndarray, row_seq: np.ndarray,
    status: np.ndarray, vector: np.ndarray, sent_at: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Agreement, as far as this segment can tell, and the messages that leave it in flight. Returns which rows do."""
    flying = np.zeros(len(row_seq), np.bool_)
    correct = correct_members(task.world)
    lost, row, process, count = kernel.settle(first_row, status, sent_at, correct, task.later, flying)
    summary.lost = lost
    origins = np.repeat(np.arange(task.world.members), np.diff(first_row))
    if row >= 0:
        summary.first_lost = (int(sent_at[row]), int(origins[row]), int(row_seq[row]), process)
    if count > EXPORT_MAX:
        summary.why = "too many messages cross the segments"
        return flying
    rows = np.flatnonzero(flying)
    summary.in_flight = Rows(
        origins[rows], row_seq[rows], status[rows], vector[rows], sent_at[rows], np.full(len(rows), task.segment, np.int64)
    )
    return flying


def correct_members(world: World) -> np.ndarray:
    correct = np.ones(world.members, np.bool_)
    correct[[member for member in world.crashed if 0 <= member < world.members]] = False
    return correct


def _unfit(task: SegmentTask, why: str) -> Summary:
    members = task.world.members
    nothing: Sequence[int] = ()
    return Summary(
        why=why, base=np.empty(0, np.int64), new=np.empty(0, np.int64), known=np.empty((0, 0), np.int32),
        in_flight=no_rows(members), foreign=np.empty((0, 4), np.int64), breaches=np.zeros(5, np.int64),
        first_breach=np.array(nothing, np.int64), late=np.zeros((0, 2), np.int64), first_late=np.zeros((0, 2, 6), np.int64),
        block_end=np.empty(0, np.int64),
    )  # fmt: skip
