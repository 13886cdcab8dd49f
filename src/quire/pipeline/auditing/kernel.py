"""The order checks as one loop over a segment's events.

Every message has a row: its *vector* (for each process, how many of its messages happened before this one was sent)
and its *status* at every process. Rows of one origin lie together in the order of sending, those that were in flight
when the segment began first. A delivery of a message at p is in order when no row below the vector is still owed to
p; a pointer per (p, origin) to the first row that may be owed makes this constant time, because it only moves forward.

Where members agree on numbered views, a message is missing only in the view in which it was sent: who has gone on to a later
one will never deliver it, and whether it may lack it is a question of agreement.

A message that was sent before the segment and is not among its rows is *foreign*: it shows that p knows that much of
the origin, and is handed to whoever knows what came before.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from quire.pipeline.compiled import compiled, first_not_below, piece
from quire.pipeline.numbering import NUMBER_END
from quire.trace.kinds import SEND

NOT_ADDRESSED, OWED, DELIVERED = range(3)
"""Status of a message at a process."""

MISATTRIBUTED, SENT_AGAIN, REPEATED, MISADDRESSED, PHANTOM = range(5)
"""Breaches of integrity."""
SOUND = -1
"""An event that is none."""

FIFO, CAUSAL = range(2)
"""The orders that are judged, as columns of what is found."""

BLOCK_SHIFT = 14
"""Verdicts are counted per block of 2**14 events, so that the beginning of a segment can be judged again alone."""


class Logs(NamedTuple):
    """The segment's events. Those of process p are at `start[p]` to `start[p + 1]`, in local order."""

    start: np.ndarray
    kind: np.ndarray
    origin: np.ndarray
    seq: np.ndarray
    lamport: np.ndarray
    in_view: np.ndarray
    """For each event the view of its process, numbered in order; -1 before its first. Empty where there are no views."""


class Messages(NamedTuple):
    """The rows of messages. Those of origin o are at `first_row[o]` to `first_row[o + 1]`: the `old` ones, which were in
    flight when the segment began, then the `new` ones, which are sent in it with the numbers from `base` on."""

    first_row: np.ndarray
    old: np.ndarray
    new: np.ndarray
    base: np.ndarray
    seq: np.ndarray
    status: np.ndarray
    vector: np.ndarray
    sent_at: np.ndarray
    """The event at which it was sent; -1 for an old one."""
    in_view: np.ndarray
    """The view in which it was sent; empty where there are no views."""


class State(NamedTuple):
    """How far each process has come."""

    sent: np.ndarray
    """How many of its new messages it has sent."""
    known: np.ndarray
    """[p, o]: how many messages of o happened before what p does next."""
    owed_row: np.ndarray
    """[p, o]: a row of o such that nothing before it is owed to p."""
    owed_seq: np.ndarray
    """[p, o]: the number of the message in that row; NUMBER_END where there is no such row."""
    in_view: np.ndarray
    """The view of each process; -1 before its first, and where there are no views."""


class Found(NamedTuple):
    """What is wrong. First instances are rows of (event, process, origin, seq) and more."""

    breaches: np.ndarray
    """How many of each kind."""
    first_breach: np.ndarray
    """The last column is the kind."""
    late: np.ndarray
    """[block, order]: how many deliveries are out of order."""
    first_late: np.ndarray
    """[block, order]: the last two columns are the origin and the number of the message that was missing."""
    foreign: np.ndarray
    """Foreign deliveries, as far as there is room."""
    block_end: np.ndarray
    """The logical time of the last event of each block."""


def new_state(members: int, first_row: np.ndarray, known: np.ndarray) -> State:
    """The state of a segment's beginning, in which `known` is known."""
    owed_row = np.tile(first_row[:members], (members, 1))
    owed_seq = np.zeros((members, members), np.int32)
    return State(np.zeros(members, np.int64), known, owed_row, owed_seq, np.full(members, -1, np.int32))


def nothing_found(blocks: int, foreign: int) -> Found:
    """Room for what is found in so many blocks, and for so many foreign deliveries."""
    return Found(
        np.zeros(5, np.int64), np.zeros(5, np.int64), np.zeros((blocks, 2), np.int64), np.zeros((blocks, 2, 6), np.int64),
        np.zeros((foreign, 4), np.int64), np.zeros(blocks, np.int64),
    )  # fmt: skip


class Misdirected(NamedTuple):
    """A message to a process that does not exist; -1 where there is none. And how many messages have no destinations."""

    process: int
    seq: int
    destination: int
    unrecorded: int


@compiled
def register(logs: Logs, dest_count: np.ndarray, dests: np.ndarray, messages: Messages) -> Misdirected:
    """Fill in the rows of new messages."""
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
    """Judge the first `stop` events. Returns how many foreign deliveries there were, and whether `turn` is a true order.

    Where it is not, events after the contradiction are not judged; with `fifo_only` it need not be one.
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
                    # Move on at once: the next delivery then needs one comparison an origin and nothing else.
                    _move_on(messages, state, process, origin, row + 1)
            if sent and not fifo_only:
                _learn(messages, state, row, process, origin, number)
        if breach != SOUND:
            _note_breach(found, event, process, origin, number, breach)
    return foreign, True


@piece
def _send(messages: Messages, state: State, event: int, process: int, origin: int, number: int) -> int:
    """A send: the message's vector is what its sender knows."""
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
    """A delivery, as far as it concerns integrity."""
    was = messages.status[row, process]
    if was == DELIVERED:
        return REPEATED
    if was == NOT_ADDRESSED:
        return MISADDRESSED
    messages.status[row, process] = DELIVERED
    return SOUND


@piece
def _may_lack(messages: Messages, state: State, row: int, process: int, origin: int, number: int, fifo_only: bool) -> bool:
    """Whether any pointer is behind what happened before this message, so that something may be missing."""
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

    The sender itself comes first: the simplest counterexample, and the one that is FIFO order's too.
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
    """Whether the process has gone on from the view of this message. Views only grow, so this never changes back."""
    return len(messages.in_view) > 0 and messages.in_view[row] < state.in_view[process]


@piece
def _is_current(messages: Messages, state: State, process: int, origin: int) -> bool:
    """Whether the message that the process is waiting for is of the view in which it is."""
    return len(messages.in_view) == 0 or messages.in_view[state.owed_row[process, origin]] == state.in_view[process]


@piece
def _move_on(messages: Messages, state: State, process: int, origin: int, row: int) -> None:
    """Point to the first message of the origin from this row on that is owed to the process, and not of an earlier view."""
    end = messages.first_row[origin + 1]
    while row < end and (messages.status[row, process] != OWED or _is_past(messages, state, row, process)):
        row += 1
    state.owed_row[process, origin] = row
    state.owed_seq[process, origin] = messages.seq[row] if row < end else NUMBER_END


@piece
def _learn(messages: Messages, state: State, row: int, process: int, origin: int, number: int) -> None:
    """Who delivers a message knows what its sender knew."""
    for other in range(state.known.shape[1]):
        if messages.vector[row, other] > state.known[process, other]:
            state.known[process, other] = messages.vector[row, other]
    if number + 1 > state.known[process, origin]:
        state.known[process, origin] = number + 1


@piece
def _learn_of_foreign(messages: Messages, state: State, process: int, origin: int, number: int) -> None:
    """Of a message sent before the segment it is known only that it was sent."""
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
