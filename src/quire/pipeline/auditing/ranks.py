"""Total order in segments: a rank for every message, by which one order explains every member.

A segment merges the deliveries that it sees, which gives each message a rank in it. A message belongs to the segment in
which anybody delivered it first; its place in the order of all is that segment, and its rank there. If every member
delivers in the order of these places, that order explains everything, and nobody has to see the whole trace at once. Most
messages are delivered in one segment by everybody, in the order of their ranks, because that is how these were found; so
only those that cross a seam have to be looked at.

Where all messages of a group go to all of it, the places are in order exactly if there is a total order: what was delivered
earlier by one member is delivered earlier by all. Otherwise there can be one although the places are not in order. So a
segment without ranks, or a place out of order, proves nothing, and the sequences are compared as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from quire.pipeline.auditing.total import take
from quire.pipeline.slices import Events
from quire.trace.schema import DELIVER

Place = tuple[int, int]
"""A segment, and a rank in it."""
NOWHERE: Place = (-1, -1)


class Ranks(msgspec.Struct):
    """What a segment says of the order of deliveries in it."""

    process: np.ndarray
    """Deliveries of messages that cross a seam: where, as which of this member in the segment, of what, and its rank."""
    index: np.ndarray
    origin: np.ndarray
    seq: np.ndarray
    rank: np.ndarray
    last: np.ndarray
    """Of each member, the rank of the last message that it delivered in the segment; -1 where there is none."""
    counts: np.ndarray
    """Of each member, how many messages it delivered in the segment."""


def rank_deliveries(
    events: Events, correct: np.ndarray, base: np.ndarray, first_row: np.ndarray, flying: np.ndarray
) -> Ranks | None:
    """The ranks of a segment in which each process sends the messages from `base` on, whose rows are from `first_row` on;
    None where its deliveries cannot be merged."""
    members = len(correct)
    process = np.repeat(np.arange(members, dtype=np.int32), np.diff(events.start))
    delivered = (events.kind == DELIVER) & correct[process]
    process, origin, seq = process[delivered], events.origin[delivered], events.seq[delivered]
    known = (origin >= 0) & (origin < members)
    source = np.where(known, origin, 0)
    own = known & (seq >= base[source]) & (seq - base[source] < np.diff(first_row)[source])
    rows = len(flying)
    ids = np.where(own, first_row[source] + seq - base[source], 0)
    strangers, numbers = np.unique(np.stack([origin[~own], seq[~own]]), axis=1, return_inverse=True)
    ids[~own] = rows + numbers.reshape(-1)
    size = rows + strangers.shape[1]
    counts = np.bincount(process, minlength=members)
    start = np.concatenate(([0], np.cumsum(counts)))
    rank = np.zeros(size, np.int32)
    ids = ids.astype(np.int32)
    if take(ids, start[:-1].copy(), start[1:].copy(), size, 1, rank) < len(ids):
        return None
    last = np.full(members, -1, np.int32)
    last[counts > 0] = rank[ids[start[1:][counts > 0] - 1]]
    crossing = np.flatnonzero(np.concatenate((flying, np.ones(strangers.shape[1], np.bool_)))[ids])
    index = crossing - start[process[crossing]]
    return Ranks(process[crossing], index, origin[crossing], seq[crossing], rank[ids[crossing]], last, counts)


def one_order_explains(segments: Sequence[Ranks | None]) -> bool:
    """Whether every member delivers in the order of the messages' places. False does not mean that there is no order."""
    places: dict[tuple[int, int], Place] = {}
    latest: dict[int, Place] = {}
    for segment, ranks in enumerate(segments):
        if ranks is None:
            return False
        columns = (ranks.process, ranks.index, ranks.origin, ranks.seq, ranks.rank)
        old: dict[int, int] = {}
        for process, index, origin, seq, rank in zip(*(column.tolist() for column in columns), strict=True):
            place = places.setdefault((origin, seq), (segment, rank))
            if place[0] == segment:
                continue
            # All that was first delivered in an earlier segment comes before anything of this one, in the order of places.
            if index != old.get(process, 0) or place <= latest.get(process, NOWHERE):
                return False
            latest[process] = place
            old[process] = index + 1
        for process, (last, count) in enumerate(zip(ranks.last.tolist(), ranks.counts.tolist(), strict=True)):
            if count > old.get(process, 0):
                latest[process] = (segment, last)
    return True
