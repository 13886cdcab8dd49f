"""The critical path: the causal chain that determined when the last event could happen, followed back from the end.

By `events` it is a longest chain. By `time` it leads from the last event back to whichever of its two immediate causes happened
later: the process's previous event, or the send of the message it delivers. Both need the whole trace at once, so one task
finds it.
"""

from __future__ import annotations

import msgspec
import numpy as np

from quire.model.errors import BadInput
from quire.pipeline.causality import kernel
from quire.pipeline.causality.segments import Piece
from quire.pipeline.compiled import compiled
from quire.pipeline.merge import merge_by_lamport, rebuild
from quire.pipeline.numbering import number_sends
from quire.pipeline.slices import Events, read_events
from quire.trace.kinds import DELIVER, SEND

BY = ("events", "time")


def check_by(by: str | None) -> None:
    """Refuse an unknown measure for the path."""
    if by is not None and by not in BY:
        raise BadInput(f"a critical path goes by {' or '.join(BY)}, not by {by!r}")


class PathTask(msgspec.Struct, tag="path"):
    piece: Piece
    by: str


class Stretch(msgspec.Struct, frozen=True):
    """Consecutive events of one process on the path, and the message by which the path reached it (None for the first)."""

    process: int
    first_pos: int
    last_pos: int
    message: tuple[int, int] | None
    waited_ns: int | None
    """How long the message was in transit; None if times are not recorded."""
    lasted_ns: int | None


class Path(msgspec.Struct):
    """A critical path. `length` is the number of its events."""

    stretches: list[Stretch]
    length: int


def critical_path(task: PathTask) -> Path:
    piece = task.piece
    events = read_events(piece.world, piece.groups, dests=False, every=True, clock=True, numbered=True)
    if task.by == "time" and not is_timed(events):
        raise BadInput("the trace does not record when its events happened; ask for the path by events")
    new, *_ = number_sends(events.start, events.kind, events.origin, events.seq, np.zeros(piece.world.members, np.int64))
    if piece.rebuild:
        turn, *_ = rebuild(events.start, events.kind, events.origin, events.seq, new)
    else:
        turn = merge_by_lamport(events.start, events.lamport)
    return find_path(events, turn, new, task.by)


def is_timed(events: Events) -> bool:
    """Whether any event records its wall-clock time."""
    return bool((events.time_ns != 0).any())


def find_path(events: Events, turn: np.ndarray, new: np.ndarray, by: str) -> Path:
    """The critical path of these events. `turn`: whose event is next, in an order that puts causes first; `new`: how many
    messages each process sends."""
    timed = is_timed(events)
    sending = sendings(events.start, events.kind, events.origin, events.seq, new)
    if by == "time":
        weight = events.time_ns.copy()
        weigh_implied(events.start, events.implied, events.origin, events.seq, new, sending, weight)
    else:
        weight = kernel.logical_times(turn, events.start, events.kind, events.origin, events.seq, new, events.implied)
    steps = walk_back(events.start, events.kind, events.origin, events.seq, new, sending, weight)[::-1]
    process = np.searchsorted(events.start, steps, side="right") - 1
    begins = np.flatnonzero(np.concatenate(([True], process[1:] != process[:-1])))
    ends = np.append(begins[1:], len(steps)) - 1
    stretches = []
    for number, (begin, end) in enumerate(zip(begins.tolist(), ends.tolist(), strict=True)):
        first, last = int(steps[begin]), int(steps[end])
        waited = int(events.time_ns[first] - events.time_ns[steps[begin - 1]]) if timed and number else None
        stretches.append(
            Stretch(
                int(process[begin]), int(events.pos[first]), int(events.pos[last]),
                (int(events.origin[first]), int(events.seq[first])) if number else None,
                waited, int(events.time_ns[last] - events.time_ns[first]) if timed else None,
            )
        )  # fmt: skip
    return Path(stretches, int((~events.implied[steps]).sum()))


@compiled
def weigh_implied(
    start: np.ndarray, implied: np.ndarray, origin: np.ndarray, seq: np.ndarray, new: np.ndarray, sending: np.ndarray,
    weight: np.ndarray,
) -> None:  # fmt: skip
    """Give every implied delivery the later of two times: that of its message's send, and that of its process's previous row.

    It has no time of its own, and with the time of its event it would hide the event's other causes.
    """
    members = len(start) - 1
    first_row = np.zeros(members + 1, np.int64)
    for process in range(members):
        first_row[process + 1] = first_row[process] + new[process]
    for process in range(members):
        for index in range(start[process], start[process + 1]):
            if not implied[index]:
                continue
            source, number = origin[index], seq[index]
            if 0 <= source < members and 0 <= number < new[source]:
                weight[index] = weight[sending[first_row[source] + number]]
            if index > start[process]:
                weight[index] = max(weight[index], weight[index - 1])


@compiled
def sendings(start: np.ndarray, kind: np.ndarray, origin: np.ndarray, seq: np.ndarray, new: np.ndarray) -> np.ndarray:
    """The event at which each message is sent, sorted by process and message number."""
    members = len(start) - 1
    sending = np.empty(new.sum(), np.int64)
    row = 0
    for process in range(members):
        number = 0
        for index in range(start[process], start[process + 1]):
            if kind[index] == SEND and origin[index] == process and seq[index] == number:
                sending[row] = index
                row += 1
                number += 1
    return sending


@compiled
def walk_back(
    start: np.ndarray, kind: np.ndarray, origin: np.ndarray, seq: np.ndarray, new: np.ndarray, sending: np.ndarray,
    weight: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """The events of the path, last first: the event with the greatest weight, then its immediate cause with the greater weight,
    and so on.

    On a tie, the last event is that of the process with the lower number, and the cause is the process's own previous event.
    """
    members = len(start) - 1
    first_row = np.zeros(members + 1, np.int64)
    for process in range(members):
        first_row[process + 1] = first_row[process] + new[process]
    at, here = -1, 0
    for process in range(members):
        # The path ends with the last event of some process.
        last = start[process + 1] - 1
        if last >= start[process] and (at < 0 or weight[last] > weight[at]):
            at, here = last, process
    steps = np.empty(len(kind), np.int64)
    count = 0
    while at >= 0:
        steps[count] = at
        count += 1
        before = at - 1 if at > start[here] else -1
        source, number = origin[at], seq[at]
        if kind[at] == DELIVER and 0 <= source < members and 0 <= number < new[source]:
            sent = sending[first_row[source] + number]
            if source != here and (before < 0 or weight[sent] > weight[before]):
                before, here = sent, source
        at = before
    return steps[:count]
