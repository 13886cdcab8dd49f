"""What the checks of groups mean, by brute force."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

from tests.audit.oracle import Event, Logs, Message

ENDLESS = 10**9

OPS = ("found", "join", "leave", "blank")


class Membership(NamedTuple):
    group: str
    first: int
    last: int


class Claim(NamedTuple):
    """An event of a group at a member, with its number, its index in the member's log and its membership."""

    number: int
    position: int
    membership: int
    event: tuple[object, ...]


class Follower:
    """A member's way through its groups."""

    def __init__(self, p: int, log: list[Event], group_of: dict[Message, str], dynamic: set[str]) -> None:
        self.memberships: list[Membership] = []
        self.claims: list[Claim] = []
        self.order: list[tuple[Message, str | None, int | None]] = []
        """Messages as first delivered, with their group and membership; None: in none; -1: its members never change."""
        self.wrong = 0
        self.end = len(log)
        inside: dict[str, int] = {}
        due: dict[str, int] = {}
        seen: set[Message] = set()
        for index, e in enumerate(log):
            m = (e.origin, e.seq)
            change = e.kind == "view" and e.op in OPS and e.group is not None
            if e.kind == "deliver" and m not in seen:
                seen.add(m)
                group = group_of.get(m, e.group)
                if group not in dynamic:
                    self.order.append((m, group, -1))
                    continue
            elif change:
                group = e.group
            else:
                continue
            assert group is not None
            bad = False
            if change and e.op in ("found", "join") and e.origin == p:
                if group in inside:
                    bad = True
                else:
                    inside[group] = len(self.memberships)
                    due[group] = e.seq
                    self.memberships.append(Membership(group, e.seq, ENDLESS))
            if group not in inside:
                self.wrong += 1
                if not change:
                    self.order.append((m, group, None))
                continue
            if change:
                bad = bad or e.seq != due[group]
                due[group] = e.seq
            self.wrong += bad
            if e.op != "found" or not change:
                what = (e.op, e.origin) if change else m
                self.claims.append(Claim(due[group], index, inside[group], what))
            else:
                self.claims.append(Claim(due[group], index, inside[group], ("found",)))
            if not change:
                self.order.append((m, group, inside[group]))
            due[group] += 1
            if change and e.op == "leave" and e.origin == p:
                membership = inside.pop(group)
                self.memberships[membership] = self.memberships[membership]._replace(last=e.seq)

    def real(self, group: str) -> list[Claim]:
        return [c for c in self.claims if self.memberships[c.membership].group == group and c.event != ("found",)]

    def reach(self, membership: int, number: int) -> int:
        return min((c.position for c in self.claims if c.membership == membership and c.number >= number), default=self.end)


def judge(logs: Logs, crashed: frozenset[int]) -> tuple[int, int, int]:
    """Pairs of members that disagree though they were together in both groups, pairs that disagree within a group, and
    what is wrong with the slices."""
    group_of: dict[Message, str] = {}
    for p, log in enumerate(logs):
        for e in log:
            if e.kind == "send" and e.origin == p and e.group is not None:
                group_of.setdefault((p, e.seq), e.group)
    correct = [p for p in range(len(logs)) if p not in crashed]
    dynamic = {
        e.group for p in correct for e in logs[p]
        if e.kind == "view" and e.op in OPS and e.group is not None
    }  # fmt: skip
    ways = {p: Follower(p, logs[p], group_of, dynamic) for p in correct}
    memberships = sum(way.wrong for way in ways.values())
    for group in dynamic:
        end = max((c.number for way in ways.values() for c in way.real(group)), default=-1)
        for way in ways.values():
            for index, membership in enumerate(way.memberships):
                last = [c for c in way.claims if c.membership == index][-1].number
                memberships += membership.group == group and membership.last == ENDLESS and last < end
        for p, q in combinations(correct, 2):
            memberships += any(
                a.number == b.number and a.event != b.event for a in ways[p].real(group) for b in ways[q].real(group)
            )
    within = 0
    for group in {g for way in ways.values() for _, g, _ in way.order if g is not None}:
        for p, q in combinations(correct, 2):
            within += _disagree(*([m for m, g, _ in ways[x].order if g == group] for x in (p, q)))
    together = sum(_disagree_together(ways[p], ways[q]) for p, q in combinations(correct, 2))
    return together, within, memberships


def _disagree(one: list[Message], other: list[Message]) -> bool:
    common = [m for m in one if m in other]
    return any(other.index(a) > other.index(b) for a, b in combinations(common, 2))


def _disagree_together(one: Follower, other: Follower) -> bool:
    membership_there = {m: s for m, _, s in other.order}
    place_there = {m: i for i, (m, _, _) in enumerate(other.order)}
    common = []
    for m, _, mine in one.order:
        yours = membership_there.get(m)
        if mine is not None and yours is not None:
            common.append((m, mine, yours))
    for (a, a1, a2), (b, b1, b2) in combinations(common, 2):
        if place_there[a] > place_there[b]:
            times = [_times(one, other, a1, a2), _times(one, other, b1, b2)]
            if (a1, a2) == (b1, b2) or all(
                max(t[side][0] for t in times) <= min(t[side][1] for t in times) for side in range(2)
            ):
                return True
    return False


def _times(one: Follower, other: Follower, mine: int, yours: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """In each of the two logs: from when to when both were members."""
    if mine == -1 or yours == -1:
        return (-1, ENDLESS), (-1, ENDLESS)
    first = max(one.memberships[mine].first, other.memberships[yours].first)
    last = min(one.memberships[mine].last, other.memberships[yours].last)
    return (one.reach(mine, first), one.reach(mine, last)), (other.reach(yours, first), other.reach(yours, last))
