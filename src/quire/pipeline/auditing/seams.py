"""Putting the segments' summaries together, one after the other, into the exact state in which each of them began.

A process knows at the end of a segment what it knew at its start, what it learned in it, and what the senders it heard
of knew: a sender heard of by a message of this segment knew at least its own start; one heard of by an older message
knew that message's vector, which is at hand because the message was still in flight. Messages that are older and not
in flight have been delivered by all who will ever deliver them.

From the exact state follow the verdicts that no segment could give alone, and how far into each segment the seam
reaches: up to the delivery of the last message that was in flight into it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from quire.pipeline.auditing import kernel
from quire.pipeline.auditing.segments import Rows, StartState, Summary, no_rows
from quire.pipeline.numbering import UNKNOWN

Event = tuple[int, int]
"""(segment, number of the event in it): ascending in the order of the trace."""


class Seams(msgspec.Struct, kw_only=True):
    """`why` says, instead of the rest, why the trace has to be judged in one piece."""

    why: str = ""
    starts: list[StartState | None] = []
    """For each segment, the state in which it must be judged again; None where its own verdict stands."""
    breaches: int = 0
    first_breach: tuple[Event, tuple[int, int, int, int]] | None = None
    """(process, origin, seq, kind of breach)"""
    lost: int = 0
    first_lost: tuple[Event, tuple[int, int, int]] | None = None
    """(origin, seq, process)"""


def join_segments(summaries: Sequence[Summary], later: Sequence[np.ndarray], correct: np.ndarray) -> Seams:
    """The exact start of every segment, from what each says of itself. `later[j]`: who has events after segment j."""
    for summary in summaries:
        if summary.why:
            return Seams(why=summary.why)
        if summary.unrecorded:
            return Seams(why="some messages do not record their destinations")
    members = len(correct)
    totals = np.sum([summary.new for summary in summaries], axis=0)
    count = np.zeros(members, np.int64)
    known = np.zeros((members, members), np.int64)
    flying = no_rows(members)
    alive = np.zeros(members, np.bool_)
    seams = Seams(starts=[])
    for segment, summary in enumerate(summaries):
        if not np.array_equal(summary.base[summary.new > 0], count[summary.new > 0]):
            return Seams(why="a process repeats a send across segments, or skips a number")
        start = StartState(count, known, flying, -1)
        status, why = _take_foreign(seams, segment, summary, start, totals)
        if why:
            return Seams(why=why)
        # Members that had ended before this segment owe for ever, and have no delivery in it that could be late for it.
        if (status[:, alive] == kernel.OWED).any():
            start.stop = int(UNKNOWN)
        seams.starts.append(start if start.stop >= 0 else None)
        out = summary.in_flight
        vector = _exact(out.vector, out.origin, start)
        vector[np.arange(len(out.seq)), out.origin] = out.seq
        out = msgspec.structs.replace(out, vector=vector.astype(np.int32))
        known = _exact(summary.known, np.arange(members), start)
        count = count + summary.new
        alive = later[segment]
        flying = _settle(seams, _join(msgspec.structs.replace(flying, status=status), out), alive, correct)
    return seams


def _exact(learned: np.ndarray, owners: np.ndarray, start: StartState) -> np.ndarray:
    """The exact vectors of what, judged alone, had learned this (a row each) at these processes after this start."""
    exact: np.ndarray = np.maximum(learned.astype(np.int64), start.known[owners])
    for origin in range(learned.shape[1]):
        heard = learned[:, origin]
        recent = heard > start.base[origin]
        exact[recent] = np.maximum(exact[recent], start.known[origin])
        older = np.flatnonzero((heard > 0) & ~recent)
        rows, found = _find(start.in_flight, np.full(len(older), origin), heard[older] - 1)
        exact[older[found]] = np.maximum(exact[older[found]], start.in_flight.vector[rows[found]])
    return exact


def _find(flying: Rows, origin: np.ndarray, seq: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows of these messages, and which of them there are."""
    if not len(flying.seq):
        return np.zeros(len(seq), np.int64), np.zeros(len(seq), np.bool_)
    keys = (flying.origin << 32) | flying.seq
    wanted = (origin.astype(np.int64) << 32) | seq
    rows = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return rows, keys[rows] == wanted


