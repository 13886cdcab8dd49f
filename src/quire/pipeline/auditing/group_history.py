"""Reconstructs who was a member of which group when, and the number of each delivery in its group's log.

A group's messages, joins and leaves are numbered in one sequence: the group's log. A *membership* lasts from a member's join
to its leave, and during it the member delivers all of the log. So the numbers need not be recorded: they follow from counting
a member's events of the group from its own join. A view does record its number, which shows whether anything is missing before
it. Every member records a number that was left blank, in the same way as a view.
"""

from __future__ import annotations

import msgspec
import numpy as np

from quire.pipeline.compiled import compiled
from quire.pipeline.labels import Labelled
from quire.trace.kinds import DELIVER, SEND, VIEW

FOUND, JOIN, LEAVE, BLANK = range(4)
OPS = ("found", "join", "leave", "blank")

OUTSIDE, SKIPPED, AGAIN = range(1, 4)
"""What is wrong with an event of a group: it is outside the member's memberships; it is a view whose number is not the next;
it is a second join within one membership."""

COLUMNS = ("group", "op")

PROCESS, GROUP, FIRST, LAST, FIRST_EVENT, LAST_EVENT = range(6)
"""The columns of `GroupHistory.memberships`."""


class GroupHistory(msgspec.Struct):
    """The place of every event in its group's log. All arrays but the last two have one entry per event."""

    group: np.ndarray
    """The event's group, if it is a first delivery or a change of membership; else -1."""
    number: np.ndarray
    """The event's number in its group's log; -1 if it has none."""
    membership: np.ndarray
    """The membership it belongs to; -1 if none."""
    change: np.ndarray
    """FOUND, JOIN, LEAVE or BLANK; -1 for other events."""
    wrong: np.ndarray
    """OUTSIDE, SKIPPED or AGAIN if something is wrong with it, else 0."""
    first: np.ndarray
    """Whether it is the first delivery of its message at one of the followed members."""
    memberships: np.ndarray
    """One row per membership: process, group, first number, last number (OPEN if it does not end), first and last event."""
    dynamic: np.ndarray
    """For each group, whether its membership ever changes."""


OPEN = np.iinfo(np.int64).max // 4
"""The last number of a membership that does not end."""


def find_history(rows: Labelled, ids: np.ndarray, size: int, followed: np.ndarray) -> GroupHistory:
    """Follow the members in the mask `followed` through their groups. `ids` holds the number of each event's message, below
    `size`."""
    group = rows.codes["group"].copy()
    process = rows.processes()
    counts = followed[process]
    group_of = np.full(size, -1, np.int32)
    sends = (rows.kind == SEND) & (group >= 0) & (rows.origin == process)
    group_of[ids[sends][::-1]] = group[sends][::-1]
    delivered = (rows.kind == DELIVER) & counts
    by_sender = group_of[ids[delivered]]
    group[delivered] = np.where(by_sender >= 0, by_sender, group[delivered])
    change = np.full(len(group), -1, np.int8)
    op = rows.codes["op"]
    for code, word in enumerate(rows.words["op"]):
        if word in OPS:
            change[(rows.kind == VIEW) & (op == code) & (group >= 0) & counts] = OPS.index(word)
    dynamic = np.zeros(len(rows.words["group"]), np.bool_)
    dynamic[group[change >= 0]] = True
    first = first_deliveries_of(rows.start, delivered, ids, size)
    number, membership = np.full(len(group), -1, np.int64), np.full(len(group), -1, np.int32)
    wrong = np.zeros(len(group), np.int8)
    group[~first & (change < 0)] = -1
    memberships = follow(rows.start, rows.origin, rows.seq, group, change, dynamic, number, membership, wrong)
    return GroupHistory(group, number, membership, change, wrong, first, memberships, dynamic)


@compiled
def first_deliveries_of(start: np.ndarray, delivered: np.ndarray, ids: np.ndarray, size: int) -> np.ndarray:
    """Which events are the first delivery of a message at a process."""
    last = np.full(size, -1, np.int64)
    first = np.zeros(len(delivered), np.bool_)
    for process in range(len(start) - 1):
        for index in range(start[process], start[process + 1]):
            if delivered[index] and last[ids[index]] != process:
                last[ids[index]] = process
                first[index] = True
    return first


@compiled
def follow(
    start: np.ndarray, origin: np.ndarray, seq: np.ndarray, group: np.ndarray, change: np.ndarray, dynamic: np.ndarray,
    number: np.ndarray, membership: np.ndarray, wrong: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Fill in `number`, `membership` and `wrong`, and return the memberships."""
    begun = 0
    for index in range(len(group)):
        if change[index] == JOIN or change[index] == FOUND:
            begun += 1
    memberships = np.empty((begun, 6), np.int64)
    count = 0
    inside = np.empty(len(dynamic), np.int64)
    following = np.empty(len(dynamic), np.int64)
    for process in range(len(start) - 1):
        inside[:] = -1
        for index in range(start[process], start[process + 1]):
            of = np.int64(group[index])
            if of < 0 or not dynamic[of]:
                continue
            what = change[index]
            own = what >= 0 and what != BLANK and origin[index] == process
            if inside[of] < 0 and own and what != LEAVE:
                inside[of] = count
                memberships[count] = (process, of, seq[index], OPEN, index, index)
                following[of] = seq[index]
                count += 1
            elif own and what != LEAVE:
                wrong[index] = AGAIN
            if inside[of] < 0:
                wrong[index] = OUTSIDE
                continue
            if what >= 0:
                if seq[index] != following[of] and wrong[index] == 0:
                    wrong[index] = SKIPPED
                following[of] = seq[index]
            number[index] = following[of]
            membership[index] = inside[of]
            memberships[inside[of], LAST_EVENT] = index
            following[of] += 1
            if own and what == LEAVE:
                memberships[inside[of], LAST] = seq[index]
                inside[of] = -1
    return memberships[:count]
