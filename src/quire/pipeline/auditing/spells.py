"""Membership spells: is what each member delivers of a group a slice of one log, from its join to its leave?

Every member's events have numbers (`memberships`). The slices fit into one log if no two members have different events
under one number, nothing is outside a spell or missing before a view, and who has not left goes on to the log's end.
"""

from __future__ import annotations

import msgspec
import numpy as np

from quire.pipeline.auditing.memberships import FOUND, OPEN, Memberships
from quire.pipeline.compiled import compiled
from quire.pipeline.labels import Labelled
from quire.trace.schema import KINDS

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


class SpellsResult(msgspec.Struct, kw_only=True):
    changes: int = 0
    """How many changes of membership were recorded."""
    violations: int = 0
    kind: int = 0
    group: str = ""
    expected: int = 0
    """Of a view whose number does not follow: which one would. Of an unfinished slice: the log's last."""
    seen: tuple[Seen, ...] = ()
    """The event that is wrong; or two that are different; or the last of a slice, and the log's last at another member."""


def judge_spells(rows: Labelled, known: Memberships, ids: np.ndarray) -> SpellsResult:
    """Count what is wrong, and show the simplest of it."""
    result = SpellsResult(changes=int((known.change >= 0).sum()))
    if not result.changes:
        return result
    wrong = np.flatnonzero(known.wrong)
    process = rows.processes()
    claims = np.flatnonzero((known.number >= 0) & (known.change != FOUND))
    event = np.where(known.change >= 0, -1 - (rows.origin.astype(np.int64) * 4 + known.change), ids)[claims]
    place, size = _places(known.group[claims], known.number[claims])
    members, groups = len(rows.start) - 1, len(known.dynamic)
    pairs, one, other = differences(place, event, process[claims], size, members, known.group[claims], groups)
    unfinished, ends = _unfinished(known, claims)
    result.violations = len(wrong) + pairs + len(unfinished)
    if len(wrong):
        at = int(wrong[0])
        result.kind, chosen = int(known.wrong[at]), [at]
        result.expected = _expected(known, process, at)
    elif pairs:
        result.kind, chosen = DIFFERENT, [int(claims[one]), int(claims[other])]
    elif len(unfinished):
        spell = int(unfinished[0])
        last = int(ends[known.spells[spell, 1]])
        result.kind, chosen, result.expected = UNFINISHED, [int(known.spells[spell, 5]), last], int(known.number[last])
    else:
        return result
    result.group = rows.words["group"][int(known.group[chosen[0]])]
    result.seen = tuple(_seen(rows, known, index) for index in chosen)
    return result


def _places(group: np.ndarray, number: np.ndarray) -> tuple[np.ndarray, int]:
    """A small number for every (group, number): by arithmetic where they are dense, as they are unless something is wrong."""
    if not len(number):
        return np.empty(0, np.int64), 0
    width = int(number.max() - number.min()) + 1
    if width * (int(group.max()) + 1) <= 4 * len(number) + 1_000_000:
        return group * width + number - number.min(), width * (int(group.max()) + 1)
    names, places = np.unique(np.stack((group, number), axis=1), axis=0, return_inverse=True)
    return places.reshape(-1).astype(np.int64), len(names)


@compiled
def differences(
    place: np.ndarray, event: np.ndarray, process: np.ndarray, size: int, members: int, group: np.ndarray, groups: int
) -> tuple[int, int, int]:
    """How many pairs of members have different events at one place of a group, counted once a group; and the first place's
    first pair, as two claims."""
    first = np.full(size, -1, np.int64)
    torn = np.zeros(size, np.bool_)
    any_torn = False
    for claim in range(len(place)):
        at = place[claim]
        if first[at] < 0:
            first[at] = claim
        elif event[first[at]] != event[claim]:
            torn[at] = True
            any_torn = True
    if not any_torn:
        return 0, -1, -1
    # The claims of each torn place as a list: chain[claim] is the next one of its place.
    head = np.full(size, -1, np.int64)
    chain = np.full(len(place), -1, np.int64)
    for claim in range(len(place) - 1, -1, -1):
        if torn[place[claim]]:
            chain[claim] = head[place[claim]]
            head[place[claim]] = claim
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
    return pairs, one, other


def _unfinished(known: Memberships, claims: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The spells without an end that do not reach the end of the log; and for each group the event at its end."""
    group, number = known.group[claims], known.number[claims]
    top = np.full(len(known.dynamic), -1, np.int64)
    np.maximum.at(top, group, number)
    ends = np.full(len(known.dynamic), -1, np.int64)
    last = np.flatnonzero(number == top[group])[::-1]
    ends[group[last]] = claims[last]
    reached = known.number[known.spells[:, 5]]
    return np.flatnonzero((known.spells[:, 3] == OPEN) & (reached < top[known.spells[:, 1]])), ends


def _expected(known: Memberships, process: np.ndarray, at: int) -> int:
    """The number that would have followed at this event."""
    before = np.flatnonzero((known.spell[:at] == known.spell[at]) & (known.group[:at] == known.group[at]))
    before = before[process[before] == process[at]]
    return int(known.number[before[-1]]) + 1 if len(before) and known.spell[at] >= 0 else -1


def _seen(rows: Labelled, known: Memberships, index: int) -> Seen:
    what = rows.word("op", index) if known.change[index] >= 0 else ""
    return Seen(
        rows.process(index), rows.pos(index), int(rows.origin[index]), int(rows.seq[index]), what,
        KINDS[int(rows.kind[index])], int(known.number[index]),
    )  # fmt: skip
