"""Computes the exact state at the start of every segment, by combining the segments' summaries from first to last.

At the end of a segment, a process's vector clock is the maximum of its vector at the start, of what it learned in the
segment, and of the vectors of the senders it heard from. A sender whose message was sent in this segment knew at least what
it knew at the segment's start. For an older message the sender's vector is that of the message, which is at hand because
the message was still in flight. Older messages that are no longer in flight have been delivered by every process that will
ever deliver them. So the driver never has to hold more than what crosses one boundary, however many there are.

The exact state decides what no segment can decide alone. It also bounds the part of each segment that depends on its start:
up to the last delivery of a message that was in flight across the boundary.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from quire.model.messages import MessageId
from quire.pipeline.auditing import kernel
from quire.pipeline.auditing.findings import Breach, Dated, Lost
from quire.pipeline.auditing.ranks import OneOrder
from quire.pipeline.auditing.segments import Crossing, Restart, Rows, StartState, Summary, no_rows
from quire.pipeline.auditing.settling import Bound, bound_to
from quire.pipeline.codec import decode, pack
from quire.pipeline.numbering import UNKNOWN


class Boundaries(msgspec.Struct, kw_only=True):
    """The start state of each segment, and the violations that show only across segments.

    If `why` is not empty, it is the reason that the trace has to be judged in one piece, and the other fields are not set.
    """

    why: str = ""
    starts: list[Restart | None] = []
    """For each segment, from where it must be judged again; None if its first verdict stands."""
    one_order: bool = False
    """Whether the segments' ranks show that one order explains all deliveries."""
    breaches: int = 0
    first_breach: Dated[Breach] | None = None
    lost: int = 0
    first_lost: Dated[Lost] | None = None


def join_segments(summaries: Sequence[Summary], later: Sequence[np.ndarray], correct: np.ndarray, bound: Bound) -> Boundaries:
    """Find the exact start state of every segment from the segments' summaries.

    `later[j]`: which processes have events after segment j. `bound`: which processes must deliver the messages of which view.
    """
    for summary in summaries:
        if summary.why:
            return Boundaries(why=summary.why)
        if summary.unrecorded:
            return Boundaries(why="some messages do not record their destinations")
    members = len(correct)
    totals = np.sum([summary.new for summary in summaries], axis=0)
    count = np.zeros(members, np.int64)
    known = np.zeros((members, members), np.int64)
    in_flight = no_rows(members)
    alive = np.zeros(members, np.bool_)
    reached_view = np.full(members, -1, np.int32)
    boundaries, order = Boundaries(starts=[]), OneOrder(members)
    for segment, summary in enumerate(summaries):
        if not np.array_equal(summary.base[summary.new > 0], count[summary.new > 0]):
            return Boundaries(why="a process repeats a send across segments, or skips a number")
        crossing = decode(summary.crossing, Crossing)
        start = StartState(count, known, in_flight)
        status, stop, why = _take_foreign(boundaries, segment, summary, crossing.foreign, start, totals)
        if why:
            return Boundaries(why=why)
        # A process with no events left, or in a later view than the message's, will never deliver it, so no delivery there can
        # be out of order because of it.
        if _awaited(start.in_flight.in_view, status, alive, reached_view).any():
            stop = int(UNKNOWN)
        boundaries.starts.append(Restart(pack(start), stop) if stop >= 0 else None)
        out = crossing.in_flight
        vector = _exact(out.vector, out.origin, start)
        vector[np.arange(len(out.seq)), out.origin] = out.seq
        out = msgspec.structs.replace(out, vector=vector.astype(np.int32))
        known = _exact(summary.known, np.arange(members), start)
        count = count + summary.new
        alive, reached_view = later[segment], np.maximum(reached_view, summary.in_view)
        every = _join(msgspec.structs.replace(in_flight, status=status), out)
        ended = np.logical_not(_awaited(every.in_view, every.status, alive, reached_view)).all(axis=1)
        in_flight = _settle(boundaries, every, np.asarray(ended), correct, bound)
        order.follow(segment, crossing.ranks)
        order.remember(_lasting(order, in_flight, totals))
    boundaries.one_order = order.explains
    return boundaries


def _lasting(order: OneOrder, in_flight: Rows, totals: np.ndarray) -> np.ndarray:
    """Which messages may still be delivered: those in flight, and those that nobody ever sent."""
    claims = (order.origin >= 0) & (order.origin < len(totals)) & (order.seq >= 0)
    real = claims & (order.seq < totals[np.where(claims, order.origin, 0)])
    _, found = _find(in_flight, np.where(real, order.origin, 0), np.where(real, order.seq, -1))
    return np.asarray(~real | found)


def _awaited(in_view: np.ndarray, status: np.ndarray, alive: np.ndarray, reached_view: np.ndarray) -> np.ndarray:
    """[message, process]: whether the message may still be delivered there: it is owed, and the process is alive and not yet in
    a later view."""
    return np.asarray((status == kernel.OWED) & alive & (in_view[:, None] >= reached_view))