def _take_foreign(
    seams: Seams, segment: int, summary: Summary, start: StartState, totals: np.ndarray
) -> tuple[np.ndarray, str]:  # fmt: skip
    """Deliveries in this segment of messages that it did not see sent.

    Returns the status of the messages in flight after them, and why they cannot be judged so, if that is so.
    """
    members = len(totals)
    status = start.in_flight.status.copy()
    event, process, origin, seq = summary.foreign.T
    claims = (origin >= 0) & (origin < members) & (seq >= 0)
    source = np.where(claims, origin, 0)
    real = claims & (seq < totals[source])
    if (real & (seq >= start.base[source])).any():
        return status, "a delivery's logical time does not follow its send's"
    if (claims & ~real & (summary.base[source] == UNKNOWN)).any():
        return status, "a message from nowhere claims a sender that is silent in its segment"
    rows, found = _find(start.in_flight, source, np.where(real, seq, -1))
    if (real & ~found).any():
        # It was delivered by all that owed it: a repetition, or one that was not addressed here and still told this
        # process what its sender knew. Only a task that sees the message can tell.
        return status, "a message was delivered again, or to a wrong member, after it had reached all that owed it"
    due = np.zeros(len(seq), np.bool_)
    candidates = np.flatnonzero(real)
    _, first = np.unique(rows[candidates] * members + process[candidates], return_index=True)
    due[candidates[first]] = status[rows[candidates[first]], process[candidates[first]]] == kernel.OWED
    status[rows[due], process[due]] = kernel.DELIVERED
    start.stop = int(event[due].max(initial=-1))
    seams.breaches += int((~due).sum())
    if not due.all() and seams.first_breach is None:
        at = int(np.argmin(due))
        breach = kernel.PHANTOM
        if real[at]:
            addressed = start.in_flight.status[rows[at], process[at]] != kernel.NOT_ADDRESSED
            breach = kernel.REPEATED if addressed else kernel.MISADDRESSED
        seams.first_breach = ((segment, int(event[at])), (int(process[at]), int(origin[at]), int(seq[at]), breach))
    return status, ""


def _join(old: Rows, new: Rows) -> Rows:
    """Both, in the order of (origin, seq)."""
    order = np.lexsort((np.concatenate((old.seq, new.seq)), np.concatenate((old.origin, new.origin))))
    fields = zip(msgspec.structs.astuple(old), msgspec.structs.astuple(new), strict=True)
    return Rows(*(np.concatenate(pair)[order] for pair in fields))


def _settle(seams: Seams, flying: Rows, alive: np.ndarray, correct: np.ndarray) -> Rows:
    """Count what agreement lacks of the messages that nobody will deliver any more; returns the others."""
    owed = flying.status == kernel.OWED
    ended = ~(owed & alive).any(axis=1)
    lacking = owed & correct
    reached = correct[flying.origin] | (correct & (flying.status == kernel.DELIVERED)).any(axis=1)
    lost = np.flatnonzero(ended & reached & lacking.any(axis=1))
    if len(lost):
        seams.lost += int(lacking[lost].sum())
        at = int(lost[np.lexsort((flying.sent_at[lost], flying.sent_in[lost]))[0]])
        instance = (int(flying.origin[at]), int(flying.seq[at]), int(np.argmax(lacking[at])))
        found = ((int(flying.sent_in[at]), int(flying.sent_at[at])), instance)
        seams.first_lost = min(seams.first_lost, found) if seams.first_lost else found
    return Rows(*(field[~ended] for field in msgspec.structs.astuple(flying)))
