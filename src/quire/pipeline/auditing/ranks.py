"""Proves total order segment by segment: gives every message a rank, and checks that all members deliver in rank order.

Each segment merges its members' delivery sequences, which gives each message a rank in the segment. A message belongs to the
segment in which it was first delivered by anyone; its global rank is that segment, and its rank there. If every member
delivers in the order of global ranks, that order explains all deliveries, and no task needs to see the whole trace. Most
messages are delivered by all members within one segment, and so in rank order by construction; only messages delivered on both
sides of a boundary have to be examined.

If all messages of a group go to all of its members, the global ranks are in order exactly if there is a total order: what one
member delivers earlier, all deliver earlier. Otherwise there may be a total order although they are not. So a segment without
ranks, or a rank out of order, proves nothing, and the whole sequences are compared.

Breaches of integrity need no special treatment. If a member delivers a message twice in one segment, the merge never takes it,
because the second delivery waits behind the first; so the segment has no ranks. A second delivery in a later segment is out of
order there, or directly follows the first, which does not change the order of first deliveries.
"""

from __future__ import annotations

import msgspec
import numpy as np

from quire.pipeline.auditing.total import identify, take
from quire.pipeline.compiled import compiled
from quire.pipeline.slices import Events
from quire.trace.kinds import DELIVER

_SEGMENT_SHIFT = 32
"""A global rank is one number: the segment, then the rank there."""
_BEFORE_ALL = -1


class Ranks(msgspec.Struct):
    """What a segment reports about the order of its deliveries."""

    process: np.ndarray
    """The deliveries of messages that cross a boundary: the member, the delivery's index at this member in the segment, the
    message, and its rank."""
    index: np.ndarray
    origin: np.ndarray
    seq: np.ndarray
    rank: np.ndarray
    last: np.ndarray
    """For each member, the rank of the last message that it delivered in the segment; -1 if there is none."""
    counts: np.ndarray
    """For each member, the number of its deliveries in the segment."""


def rank_deliveries(
    events: Events, correct: np.ndarray, base: np.ndarray, first_row: np.ndarray, in_flight: np.ndarray
) -> Ranks | None:
    """The ranks of a segment; None if its deliveries cannot be merged. Each process sends the messages from `base` on in it,
    whose rows begin at `first_row`; `in_flight` marks the rows that leave the segment in flight."""
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
    """For each delivery of a correct member, its message's row (-1 if it was sent elsewhere) and its event; and the index at
    which each member's deliveries begin."""
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


class OneOrder:
    """Whether every member delivers in the order of global ranks. That it does not, does not mean that there is no total order.

    Segments are to be followed from first to last. The messages that may still be delivered are remembered.
    """

    def __init__(self, members: int) -> None:
        self.explains = True
        self.origin = np.empty(0, np.int64)
        self.seq = np.empty(0, np.int64)
        """The messages that are remembered."""
        self._place = np.empty(0, np.int64)
        """Their global ranks."""
        self._latest = np.full(members, _BEFORE_ALL, np.int64)
        """For each member, the global rank of what it delivered last."""

    def follow(self, segment: int, ranks: Ranks | None) -> None:
        if ranks is None:
            self.explains = False
        if ranks is None or not self.explains:
            return
        known = len(self.origin)
        origin, seq = np.concatenate((self.origin, ranks.origin)), np.concatenate((self.seq, ranks.seq))
        ids, size = identify(origin, seq)
        begin = segment << _SEGMENT_SHIFT
        place = np.full(size, -1, np.int64)
        place[ids[known:]] = begin | ranks.rank.astype(np.int64)
        place[ids[:known]] = self._place
        self._check(begin, ranks, place[ids[known:]])
        row = np.full(size, -1, np.int64)
        row[ids] = np.arange(len(ids))
        row = row[row >= 0]
        self.origin, self.seq, self._place = origin[row], seq[row], place[ids[row]]

    def _check(self, begin: int, ranks: Ranks, place: np.ndarray) -> None:
        """Messages of earlier segments must come before all messages of this one, and in the order of their ranks."""
        old = np.flatnonzero(place < begin)
        process, place = ranks.process[old], place[old]
        bounds = np.searchsorted(process, np.arange(len(self._latest) + 1))
        has = np.flatnonzero(np.diff(bounds))
        before = np.append(_BEFORE_ALL, place[:-1])[: len(place)]
        before[bounds[has]] = self._latest[has]
        first = bool((ranks.index[old] == np.arange(len(old)) - bounds[process]).all())
        self.explains = first and not bool((place <= before).any())
        self._latest[has] = place[bounds[has + 1] - 1]
        more = np.flatnonzero(ranks.counts > np.diff(bounds))
        self._latest[more] = begin | ranks.last[more].astype(np.int64)

    def remember(self, kept: np.ndarray) -> None:
        """Forget all messages but these."""
        self.origin, self.seq, self._place = self.origin[kept], self.seq[kept], self._place[kept]