def _exact(learned: np.ndarray, owners: np.ndarray, start: StartState) -> np.ndarray:
    """Exact vectors, one per row of `learned`: what `owners` learned within a segment, completed with its start state."""
    exact: np.ndarray = np.maximum(learned.astype(np.int64), start.known[owners])
    for origin in range(learned.shape[1]):
        heard = learned[:, origin]
        recent = heard > start.base[origin]
        exact[recent] = np.maximum(exact[recent], start.known[origin])
        older = np.flatnonzero((heard > 0) & ~recent)
        rows, found = _find(start.in_flight, np.full(len(older), origin), heard[older] - 1)
        exact[older[found]] = np.maximum(exact[older[found]], start.in_flight.vector[rows[found]])
    return exact


def _find(in_flight: Rows, origin: np.ndarray, seq: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The row of each of these messages among those in flight, and whether it is there."""
    if not len(in_flight.seq):
        return np.zeros(len(seq), np.int64), np.zeros(len(seq), np.bool_)
    keys = (in_flight.origin << 32) | in_flight.seq
    wanted = (origin.astype(np.int64) << 32) | seq
    rows = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return rows, keys[rows] == wanted


def _take_foreign(
    boundaries: Boundaries, segment: int, summary: Summary, foreign: np.ndarray, start: StartState, totals: np.ndarray
) -> tuple[np.ndarray, int, str]:  # fmt: skip
    """Judge this segment's foreign deliveries: those of messages that were not sent in it.

    Returns the status of the messages in flight after these deliveries, the last of the events that deliver one (-1: none),
    and the reason they cannot be judged this way, if any.
    """
    members = len(totals)
    status = start.in_flight.status.copy()
    event, process, origin, seq = foreign.T
    claims = (origin >= 0) & (origin < members) & (seq >= 0)
    source = np.where(claims, origin, 0)
    real = claims & (seq < totals[source])
    if (real & (seq >= start.base[source])).any():
        return status, -1, "a delivery's logical time does not follow its send's"
    if (claims & ~real & (summary.base[source] == UNKNOWN)).any():
        return status, -1, "a message from nowhere claims a sender that is silent in its segment"
    rows, found = _find(start.in_flight, source, np.where(real, seq, -1))
    if (real & ~found).any():
        # Everyone who owed the message has delivered it, so this is a repetition, or a delivery by a process it was not
        # addressed to (which still learns what its sender knew). Only a task that sees the message itself can tell which.
        return status, -1, "a message was delivered again, or to a wrong member, after it had reached all that owed it"
    due = np.zeros(len(seq), np.bool_)
    candidates = np.flatnonzero(real)
    _, first = np.unique(rows[candidates] * members + process[candidates], return_index=True)
    due[candidates[first]] = status[rows[candidates[first]], process[candidates[first]]] == kernel.OWED
    status[rows[due], process[due]] = kernel.DELIVERED
    boundaries.breaches += int((~due).sum())
    if not due.all() and boundaries.first_breach is None:
        at = int(np.argmin(due))
        breach = kernel.PHANTOM
        if real[at]:
            addressed = start.in_flight.status[rows[at], process[at]] != kernel.NOT_ADDRESSED
            breach = kernel.REPEATED if addressed else kernel.MISADDRESSED
        message = MessageId(int(origin[at]), int(seq[at]))
        boundaries.first_breach = Dated(segment, int(event[at]), Breach(int(process[at]), message, breach))
    return status, int(event[due].max(initial=-1)), ""


def _join(old: Rows, new: Rows) -> Rows:
    """Concatenate both, sorted by (origin, seq)."""
    order = np.lexsort((np.concatenate((old.seq, new.seq)), np.concatenate((old.origin, new.origin))))
    fields = zip(msgspec.structs.astuple(old), msgspec.structs.astuple(new), strict=True)
    return Rows(*(np.concatenate(pair)[order] for pair in fields))


def _settle(boundaries: Boundaries, in_flight: Rows, ended: np.ndarray, correct: np.ndarray, bound: Bound) -> Rows:
    """Count violations of agreement among the messages that nobody will deliver any more; return those still in flight."""
    receiving = correct & bound_to(in_flight.in_view, bound.receivers)
    sending = (correct & bound_to(in_flight.in_view, bound.senders))[np.arange(len(in_flight.seq)), in_flight.origin]
    lacking = receiving & (in_flight.status == kernel.OWED)
    delivered = receiving & (in_flight.status == kernel.DELIVERED)
    lost = np.flatnonzero(ended & (sending | delivered.any(axis=1)) & lacking.any(axis=1))
    if len(lost):
        boundaries.lost += int(lacking[lost].sum())
        at = int(lost[np.lexsort((in_flight.sent_at[lost], in_flight.sent_in[lost]))[0]])
        message = MessageId(int(in_flight.origin[at]), int(in_flight.seq[at]))
        because_of = message.origin if sending[at] else int(np.argmax(delivered[at]))
        loss = Lost(message, int(np.argmax(lacking[at])), because_of)
        found = Dated(int(in_flight.sent_in[at]), int(in_flight.sent_at[at]), loss)
        boundaries.first_lost = min(boundaries.first_lost, found) if boundaries.first_lost else found
    return Rows(*(field[~ended] for field in msgspec.structs.astuple(in_flight)))
