"""Is what each member delivers of a group one slice of the group's log, from its join to its leave?

Every member's events have numbers (`group_history`). The slices fit into one log if no two members have different events
under one number, nothing is outside a membership or missing before a view, and who has not left goes on to the log's end.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import numpy as np

from quire.pipeline.auditing.group_history import FIRST_EVENT, FOUND, GROUP, LAST, LAST_EVENT, OPEN, PROCESS, GroupHistory
from quire.pipeline.compiled import compiled
from quire.pipeline.labels import Labelled
from quire.trace.kinds import KINDS

UNFINISHED, DIFFERENT = 4, 5
"""Beside what is wrong with single events: a member that did not leave lacks the end of the log; two members' events
under one number are different."""


class Seen(msgspec.Struct, frozen=True):
    """An event of a group as a member delivered it. Of a message, `what` is empty."""

    member: int
    pos: int
    origin: int
    seq: int
    what: str
    kind: str
    number: int


class GroupLogsResult(msgspec.Struct, kw_only=True):
    changes: int = 0
    """How many changes of membership were recorded."""
    violations: int = 0
    kind: int = 0
    group: str = ""
    expected: int = 0
    """Of a view whose number does not follow: which one would. Of an unfinished slice: the log's last."""
    seen: tuple[Seen, ...] = ()
    """The event that is wrong; or two that are different; or the last of a slice, and the log's last at another member."""
    simplest: tuple[int, str, int, int] = (3, "", 0, 0)
    """By what the simplest is chosen: an event that is wrong, the first; two that differ, in the group of the least name and at
    its least number; a slice without an end, the first that begins."""

    def joined(self, other: GroupLogsResult) -> GroupLogsResult:
        """What was found in other groups, too."""
        changes, violations = self.changes + other.changes, self.violations + other.violations
        simplest = min(self, other, key=lambda each: each.simplest)
        return msgspec.structs.replace(simplest, changes=changes, violations=violations)


class Differences(NamedTuple):
    """How many pairs of members have different events under one number of a group, counted once a group; and the first."""

    pairs: int
    one: int
    other: int


def compare_logs(rows: Labelled, history: GroupHistory, ids: np.ndarray) -> GroupLogsResult:
    """Count what is wrong, and show the simplest of it."""
    result = GroupLogsResult(changes=int((history.change >= 0).sum()))
    if not result.changes:
        return result
    wrong = np.flatnonzero(history.wrong)
    process = rows.processes()
    claims = np.flatnonzero((history.number >= 0) & (history.change != FOUND))
    event = np.where(history.change >= 0, -1 - (rows.origin.astype(np.int64) * 4 + history.change), ids)[claims]
    entry, size = _entries(history.group[claims], history.number[claims])
    members, groups = len(rows.start) - 1, len(history.dynamic)
    different = differences(entry, event, process[claims], size, members, history.group[claims], groups)
    unfinished, ends = _unfinished(history, claims)
    result.violations = len(wrong) + different.pairs + len(unfinished)
    if len(wrong):
        at = int(wrong[0])
        result.kind, chosen = int(history.wrong[at]), [at]
        result.expected = _expected(history, process, at)
        result.simplest = 0, "", int(process[at]), rows.pos(at)
    elif different.pairs:
        result.kind, chosen = DIFFERENT, [int(claims[different.one]), int(claims[different.other])]
        group = rows.words["group"][int(history.group[chosen[0]])]
        result.simplest = 1, group, int(history.number[chosen[0]]), 0
    elif len(unfinished):
        membership = history.memberships[unfinished[0]]
        last = int(ends[membership[GROUP]])
        result.kind, chosen, result.expected = UNFINISHED, [int(membership[LAST_EVENT]), last], int(history.number[last])
        result.simplest = 2, "", int(membership[PROCESS]), rows.pos(int(membership[FIRST_EVENT]))
    else:
        return result
    result.group = rows.words["group"][int(history.group[chosen[0]])]
    result.seen = tuple(_seen(rows, history, index) for index in chosen)
    return result


def _entries(group: np.ndarray, number: np.ndarray) -> tuple[np.ndarray, int]:
    """A small number for every (group, number): by arithmetic where they are dense, as they are unless something is wrong."""
    if not len(number):
        return np.empty(0, np.int64), 0
    width = int(number.max() - number.min()) + 1
    if width * (int(group.max()) + 1) <= 4 * len(number) + 1_000_000:
        return group * width + number - number.min(), width * (int(group.max()) + 1)
    names, entries = np.unique(np.stack((group, number), axis=1), axis=0, return_inverse=True)
    return entries.reshape(-1).astype(np.int64), len(names)


@compiled
def differences(
    entry: np.ndarray, event: np.ndarray, process: np.ndarray, size: int, members: int, group: np.ndarray, groups: int
) -> Differences:
    """Compare what members claim to be the entries of the groups' logs. The first is the first pair at the first entry."""
    first = np.full(size, -1, np.int64)
    differ = np.zeros(size, np.bool_)
    any_differ = False
    for claim in range(len(entry)):
        at = entry[claim]
        if first[at] < 0:
            first[at] = claim
        elif event[first[at]] != event[claim]:
            differ[at] = True
            any_differ = True
    if not any_differ:
        return Differences(0, -1, -1)
    # The claims of each such entry as a list: chain[claim] is the next one of its entry.
    head = np.full(size, -1, np.int64)
    chain = np.full(len(entry), -1, np.int64)
    for claim in range(len(entry) - 1, -1, -1):
        if differ[entry[claim]]:
            chain[claim] = head[entry[claim]]
            head[entry[claim]] = claim
    seen = np.zeros((groups, members, members), np.bool_)
    pairs, one, other = 0, -1, -1
    for at in range(size):
        left = head[at]
        while left >= 0:
            right = chain[left]
            while right >= 0:
                p, q = process[left], process[right]
                if event[left] != event[right] and p != q and not seen[group[left], p, q]:
                    seen[group[left], p, q] = True
                    if pairs == 0:
                        one, other = left, right
                    pairs += 1
                right = chain[right]
            left = chain[left]
    return Differences(pairs, one, other)


def _unfinished(history: GroupHistory, claims: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The memberships without an end that do not reach the end of the log; and for each group the event at its end."""
    group, number = history.group[claims], history.number[claims]
    top = np.full(len(history.dynamic), -1, np.int64)
    np.maximum.at(top, group, number)
    ends = np.full(len(history.dynamic), -1, np.int64)
    last = np.flatnonzero(number == top[group])[::-1]
    ends[group[last]] = claims[last]
    reached = history.number[history.memberships[:, LAST_EVENT]]
    open_ = history.memberships[:, LAST] == OPEN
    return np.flatnonzero(open_ & (reached < top[history.memberships[:, GROUP]])), ends


def _expected(history: GroupHistory, process: np.ndarray, at: int) -> int:
    """The number that would have followed at this event."""
    before = np.flatnonzero((history.membership[:at] == history.membership[at]) & (history.group[:at] == history.group[at]))
    before = before[process[before] == process[at]]
    return int(history.number[before[-1]]) + 1 if len(before) and history.membership[at] >= 0 else -1


def _seen(rows: Labelled, history: GroupHistory, index: int) -> Seen:
    what = rows.word("op", index) if history.change[index] >= 0 else ""
    return Seen(
        rows.process(index), rows.pos(index), int(rows.origin[index]), int(rows.seq[index]), what,
        KINDS[int(rows.kind[index])], int(history.number[index]),
    )  # fmt: skip
