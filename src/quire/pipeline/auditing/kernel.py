"""The order checks as one loop over a segment's events.

Every message has a row: its *vector* (for each process, how many of its messages happened before this one was sent)
and its *status* at every process. Rows of one origin lie together in the order of sending, those that were in flight
when the segment began first. A delivery of a message at p is in order when no row below the vector is still owed to
p; a pointer per (p, origin) to the first row that may be owed makes this constant time, because it only moves forward.

A message that was sent before the segment and is not among its rows is *foreign*: it tells p that it knows that much
of the origin, and is handed to whoever knows what came before.
"""

from __future__ import annotations

import numpy as np

from quire.pipeline.compiled import compiled
from quire.pipeline.numbering import NUMBER_END
from quire.trace.schema import SEND

NOT_ADDRESSED, OWED, DELIVERED, UNRECORDED = range(4)
"""Status of a message at a process. UNRECORDED: its destinations are not known, so nothing is owed."""

MISATTRIBUTED, SENT_AGAIN, REPEATED, MISADDRESSED, PHANTOM = range(5)
"""Breaches of integrity."""

BLOCK_SHIFT = 14
"""Verdicts are counted per block of 2**14 events, so that the beginning of a segment can be judged again alone."""


@compiled
def register(
    start: np.ndarray, kind: np.ndarray, origin: np.ndarray, seq: np.ndarray,
    dest_count: np.ndarray, dests: np.ndarray, base: np.ndarray, first_row: np.ndarray, old: np.ndarray,
    row_seq: np.ndarray, status: np.ndarray,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Fill in the rows of new messages. Returns a message to a process that does not exist, and those without destinations."""
    members = len(start) - 1
    send, at, unrecorded = 0, 0, 0
    for process in range(members):
        expected = base[process]
        row = first_row[process] + old[process]
        for event in range(start[process], start[process + 1]):
            if kind[event] != SEND:
                continue
            count = dest_count[send]
            send += 1
            if origin[event] == process and seq[event] == expected:
                row_seq[row] = expected
                if count < 0:
                    unrecorded += 1
                    status[row, :] = UNRECORDED
                for index in range(at, at + max(count, 0)):
                    destination = dests[index]
                    if destination < 0 or destination >= members:
                        return process, expected, destination, unrecorded
                    status[row, destination] = OWED
                row += 1
                expected += 1
            at += max(count, 0)
    return -1, 0, 0, unrecorded


@compiled
def judge(
    turn: np.ndarray, stop: int, start: np.ndarray, kind: np.ndarray, origin: np.ndarray, seq: np.ndarray, lamport: np.ndarray,
    base: np.ndarray, new: np.ndarray, first_row: np.ndarray, old: np.ndarray, row_seq: np.ndarray,
    status: np.ndarray, vector: np.ndarray, known: np.ndarray, sent_at: np.ndarray, fifo_only: bool,
    breaches: np.ndarray, first_breach: np.ndarray, late: np.ndarray, first_late: np.ndarray,
    block_shift: int, block_end: np.ndarray, foreign: np.ndarray,
) -> tuple[int, bool]:  # fmt: skip
    """Judge the first `stop` events. Returns how many foreign deliveries there were, and whether `turn` is a true order.

    Written to: `breaches` (integrity, by kind), `first_breach` (event, process, origin, seq, kind), per block `late`
    (deliveries out of FIFO, out of causal order) and `first_late` (event, process, origin, seq, and the missing message's
    origin and seq, twice) and `block_end` (its last logical time), `foreign` (event, process, origin, seq) as far as it has
    room, the rows, and `known`.
    """
    members = len(start) - 1
    cursor = start[:members].copy()
    sent = np.zeros(members, np.int64)
    owed_row = np.empty((members, members), np.int64)
    owed_seq = np.empty((members, members), np.int32)
    for process in range(members):
        for source in range(members):
            owed_row[process, source] = first_row[source]
            owed_seq[process, source] = 0
    foreign_count = 0
    for event in range(stop):
        process = turn[event]
        index = cursor[process]
        cursor[process] += 1
        source = origin[index]
        number = seq[index]
        block_end[event >> block_shift] = lamport[index]
        breach = -1
        if kind[index] == SEND:
            if source != process:
                breach = MISATTRIBUTED
            elif number < base[process] + sent[process]:
                breach = SENT_AGAIN
            else:
                row = first_row[process] + old[process] + sent[process]
                for other in range(members):
                    vector[row, other] = known[process, other]
                vector[row, process] = number
                known[process, process] = number + 1
                sent[process] += 1
                sent_at[row] = event
        else:
            row = -1
            conveys = True
            if 0 <= source < members:
                ahead = number - base[source]
                if ahead >= 0:
                    if ahead < new[source]:
                        row = first_row[source] + old[source] + ahead
                        if ahead >= sent[source]:
                            conveys = False
                            if not fifo_only:
                                return foreign_count, False
                else:
                    low, high = first_row[source], first_row[source] + old[source]
                    while low < high:
                        middle = (low + high) >> 1
                        if row_seq[middle] < number:
                            low = middle + 1
                        else:
                            high = middle
                    if low < first_row[source] + old[source] and row_seq[low] == number:
                        row = low
            if row < 0:
                if foreign_count < len(foreign):
                    foreign[foreign_count, 0] = event
                    foreign[foreign_count, 1] = process
                    foreign[foreign_count, 2] = source
                    foreign[foreign_count, 3] = number
                foreign_count += 1
                if 0 <= source < members and 0 <= number < base[source] and number + 1 > known[process, source]:
                    known[process, source] = number + 1
                continue
            was = status[row, process]
            if was == DELIVERED:
                breach = REPEATED
            elif was == NOT_ADDRESSED:
                breach = MISADDRESSED
            else:
                status[row, process] = DELIVERED
                behind = False
                if fifo_only:
                    behind = owed_seq[process, source] < number
                else:
                    for other in range(members):
                        behind |= owed_seq[process, other] < vector[row, other]
                if behind:
                    missing, own = -1, False
                    for turn_of in range(members):
                        # The sender's own messages first: the simplest story, and the one that is FIFO's too.
                        other = source if turn_of == 0 else (turn_of - 1 if turn_of <= source else turn_of)
                        bound = number if other == source else vector[row, other]
                        if owed_seq[process, other] < bound:
                            at, end = owed_row[process, other], first_row[other + 1]
                            while at < end and status[at, process] != OWED:
                                at += 1
                            owed_row[process, other] = at
                            owed_seq[process, other] = row_seq[at] if at < end else NUMBER_END
                            if owed_seq[process, other] < bound and missing < 0:
                                missing, own = other, other == source
                        if fifo_only:
                            break
                    if missing >= 0:
                        block = event >> block_shift
                        for order in range(2):
                            if order == 1 or own:
                                if late[block, order] == 0:
                                    first_late[block, order, 0] = event
                                    first_late[block, order, 1] = process
                                    first_late[block, order, 2] = source
                                    first_late[block, order, 3] = number
                                    first_late[block, order, 4] = missing
                                    first_late[block, order, 5] = owed_seq[process, missing]
                                late[block, order] += 1
                if owed_row[process, source] == row:
                    # Move on at once: the next delivery then needs one comparison an origin and nothing else.
                    at, end = row + 1, first_row[source + 1]
                    while at < end and status[at, process] != OWED:
                        at += 1
                    owed_row[process, source] = at
                    owed_seq[process, source] = row_seq[at] if at < end else NUMBER_END
            if conveys and not fifo_only:
                for other in range(members):
                    if vector[row, other] > known[process, other]:
                        known[process, other] = vector[row, other]
                if number + 1 > known[process, source]:
                    known[process, source] = number + 1
        if breach >= 0:
            if breaches.sum() == 0:
                first_breach[0] = event
                first_breach[1] = process
                first_breach[2] = source
                first_breach[3] = number
                first_breach[4] = breach
            breaches[breach] += 1
    return foreign_count, True


@compiled
def settle(
    first_row: np.ndarray,
    status: np.ndarray,
    sent_at: np.ndarray,
    correct: np.ndarray,
    later: np.ndarray,
    in_flight: np.ndarray,
) -> tuple[int, int, int, int]:
    """Count what agreement lacks for certain, and mark the rows that members may still deliver after the segment.

    Returns the count and its first instance as (row, process), then how many rows are in flight.
    """
    members = len(first_row) - 1
    lost, lost_row, lost_process, flying = 0, -1, -1, 0
    for origin in range(members):
        for row in range(first_row[origin], first_row[origin + 1]):
            owed, live, reached = 0, False, correct[origin]
            first_owed = -1
            for process in range(members):
                if status[row, process] == OWED:
                    if later[process]:
                        live = True
                    elif correct[process]:
                        if owed == 0:
                            first_owed = process
                        owed += 1
                elif status[row, process] == DELIVERED:
                    reached = reached or correct[process]
            if live:
                in_flight[row] = True
                flying += 1
            elif reached and owed > 0:
                lost += owed
                if lost_row < 0 or sent_at[row] < sent_at[lost_row]:
                    lost_row, lost_process = row, first_owed
    return lost, lost_row, lost_process, flying
