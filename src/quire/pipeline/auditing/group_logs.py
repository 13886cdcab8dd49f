"""Checks that each member delivered one contiguous slice of its group's log, from its join to its leave.

`group_history` gives every event its number in the log. The slices fit into one log if no two members have different events
under the same number, no event is outside a membership or missing before a view, and every member that has not left has
reached the end of the log.
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
"""Further violations, beside those of single events: a member that did not leave lacks the end of the log; two members have
different events under the same number."""


class Seen(msgspec.Struct, frozen=True):
    """An event of a group at a member. `what` names the change of membership; it is empty for a message."""

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
    """For a view with the wrong number: the number it should have. For an unfinished slice: the log's last number."""
    seen: tuple[Seen, ...] = ()
    """The wrong event; or two different events; or the last event of a slice, and the log's last event at another member."""
    simplest: tuple[int, str, int, int] = (3, "", 0, 0)
    """Sort key for the simplest counterexample: wrong events, the earliest first; then differing events, by group name and
    number; then unfinished slices, by where they begin."""

    def joined(self, other: GroupLogsResult) -> GroupLogsResult:
        """Combine with the result for other groups."""
        changes, violations = self.changes + other.changes, self.violations + other.violations
        simplest = min(self, other, key=lambda each: each.simplest)
        return msgspec.structs.replace(simplest, changes=changes, violations=violations)


class Differences(NamedTuple):
    """How many pairs of members have different events under one number, counted once per group; and the first such pair."""

    pairs: int
    one: int
    other: int


def compare_logs(rows: Labelled, history: GroupHistory, ids: np.ndarray) -> GroupLogsResult:
    """Count the violations, and report the simplest one."""
    result = GroupLogsResult(changes=int((history.change >= 0).sum()))
    if not result.changes:
        return result
    wrong = np.flatnonzero(history.wrong)
    process = rows.processes()
    claims = np.flatnonzero((history.number >= 0) & (history.change != FOUND))
    change = history.change[claims]
    event = np.where(change >= 0, -1 - (rows.origin[claims].astype(np.int64) * 4 + change), ids[claims])
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
    """A dense code for every (group, number), computed directly if numbers are dense, as they are in a sound trace."""
    if not len(number):
        return np.empty(0, np.int64), 0
    group, width = group.astype(np.int64), int(number.max() - number.min()) + 1
    if width * (int(group.max()) + 1) <= 4 * len(number) + 1_000_000:
        return group * width + number - number.min(), width * (int(group.max()) + 1)
    names, entries = np.unique(np.stack((group, number), axis=1), axis=0, return_inverse=True)
    return entries.reshape(-1).astype(np.int64), len(names)


@compiled
def differences(
    entry: np.ndarray, event: np.ndarray, process: np.ndarray, size: int, members: int, group: np.ndarray, groups: int
) -> Differences:
    """Compare the members' claims about the entries of the groups' logs. The reported pair is the first one at the first
    disputed entry."""
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
    # A linked list of the claims for each such entry: chain[claim] is the next claim for the same entry.
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
    """The open memberships that do not reach the end of the log; and for each group, an event at the end of its log."""
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
    """The number that this event should have had."""
    before = np.flatnonzero((history.membership[:at] == history.membership[at]) & (history.group[:at] == history.group[at]))
    before = before[process[before] == process[at]]
    return int(history.number[before[-1]]) + 1 if len(before) and history.membership[at] >= 0 else -1


def _seen(rows: Labelled, history: GroupHistory, index: int) -> Seen:
    what = rows.word("op", index) if history.change[index] >= 0 else ""
    return Seen(
        rows.process(index), rows.pos(index), int(rows.origin[index]), int(rows.seq[index]), what,
        KINDS[int(rows.kind[index])], int(history.number[index]),
    )  # fmt: skip
