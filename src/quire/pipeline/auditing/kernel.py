"""The integrity, FIFO and causal checks as one compiled loop over a segment's events.

Every message has a row: its *vector* (for each process, how many of its messages happened before this one was sent) and its
*status* at every process. The rows of one origin are contiguous, in the order of sending, beginning with those that were in
flight when the segment began. A delivery at process p is in order if no message below its vector is still owed to p. A pointer
per (p, origin) to the first row that may be owed makes this check constant time, because it only moves forward.

If members agree on numbered views, a message counts as missing only in the view in which it was sent: a process in a later view
will never deliver it, and whether it may lack it is a matter of agreement, not of order.

A delivered message that was sent before the segment and has no row is *foreign*. It shows that p knows the origin's messages up
to that one; judging the delivery is left to the code that joins the segments.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from quire.pipeline.compiled import compiled, first_not_below, piece
from quire.pipeline.numbering import NUMBER_END
from quire.trace.kinds import SEND

NOT_ADDRESSED, OWED, DELIVERED = range(3)
"""The status of a message at a process."""

MISATTRIBUTED, SENT_AGAIN, REPEATED, MISADDRESSED, PHANTOM = range(5)
"""The kinds of breaches of integrity."""
SOUND = -1
"""No breach."""

FIFO, CAUSAL = range(2)
"""The orders that are judged: the column indices of `Found.late` and `Found.first_late`."""

BLOCK_SHIFT = 14
"""Violations of order are counted per block of 2**14 events, so that only the first blocks of a segment are judged again."""


class Logs(NamedTuple):
    """The segment's events. Those of process p are at `start[p]` to `start[p + 1]`, in local order."""

    start: np.ndarray
    kind: np.ndarray
    origin: np.ndarray
    seq: np.ndarray
    lamport: np.ndarray
    in_view: np.ndarray
    """For each event, the view of its process, as a rank; -1 before its first view. Empty if there are no views."""


class Messages(NamedTuple):
    """The rows of messages. Those of origin o are at `first_row[o]` to `first_row[o + 1]`: first `old[o]` messages that were in
    flight when the segment began, then `new[o]` messages that are sent in it, numbered from `base[o]` on."""

    first_row: np.ndarray
    old: np.ndarray
    new: np.ndarray
    base: np.ndarray
    seq: np.ndarray
    status: np.ndarray
    vector: np.ndarray
    sent_at: np.ndarray
    """The index of the event at which it was sent; -1 for an old message."""
    in_view: np.ndarray
    """The view in which it was sent; empty if there are no views."""


class State(NamedTuple):
    """The state of every process at one point of the loop."""

    sent: np.ndarray
    """How many of its new messages it has sent."""
    known: np.ndarray
    """[p, o]: how many messages of o happened before p's next event: p's vector clock."""
    owed_row: np.ndarray
    """[p, o]: a row of o before which nothing is owed to p."""
    owed_seq: np.ndarray
    """[p, o]: the number of the message in that row; NUMBER_END if there is no such row."""
    in_view: np.ndarray
    """The view of each process; -1 before its first view, and if there are no views."""


class Found(NamedTuple):
    """The violations found. First instances are rows of (event, process, origin, seq, ...)."""

    breaches: np.ndarray
    """How many breaches of integrity there are of each kind."""
    first_breach: np.ndarray
    """The first breach; its last column is the kind."""
    late: np.ndarray
    """[block, order]: how many deliveries are out of order."""
    first_late: np.ndarray
    """[block, order]: the first such delivery; the last two columns are the origin and number of the missing message."""
    foreign: np.ndarray
    """The foreign deliveries, as many as fit."""
    block_end: np.ndarray
    """The logical time of the last event of each block."""


def new_state(members: int, first_row: np.ndarray, known: np.ndarray) -> State:
    """The state at the beginning of a segment, with the vector clocks `known`."""
    owed_row = np.tile(first_row[:members], (members, 1))
    owed_seq = np.zeros((members, members), np.int32)
    return State(np.zeros(members, np.int64), known, owed_row, owed_seq, np.full(members, -1, np.int32))


def nothing_found(blocks: int, foreign: int) -> Found:
    """An empty `Found` for this many blocks, with room for this many foreign deliveries."""
    return Found(
        np.zeros(5, np.int64), np.zeros(5, np.int64), np.zeros((blocks, 2), np.int64), np.zeros((blocks, 2, 6), np.int64),
        np.zeros((foreign, 4), np.int64), np.zeros(blocks, np.int64),
    )  # fmt: skip


