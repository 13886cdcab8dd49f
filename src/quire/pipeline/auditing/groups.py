"""Total order where there are groups: within each of them, and across them where members come and go.

Within a group, the deliveries of each member are split by group and merged like whole sequences in `total`. Across groups
two members need agree on two messages only if they were together in both groups: in each of their two logs there is
a moment at which both are members of both groups, in the spells in which the messages were delivered.
"""

from __future__ import annotations

import msgspec
import numpy as np

from quire.pipeline.auditing.inversions import first_inversion
from quire.pipeline.auditing.memberships import OPEN, Memberships
from quire.pipeline.auditing.total import UNRANKED, Disagreement, Message, disagreements, take

_ALWAYS, _NEVER = -2, -1
"""The spell of what is delivered in a group whose members never change, or in none; and of what is outside any spell."""


class WithinGroups(msgspec.Struct, frozen=True, kw_only=True):
    grouped: bool = False
    """Whether any message is said to be of a group."""
    pairs: int = 0
    """How many pairs of members disagree, counted in each group."""
    group: str = ""
    disagreement: tuple[int, int, Message, Message] | None = None


def disagreements_within(
    ids: np.ndarray, start: np.ndarray, group: np.ndarray, size: int, groups: int
) -> tuple[int, int, int, int, int, int]:
    """Pairs of members that disagree, and the first: (pairs, group, one, other, before, after).

    `ids` are the first deliveries of every member, `start` where each member's begin, `group` the group of each."""
    members = len(start) - 1
    process = np.repeat(np.arange(members), np.diff(start))
    kept = np.flatnonzero(group >= 0)
    kept = kept[np.lexsort((kept, process[kept], group[kept]))]
    ids, group = ids[kept], group[kept]
    bounds = np.searchsorted(group * members + process[kept], np.arange(groups * members + 1)).astype(np.int64)
    head, tail = bounds[:-1].copy(), bounds[1:].copy()
    found = (0, -1, -1, -1, -1, -1)
    if take(ids, head, tail, size, 1, UNRANKED) == len(ids):
        return found
    take(ids, head, tail, size, -1, UNRANKED)
    left = (tail - head).reshape(groups, members).sum(axis=1)
    for each in np.flatnonzero(left).tolist():
        first, last = each * members, (each + 1) * members
        own = np.concatenate([ids[low:high] for low, high in zip(head[first:last], tail[first:last], strict=True)])
        names, small = np.unique(own, return_inverse=True)
        spans = np.concatenate(([0], np.cumsum(tail[first:last] - head[first:last]))).astype(np.int64)
        pairs, one, other, before, after = disagreements(small.astype(np.int64), spans, len(names))
        if pairs and not found[0]:
            found = (int(pairs), each, int(one), int(other), int(names[before]), int(names[after]))
        elif pairs:
            found = (found[0] + int(pairs), *found[1:])
    return found


class Together:
    """Which messages two members had to deliver in the same order, given who was in which group when."""

    def __init__(self, known: Memberships, ends: np.ndarray) -> None:
        """`ends` are where in the trace the members' logs end."""
        self._known = known
        self._ends = ends
        inside = np.flatnonzero(known.spell >= 0)
        self._events = inside[np.argsort(known.spell[inside], kind="stable")]
        self._bounds = np.searchsorted(known.spell[self._events], np.arange(len(known.spells) + 1))

    def disagreements(self, ids: np.ndarray, start: np.ndarray, size: int, index: np.ndarray) -> Disagreement:
        """As `total.disagreements`, only between messages in whose groups the two members were together. `index` says
        which event of the trace each delivery is."""
        members, group = len(start) - 1, self._known.group[index]
        moving = (group >= 0) & self._known.dynamic[group] if len(self._known.dynamic) else group >= 0
        spell = np.where(moving, self._known.spell[index], _ALWAYS)
        place = np.full(size, -1, np.int64)
        found = (0, -1, -1, -1, -1)
        for one in range(members):
            own = np.arange(start[one], start[one + 1])
            own = own[spell[own] != _NEVER]
            for other in range(one + 1, members):
                theirs = np.arange(start[other], start[other + 1])
                place[ids[theirs]] = theirs
                there = place[ids[own]]
                place[ids[theirs]] = -1
                common = (there >= 0) & (spell[there] != _NEVER)
                here, there = own[common], there[common]
                if (there[1:] > there[:-1]).all():
                    continue
                width = len(self._known.spells) + 2
                shared, kind = np.unique((spell[here] + 2) * width + spell[there] + 2, return_inverse=True)
                meet = self._meet(np.stack(np.divmod(shared, width), axis=1) - 2, one, other)
                before, after = first_inversion(there, kind.astype(np.int64), meet)
                if before >= 0 and not found[0]:
                    found = (1, one, other, int(ids[here[before]]), int(ids[here[after]]))
                elif before >= 0:
                    found = (found[0] + 1, *found[1:])
        return found

    def _meet(self, shared: np.ndarray, one: int, other: int) -> np.ndarray:
        """Of spells that two members shared, each given as the spell of one and that of the other: for any two of them,
        whether in both logs the times in which both were members overlap."""
        low, high = np.empty((2, len(shared)), np.int64), np.empty((2, len(shared)), np.int64)
        for at, (mine, yours) in enumerate(shared.tolist()):
            if mine == _ALWAYS or yours == _ALWAYS:
                low[:, at], high[:, at] = -1, OPEN
                continue
            spells = self._known.spells[[mine, yours]]
            for side, (spell, member) in enumerate(((mine, one), (yours, other))):
                low[side, at] = self._reach(spell, member, int(spells[:, 2].max()))
                high[side, at] = self._reach(spell, member, int(spells[:, 3].min()))
        meets = np.maximum(low[:, :, None], low[:, None, :]) <= np.minimum(high[:, :, None], high[:, None, :])
        result: np.ndarray = meets[0] & meets[1] | np.eye(len(shared), dtype=np.bool_)
        return result

    def _reach(self, spell: int, member: int, number: int) -> int:
        """Where in its log a member came to this number of a group in this spell; the log's end if it never did."""
        events = self._events[self._bounds[spell] : self._bounds[spell + 1]]
        at = int(np.searchsorted(np.maximum.accumulate(self._known.number[events]), number))
        return int(events[at]) if at < len(events) else int(self._ends[member])
