"""Total order in traces with groups: within each group, and across groups whose members change.

Within groups, each member's deliveries are split by group and merged as `total` merges whole sequences. Across groups, two
members need to agree on the order of two messages only if they were together in both groups: in each member's log there is a
point at which both are members of both groups, in the memberships in which the messages were delivered.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import numpy as np

from quire.pipeline.auditing.group_history import FIRST, LAST, OPEN, GroupHistory
from quire.pipeline.auditing.total import UNRANKED, Disagreement, Disagreements, disagreements, first_inversion, take

_ALWAYS, _NEVER = -2, -1
"""Pseudo-memberships of deliveries: in a group whose members never change, or in no group; and outside any membership."""


class WithinGroups(msgspec.Struct, frozen=True, kw_only=True):
    grouped: bool = False
    """Whether the trace names groups of messages."""
    pairs: int = 0
    """How many pairs of members disagree, summed over the groups."""
    group: str = ""
    disagreement: Disagreement | None = None

    def joined(self, other: WithinGroups) -> WithinGroups:
        """Combine with the result for other groups; the first disagreement is that of the group whose name sorts first."""
        first = min((each for each in (self, other) if each.pairs), key=lambda each: each.group, default=self)
        grouped, pairs = self.grouped or other.grouped, self.pairs + other.pairs
        return WithinGroups(grouped=grouped, pairs=pairs, group=first.group, disagreement=first.disagreement)


class WithinGroup(NamedTuple):
    """How many pairs of members disagree within groups; the first such group, and its first disagreement."""

    pairs: int
    group: int
    first: Disagreements


def disagreements_within(ids: np.ndarray, start: np.ndarray, group: np.ndarray, size: int, groups: int) -> WithinGroup:
    """Find pairs of members that disagree within a group. `ids`: every member's first deliveries; `start`: where each member's
    begin; `group`: the group of each delivery."""
    members = len(start) - 1
    process = np.repeat(np.arange(members), np.diff(start))
    kept = np.flatnonzero(group >= 0)
    kept = kept[np.argsort(group[kept], kind="stable")]  # They are in the order of processes.
    ids, place = ids[kept], process[kept]
    place += group[kept].astype(np.int64) * members
    bounds = np.searchsorted(place, np.arange(groups * members + 1)).astype(np.int64)
    head, tail = bounds[:-1].copy(), bounds[1:].copy()
    found = WithinGroup(0, -1, Disagreements())
    if take(ids, head, tail, size, 1, UNRANKED) == len(ids):
        return found
    take(ids, head, tail, size, -1, UNRANKED)
    left = (tail - head).reshape(groups, members).sum(axis=1)
    for each in np.flatnonzero(left).tolist():
        first, last = each * members, (each + 1) * members
        own = np.concatenate([ids[low:high] for low, high in zip(head[first:last], tail[first:last], strict=True)])
        names, small = np.unique(own, return_inverse=True)
        spans = np.concatenate(([0], np.cumsum(tail[first:last] - head[first:last]))).astype(np.int64)
        own_first = disagreements(small.astype(np.int64), spans, len(names))
        if own_first.pairs and not found.pairs:
            before, after = int(names[own_first.before]), int(names[own_first.after])
            found = WithinGroup(0, each, Disagreements(*own_first[:3], before, after))
        found = found._replace(pairs=found.pairs + int(own_first.pairs))
    return found


class Together:
    """Decides which messages two members had to deliver in the same order, given who was in which group when."""

    def __init__(self, history: GroupHistory, ends: np.ndarray) -> None:
        """`ends`: the index at which each member's log ends."""
        self._history = history
        self._ends = ends
        inside = np.flatnonzero(history.membership >= 0)
        self._events = inside[np.argsort(history.membership[inside], kind="stable")]
        self._bounds = np.searchsorted(history.membership[self._events], np.arange(len(history.memberships) + 1))

    def disagreements(self, ids: np.ndarray, start: np.ndarray, size: int, index: np.ndarray) -> Disagreements:
        """Like `total.disagreements`, but only for messages in whose groups the two members were together. `index` maps each
        delivery to its event in the trace."""
        history = self._history
        members, group = len(start) - 1, history.group[index]
        changing = (group >= 0) & history.dynamic[group] if len(history.dynamic) else group >= 0
        membership = np.where(changing, history.membership[index], _ALWAYS).astype(np.int64)
        index_there = np.full(size, -1, np.int64)
        found = Disagreements()
        for one in range(members):
            own = np.arange(start[one], start[one + 1])
            own = own[membership[own] != _NEVER]
            for other in range(one + 1, members):
                theirs = np.arange(start[other], start[other + 1])
                index_there[ids[theirs]] = theirs
                there = index_there[ids[own]]
                index_there[ids[theirs]] = -1
                common = (there >= 0) & (membership[there] != _NEVER)
                here, there = own[common], there[common]
                if (there[1:] > there[:-1]).all():
                    continue
                width = len(history.memberships) + 2
                shared, kind = np.unique((membership[here] + 2) * width + membership[there] + 2, return_inverse=True)
                meet = self._meet(np.stack(np.divmod(shared, width), axis=1) - 2, one, other)
                before, after = first_inversion(there, kind.astype(np.int64), meet, np.ones(len(there), np.bool_))
                if before >= 0 and not found.pairs:
                    found = Disagreements(0, one, other, int(ids[here[before]]), int(ids[here[after]]))
                found = found._replace(pairs=found.pairs + (before >= 0))
        return found

    def _meet(self, shared: np.ndarray, one: int, other: int) -> np.ndarray:
        """For any two of the shared memberships (each a pair: one member's and the other's), whether the spans in which both
        were members overlap in both logs."""
        low, high = np.empty((2, len(shared)), np.int64), np.empty((2, len(shared)), np.int64)
        for at, (mine, yours) in enumerate(shared.tolist()):
            if mine == _ALWAYS or yours == _ALWAYS:
                low[:, at], high[:, at] = -1, OPEN
                continue
            both = self._history.memberships[[mine, yours]]
            for side, (membership, member) in enumerate(((mine, one), (yours, other))):
                low[side, at] = self._reach(membership, member, int(both[:, FIRST].max()))
                high[side, at] = self._reach(membership, member, int(both[:, LAST].min()))
        meets = np.maximum(low[:, :, None], low[:, None, :]) <= np.minimum(high[:, :, None], high[:, None, :])
        result: np.ndarray = meets[0] & meets[1] | np.eye(len(shared), dtype=np.bool_)
        return result

    def _reach(self, membership: int, member: int, number: int) -> int:
        """The index at which a member reached this number in this membership; the end of its log if it never did."""
        events = self._events[self._bounds[membership] : self._bounds[membership + 1]]
        at = int(np.searchsorted(np.maximum.accumulate(self._history.number[events]), number))
        return int(events[at]) if at < len(events) else int(self._ends[member])