class Misdirected(NamedTuple):
    """A message addressed to a process that does not exist (-1 if there is none), and how many messages record no
    destinations."""

    process: int
    seq: int
    destination: int
    unrecorded: int


@compiled
def register(logs: Logs, dest_count: np.ndarray, dests: np.ndarray, messages: Messages) -> Misdirected:
    """Fill in the rows of the messages that are sent in the segment."""
    start, kinds, origins, numbers, _, views = logs
    status, members = messages.status, len(start) - 1
    send, at, unrecorded = 0, 0, 0
    for process in range(members):
        expected = messages.base[process]
        row = messages.first_row[process] + messages.old[process]
        for event in range(start[process], start[process + 1]):
            if kinds[event] != SEND:
                continue
            count = dest_count[send]
            send += 1
            if origins[event] == process and numbers[event] == expected:
                messages.seq[row] = expected
                if len(views):
                    messages.in_view[row] = views[event]
                if count < 0:
                    unrecorded += 1
                for index in range(at, at + max(count, 0)):
                    destination = dests[index]
                    if destination < 0 or destination >= members:
                        return Misdirected(process, expected, int(np.int64(destination)), unrecorded)
                    status[row, destination] = OWED
                row += 1
                expected += 1
            at += max(count, 0)
    return Misdirected(-1, 0, 0, unrecorded)


@compiled
def judge(
    turn: np.ndarray, stop: int, logs: Logs, messages: Messages, state: State, found: Found, block_shift: int, fifo_only: bool
) -> tuple[int, bool]:
    """Judge the first `stop` events, in the order `turn` (which process acts next). Returns the number of foreign deliveries,
    and whether `turn` is consistent with happened-before.

    If it is not, the events after the contradiction are not judged. With `fifo_only` it need not be consistent.
    """
    start, kinds, origins, numbers, times, views = logs
    cursor = start[:-1].copy()
    foreign = 0
    for event in range(stop):
        process = turn[event]
        index = cursor[process]
        cursor[process] += 1
        origin, number = origins[index], numbers[index]
        block = event >> block_shift
        found.block_end[block] = times[index]
        if len(views):
            state.in_view[process] = views[index]
        if kinds[index] == SEND:
            breach = _send(messages, state, event, process, origin, number)
        else:
            row = _row_of(messages, origin, number)
            if row < 0:
                _note_foreign(found.foreign, foreign, event, process, origin, number)
                foreign += 1
                _learn_of_foreign(messages, state, process, origin, number)
                continue
            sent = number - messages.base[origin] < state.sent[origin]
            if not sent and not fifo_only:
                return foreign, False
            breach = _deliver(messages, row, process)
            if breach == SOUND:
                if _may_lack(messages, state, row, process, origin, number, fifo_only):
                    missing = _first_missing(messages, state, row, process, origin, number, fifo_only)
                    if missing >= 0:
                        missing_seq = state.owed_seq[process, missing]
                        _note_late(found, block, event, process, origin, number, missing, missing_seq)
                if state.owed_row[process, origin] == row:
                    # Advance at once, so that the next delivery needs only one comparison per origin.
                    _move_on(messages, state, process, origin, row + 1)
            if sent and not fifo_only:
                _learn(messages, state, row, process, origin, number)
        if breach != SOUND:
            _note_breach(found, event, process, origin, number, breach)
    return foreign, True


@piece
def _send(messages: Messages, state: State, event: int, process: int, origin: int, number: int) -> int:
    """Handle a send: the message's vector is its sender's vector clock."""
    if origin != process:
        return MISATTRIBUTED
    if number < messages.base[process] + state.sent[process]:
        return SENT_AGAIN
    row = messages.first_row[process] + messages.old[process] + state.sent[process]
    for other in range(state.known.shape[1]):
        messages.vector[row, other] = state.known[process, other]
    messages.vector[row, process] = number
    messages.sent_at[row] = event
    state.known[process, process] = number + 1
    state.sent[process] += 1
    return SOUND


@piece
def _row_of(messages: Messages, origin: int, number: int) -> int:
    """The row of a message; -1 for a foreign one."""
    if origin < 0 or origin >= len(messages.base):
        return -1
    ahead = number - messages.base[origin]
    first = messages.first_row[origin]
    end = first + messages.old[origin]
    if ahead >= 0:
        return end + ahead if ahead < messages.new[origin] else -1
    row = first_not_below(messages.seq, first, end, number)
    return row if row < end and messages.seq[row] == number else -1


