"""Judges calls of objects in segments of logical time, each read with some margin before and after it.

Whether one message significantly precedes another is decided by what happens between the two sends. So if every message is
delivered within a *reach* of its send, and every instance ends within a reach of its beginning, everything that matters for a
delivery happens near it, and its segment can judge it:

- a delivery that comes too early is at most one reach after its send, and so is the one that it should have followed, which was
  sent before it and delivered after it: both sends, both deliveries, and all between them, lie within one reach of the former;
- an instance that ended there began at most one reach before that;
- if two destinations begin two requests in different orders, all four deliveries lie within four reaches of each other.

So a segment is read with four reaches on either side, and reports whether its own events keep within the reach. If those of all
segments do, their findings together are those of the trace; otherwise one task judges the whole trace. Names of instances, and
those that the messages of one request share, are not reused later (docs/trace.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec
import numpy as np

from quire.pipeline.auditing.calls import COLUMNS, UNSENT, Calls, Conflicts, Disagreeing
from quire.pipeline.auditing.significance import SEND_RESPONSE, START
from quire.pipeline.columns import kinds, numbers
from quire.pipeline.compiled import compiled
from quire.pipeline.labels import Labelled, LabelledSlices
from quire.pipeline.layout import Layout, RowGroup, World, correct_members, cut, overlapping
from quire.pipeline.reading import TraceReader
from quire.trace.kinds import DELIVER, SEND

ROWS_PER_SEGMENT = 2_500_000
REACHES_PER_SEGMENT = 64

_SIDE = 4
"""How many reaches are read on either side of a segment."""


class TimeSegment(msgspec.Struct, frozen=True):
    """The logical times from `low` up to before `high`; None means no bound."""

    number: int
    low: int | None
    high: int | None
    reach: int


class Sent(msgspec.Struct, frozen=True, order=True):
    """The numbers of the messages that a process sends in a segment, from the first to the last."""

    process: int
    segment: int
    first: int
    last: int


class CallPart(msgspec.Struct, frozen=True):
    """What a segment reports for the joint verdict; it is conclusive only once all segments are joined."""

    fits: bool = True
    """Whether its events keep within the reach, and its logical times are correct."""
    instances: int = 0
    operations: int = 0
    """How many events do not name them."""
    sent: tuple[Sent, ...] = ()
    disagreeing: tuple[Disagreeing, ...] = ()

    def joined(self, other: CallPart) -> CallPart:
        """Of two destinations that disagree in both, what is seen first counts."""
        first: dict[tuple[str, int, str, int], Disagreeing] = {}
        for each in sorted((*self.disagreeing, *other.disagreeing), key=lambda each: (each.pair(), each.seen[1].pos)):
            first.setdefault(each.pair(), each)
        return CallPart(
            self.fits and other.fits, self.instances + other.instances, self.operations + other.operations,
            (*self.sent, *other.sent), tuple(first.values()),
        )  # fmt: skip

    @property
    def settled(self) -> bool:
        """Whether the segments suffice: nothing can be said, or all fit, and each process numbers its messages from 0 on."""
        return bool(self.instances or self.operations) or (self.fits and self._is_numbered())

    def _is_numbered(self) -> bool:
        following: dict[int, int] = {}
        for sent in sorted(self.sent):
            if sent.first != following.get(sent.process, 0):
                return False
            following[sent.process] = sent.last + 1
        return True


def cut_by_time(layout: Layout, pieces: int | None = None) -> tuple[TimeSegment, ...]:
    """The segments of the trace; empty if it cannot be cut."""
    pieces = pieces or -(-layout.rows // ROWS_PER_SEGMENT)
    if not layout.timed or pieces < 2:
        return ()
    low, high = min(group.low or 0 for group in layout.groups), max(group.high or 0 for group in layout.groups)
    reach = max(1, (high - low) // pieces // REACHES_PER_SEGMENT)
    bounds: list[int | None] = [None, *cut(layout, pieces), None]
    return tuple(TimeSegment(number, *edges, reach) for number, edges in enumerate(pairwise(bounds)))


class SegmentRows(NamedTuple):
    rows: Labelled
    """Sends and deliveries."""
    times: np.ndarray
    own: np.ndarray
    """Which of them belong to the segment itself."""
    ordered: bool


def read_segment(world: World, groups: Sequence[RowGroup], segment: TimeSegment) -> SegmentRows:
    low = None if segment.low is None else segment.low - _SIDE * segment.reach
    high = None if segment.high is None else segment.high + _SIDE * segment.reach
    slices, times, ordered = LabelledSlices(world, COLUMNS, as_met=("txn",)), [np.empty(0, np.int64)], True
    with TraceReader(world.run) as reader:
        for own, table in reader.read_files(overlapping(groups, low, high), ["kind", "origin", "seq", "lamport", *COLUMNS]):
            lamport, known = numbers(table, "lamport")
            ordered = ordered and bool(known.all() and (lamport[1:] > lamport[:-1]).all())
            wanted = (kinds(table["kind"]) <= DELIVER) & _within(lamport, low, high)
            slices.add(own, table.drop_columns(["lamport"]), wanted)
            times.append(lamport[wanted])
    every = np.concatenate(times)
    return SegmentRows(slices.labelled(), every, _within(every, segment.low, segment.high), ordered)


def _within(times: np.ndarray, low: int | None, high: int | None) -> np.ndarray:
    inside = np.ones(len(times), np.bool_)
    if low is not None:
        inside &= times >= low
    if high is not None:
        inside &= times < high
    return inside


def arrange_segment(found: SegmentRows, segment: TimeSegment, declared: Conflicts, world: World) -> tuple[Calls, CallPart]:
    """The calls of a segment, and what it says of itself; those can be judged if it fits and all events have their names."""
    calls = Calls(found.rows, declared, correct_members(world), found.times, found.own)
    instances, operations = calls.unnamed()
    if instances or operations:
        return calls, CallPart(instances=instances, operations=operations)
    sent = _find_sent(calls, segment)
    if not found.ordered or sent is None or not calls.are_times_right or not _keeps_to(calls, segment.reach):
        return calls, CallPart(fits=False)
    return calls, CallPart(sent=tuple(sent))


def _find_sent(calls: Calls, segment: TimeSegment) -> list[Sent] | None:
    """What each process sends in the segment; None if a message number near it is skipped or repeated."""
    sent = []
    for process, (low, high) in enumerate(pairwise(calls.start.tolist())):
        events = low + np.flatnonzero((calls.kind[low:high] == SEND) & (calls.origin[low:high] == process))
        if (np.diff(calls.seq[events]) != 1).any():
            return None
        own = calls.seq[events[calls.own[events]]]
        if len(own):
            sent.append(Sent(process, segment.number, int(own[0]), int(own[-1])))
    return sent


def _keeps_to(calls: Calls, reach: int) -> bool:
    """Whether the own deliveries, the ends of instances and the messages of one request are near what they follow."""
    delivered = calls.kind == DELIVER
    shared = np.flatnonzero(calls.group >= 0)
    if delivered[shared].any():
        return False
    began = np.full(calls.instances, UNSENT, np.int64)
    if not _is_near(
        calls.times, calls.own, delivered, calls.what, calls.message, calls.instance, calls.are_requests(), calls.sent_at(),
        began, reach,
    ):  # fmt: skip
        return False
    if not len(shared):
        return True
    first, request, times = np.full(calls.messages, UNSENT, np.int64), calls.requests()[shared], calls.times[shared]
    np.minimum.at(first, request, times)
    begins = first[request]
    return bool((~calls.own[shared] | ((begins <= times) & (begins >= times - reach))).all())


@compiled
def _is_near(
    times: np.ndarray, own: np.ndarray, delivered: np.ndarray, what: np.ndarray, message: np.ndarray, instance: np.ndarray,
    requests: np.ndarray, sent: np.ndarray, began: np.ndarray, reach: int,
) -> bool:  # fmt: skip
    """Whether the own deliveries are within a reach after their sends, and the ends of instances after their beginnings; what
    is not there is not near. `began` is UNSENT before."""
    for event in range(len(times)):
        if delivered[event] and (what[event] == START or requests[message[event]]):
            began[instance[event]] = min(began[instance[event]], times[event])
    for event in range(len(times)):
        if own[event]:
            if delivered[event] and not 0 <= times[event] - sent[message[event]] <= reach:
                return False
            if what[event] == SEND_RESPONSE and not 0 <= times[event] - began[instance[event]] <= reach:
                return False
    return True
