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

from quire.pipeline import kernel
from quire.pipeline.segments import Rows, StartState, Summary, no_rows

Event = tuple[int, int]
"""(segment, number of the event in it): ascending in the order of the trace."""


class Flight(msgspec.Struct):
    """A message that has left its segment undelivered."""

    status: np.ndarray
    vector: np.ndarray
    sent_at: Event


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
    flights: dict[tuple[int, int], Flight] = {}
    seams = Seams(starts=[])
    for segment, summary in enumerate(summaries):
        if not np.array_equal(summary.base[summary.new > 0], count[summary.new > 0]):
            return Seams(why="a process repeats a send across segments, or skips a number")
        start = StartState(count.copy(), known.copy(), _rows(flights, members), -1)
        why = _take_foreign(seams, segment, summary, flights, count, totals, start)
        if why:
            return Seams(why=why)
        # Members that had ended before this segment owe for ever, and have no delivery in it that could be late for it.
        alive, alive_before = later[segment], later[segment - 1] if segment else np.zeros(members, np.bool_)
        if any(((flight.status == kernel.OWED) & alive_before).any() for flight in flights.values()):
            start.stop = int(kernel.UNKNOWN)
        seams.starts.append(start if start.stop >= 0 else None)
        known_then = known
        known = np.stack([_exact(summary.known[member], member, known_then, count, start) for member in range(members)])
        out = summary.in_flight
        for row in range(len(out.seq)):
            origin, seq = int(out.origin[row]), int(out.seq[row])
            vector = _exact(out.vector[row], origin, known_then, count, start)
            vector[origin] = seq
            flights[origin, seq] = Flight(out.status[row], vector, (segment, int(out.sent_at[row])))
        count = count + summary.new
        _settle(seams, flights, alive, correct)
    return seams


def _rows(flights: dict[tuple[int, int], Flight], members: int) -> Rows:
    if not flights:
        return no_rows(members)
    keys = sorted(flights)
    chosen = [flights[key] for key in keys]
    return Rows(
        np.array([origin for origin, _ in keys], np.int64),
        np.array([seq for _, seq in keys], np.int64),
        np.stack([flight.status for flight in chosen]).astype(np.int8),
        np.stack([flight.vector for flight in chosen]).astype(np.int32),
        np.array([flight.sent_at[1] for flight in chosen], np.int64),
        np.array([flight.sent_at[0] for flight in chosen], np.int64),
    )


def _exact(learned: np.ndarray, owner: int, known: np.ndarray, count: np.ndarray, start: StartState) -> np.ndarray:
    """The exact vector of what, judged alone, had learned `learned` at process `owner` in a segment with this start."""
    exact: np.ndarray = np.maximum(learned.astype(np.int64), known[owner])
    flying = start.in_flight
    for origin in np.flatnonzero(learned):
        if learned[origin] > count[origin]:
            exact = np.maximum(exact, known[origin])
        else:
            low, high = np.searchsorted(flying.origin, [origin, origin + 1])
            row = low + np.searchsorted(flying.seq[low:high], learned[origin] - 1)
            if row < high and flying.seq[row] == learned[origin] - 1:
                exact = np.maximum(exact, flying.vector[row])
    return exact


def _take_foreign(
    seams: Seams, segment: int, summary: Summary, flights: dict[tuple[int, int], Flight],
    count: np.ndarray, totals: np.ndarray, start: StartState,
) -> str:  # fmt: skip
    """Deliveries in this segment of messages that it did not see sent. Returns why they cannot be judged so, if that is so."""
    members = len(count)
    for event, process, origin, seq in summary.foreign.tolist():
        breach = kernel.PHANTOM
        if 0 <= origin < members and 0 <= seq < totals[origin]:
            if seq >= count[origin]:
                return "a delivery's logical time does not follow its send's"
            flight = flights.get((origin, seq))
            if flight is None:
                # It was delivered by all that owed it: a repetition, or one that was not addressed here and still
                # told this process what its sender knew. Only a task that sees the message can tell.
                return "a message was delivered again, or to a wrong member, after it had reached all that owed it"
            if flight.status[process] == kernel.OWED:
                flight.status = flight.status.copy()
                flight.status[process] = kernel.DELIVERED
                start.stop = max(start.stop, event)
                continue
            breach = kernel.REPEATED if flight.status[process] == kernel.DELIVERED else kernel.MISADDRESSED
        elif 0 <= origin < members and summary.base[origin] == kernel.UNKNOWN and seq >= 0:
            return "a message from nowhere claims a sender that is silent in its segment"
        seams.breaches += 1
        found = ((segment, event), (process, origin, seq, breach))
        seams.first_breach = min(seams.first_breach, found) if seams.first_breach else found
    return ""


def _settle(seams: Seams, flights: dict[tuple[int, int], Flight], alive: np.ndarray, correct: np.ndarray) -> None:
    """Drop the messages that nobody will deliver any more, and count those that agreement lacks."""
    for key in list(flights):
        flight = flights[key]
        owed = flight.status == kernel.OWED
        if (owed & alive).any():
            continue
        del flights[key]
        lacking = np.flatnonzero(owed & correct)
        if len(lacking) and (correct[key[0]] or (correct & (flight.status == kernel.DELIVERED)).any()):
            seams.lost += len(lacking)
            found = (flight.sent_at, (*key, int(lacking[0])))
            seams.first_lost = min(seams.first_lost, found) if seams.first_lost else found
