"""Total order in segments: a rank for every message, by which one order explains every member.

A segment merges the deliveries that it sees, which gives each message a rank in it. A message belongs to the segment in
which anybody delivered it first; its global rank is that segment, and its rank there. If every member delivers in the
order of global ranks, that order explains everything, and nobody has to see the whole trace at once. Most messages are
delivered in one segment by everybody, in the order of their ranks, because that is how these were found; so only those
that cross a boundary have to be looked at.

Where all messages of a group go to all of it, global ranks are in order exactly if there is a total order: what was
delivered earlier by one member is delivered earlier by all. Otherwise there can be one although they are not in order. So
a segment without ranks, or a rank out of order, proves nothing, and the sequences are compared as a whole.

Breaches of integrity need no care. What a member delivers twice in one segment is never taken, because the second delivery
waits behind the first; so the segment has no ranks. Delivered again in a later segment, it is out of order there, or follows
itself, which changes no order of first deliveries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from quire.pipeline.auditing.total import take
from quire.pipeline.compiled import compiled
from quire.pipeline.slices import Events
from quire.trace.kinds import DELIVER


class GlobalRank(NamedTuple):
    segment: int
    rank: int


BEFORE_ALL = GlobalRank(-1, -1)


class Ranks(msgspec.Struct):
    """What a segment says of the order of deliveries in it."""

    process: np.ndarray
    """Deliveries of messages that cross a boundary: where, as which of this member in the segment, of what, and its rank."""
    index: np.ndarray
    origin: np.ndarray
    seq: np.ndarray
    rank: np.ndarray
    last: np.ndarray
    """Of each member, the rank of the last message that it delivered in the segment; -1 where there is none."""
    counts: np.ndarray
    """Of each member, how many messages it delivered in the segment."""


def rank_deliveries(
    events: Events, correct: np.ndarray, base: np.ndarray, first_row: np.ndarray, in_flight: np.ndarray
) -> Ranks | None:
    """The ranks of a segment in which each process sends the messages from `base` on, whose rows are from `first_row` on;
    None where its deliveries cannot be merged."""
    rows = len(in_flight)
    ids, where, start = _number(events.start, events.kind, events.origin, events.seq, correct, base, first_row)
    foreign = np.flatnonzero(ids < 0)
    names = np.stack([events.origin[where[foreign]].astype(np.int64), events.seq[where[foreign]]])
    unknown, numbers = np.unique(names, axis=1, return_inverse=True)
    ids[foreign] = rows + numbers.reshape(-1)
    size = rows + unknown.shape[1]
    rank = np.zeros(size, np.int32)
    if take(ids, start[:-1].copy(), start[1:].copy(), size, 1, rank) < len(ids):
        return None
    counts = np.diff(start)
    last = np.full(len(correct), -1, np.int32)
    last[counts > 0] = rank[ids[start[1:][counts > 0] - 1]]
    crosses = np.ones(size, np.bool_)
    crosses[:rows] = in_flight
    crossing = np.flatnonzero(crosses[ids])
    process = np.searchsorted(start, crossing, side="right") - 1
    at = where[crossing]
    return Ranks(process, crossing - start[process], events.origin[at], events.seq[at], rank[ids[crossing]], last, counts)


@compiled
def _number(
    start: np.ndarray, kind: np.ndarray, origin: np.ndarray, seq: np.ndarray, correct: np.ndarray,
    base: np.ndarray, first_row: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """The rows of what correct members deliver, -1 for messages sent elsewhere; at which events; where each member begins."""
    members = len(correct)
    ids = np.empty(start[members], np.int32)
    where = np.empty(start[members], np.int32)
    bounds = np.zeros(members + 1, np.int64)
    count = 0
    for process in range(members):
        for event in range(start[process], start[process + 1]):
            if kind[event] != DELIVER or not correct[process]:
                continue
            ids[count] = -1
            where[count] = event
            source = origin[event]
            if 0 <= source < members:
                row = first_row[source] + seq[event] - base[source]
                if first_row[source] <= row < first_row[source + 1]:
                    ids[count] = row
            count += 1
        bounds[process + 1] = count
    return ids[:count], where[:count], bounds


def one_order_explains(segments: Sequence[Ranks | None]) -> bool:
    """Whether every member delivers in the order of global ranks. False does not mean that there is no order."""
    global_ranks: dict[tuple[int, int], GlobalRank] = {}
    latest: dict[int, GlobalRank] = {}
    for segment, ranks in enumerate(segments):
        if ranks is None:
            return False
        columns = (ranks.process, ranks.index, ranks.origin, ranks.seq, ranks.rank)
        old: dict[int, int] = {}
        for process, index, origin, seq, rank in zip(*(column.tolist() for column in columns), strict=True):
            own = global_ranks.setdefault((origin, seq), GlobalRank(segment, rank))
            if own.segment == segment:
                continue
            # All that was first delivered in an earlier segment comes before anything of this one, in the order of ranks.
            if index != old.get(process, 0) or own <= latest.get(process, BEFORE_ALL):
                return False
            latest[process] = own
            old[process] = index + 1
        for process, (last, count) in enumerate(zip(ranks.last.tolist(), ranks.counts.tolist(), strict=True)):
            if count > old.get(process, 0):
                latest[process] = GlobalRank(segment, last)
    return True