@piece
def _deliver(messages: Messages, row: int, process: int) -> int:
    """Handle a delivery with regard to integrity: mark it, and return the kind of breach or SOUND."""
    was = messages.status[row, process]
    if was == DELIVERED:
        return REPEATED
    if was == NOT_ADDRESSED:
        return MISADDRESSED
    messages.status[row, process] = DELIVERED
    return SOUND


@piece
def _may_lack(messages: Messages, state: State, row: int, process: int, origin: int, number: int, fifo_only: bool) -> bool:
    """Whether some pointer is behind the message's vector, so that an earlier message may be missing."""
    behind = False
    if fifo_only:
        behind = state.owed_seq[process, origin] < number
    else:
        for other in range(state.known.shape[1]):
            behind |= state.owed_seq[process, other] < messages.vector[row, other]
    return behind


@piece
def _first_missing(messages: Messages, state: State, row: int, process: int, origin: int, number: int, fifo_only: bool) -> int:
    """The first origin of which the process lacks a message that happened before this one; -1 if it lacks none.

    The sender itself is tried first: it gives the simplest counterexample, which also violates FIFO order.
    """
    missing = -1
    for step in range(1 if fifo_only else len(messages.base)):
        other = origin if step == 0 else (step - 1 if step <= origin else step)
        bound = number if other == origin else messages.vector[row, other]
        if state.owed_seq[process, other] < bound:
            _move_on(messages, state, process, other, state.owed_row[process, other])
            if state.owed_seq[process, other] < bound and missing < 0 and _is_current(messages, state, process, other):
                missing = other
    return missing


@piece
def _is_past(messages: Messages, state: State, row: int, process: int) -> bool:
    """Whether the process is in a later view than that of this message. View numbers only grow, so this stays true."""
    return len(messages.in_view) > 0 and messages.in_view[row] < state.in_view[process]


@piece
def _is_current(messages: Messages, state: State, process: int, origin: int) -> bool:
    """Whether the next message of the origin owed to the process belongs to the process's current view."""
    return len(messages.in_view) == 0 or messages.in_view[state.owed_row[process, origin]] == state.in_view[process]


@piece
def _move_on(messages: Messages, state: State, process: int, origin: int, row: int) -> None:
    """Advance the pointer to the first row, from this one on, that is owed to the process and not of an earlier view."""
    end = messages.first_row[origin + 1]
    while row < end and (messages.status[row, process] != OWED or _is_past(messages, state, row, process)):
        row += 1
    state.owed_row[process, origin] = row
    state.owed_seq[process, origin] = messages.seq[row] if row < end else NUMBER_END


@piece
def _learn(messages: Messages, state: State, row: int, process: int, origin: int, number: int) -> None:
    """Merge the message's vector into the vector clock of the process that delivers it."""
    for other in range(state.known.shape[1]):
        if messages.vector[row, other] > state.known[process, other]:
            state.known[process, other] = messages.vector[row, other]
    if number + 1 > state.known[process, origin]:
        state.known[process, origin] = number + 1


@piece
def _learn_of_foreign(messages: Messages, state: State, process: int, origin: int, number: int) -> None:
    """Take note of a message sent before the segment: all that is known about it is that it was sent."""
    if 0 <= origin < len(messages.base) and 0 <= number < messages.base[origin]:
        state.known[process, origin] = max(state.known[process, origin], number + 1)


@piece
def _note_foreign(foreign: np.ndarray, count: int, event: int, process: int, origin: int, number: int) -> None:
    if count < len(foreign):
        foreign[count, 0], foreign[count, 1], foreign[count, 2], foreign[count, 3] = event, process, origin, number


@piece
def _note_late(
    found: Found, block: int, event: int, process: int, origin: int, number: int, missing: int, missing_seq: int
) -> None:
    for order in (FIFO, CAUSAL):
        if order == CAUSAL or missing == origin:
            if found.late[block, order] == 0:
                first = found.first_late[block, order]
                first[0], first[1], first[2], first[3], first[4], first[5] = (
                    event,
                    process,
                    origin,
                    number,
                    missing,
                    missing_seq,
                )
            found.late[block, order] += 1


@piece
def _note_breach(found: Found, event: int, process: int, origin: int, number: int, breach: int) -> None:
    if found.breaches.sum() == 0:
        first = found.first_breach
        first[0], first[1], first[2], first[3], first[4] = event, process, origin, number, breach
    found.breaches[breach] += 1
