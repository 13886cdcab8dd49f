"""Views, quorums, ballots, and the value that a ballot decides."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, NamedTuple

import msgspec

Tie = Literal["senior", "strict"]
"""Which half may go on when a view is split into equal halves: the one with the senior member, or neither."""


class Participant(msgspec.Struct, frozen=True, array_like=True):
    """A process that is, or asks to be, a member. Each start of a process, and each return to the group, is a new incarnation;
    later incarnations of a name have higher numbers."""

    name: str
    incarnation: int
    weight: int = 1
    cluster: str = ""
    """The name of its cluster, where the protocol has clusters."""


class View(msgspec.Struct, frozen=True, array_like=True):
    """The members of an epoch, in order. The first is the senior; survivors keep their order, and joiners come last."""

    epoch: int
    members: tuple[Participant, ...]
    latest: dict[str, int]
    """The latest incarnation of every name that was ever admitted. Only a later one can be admitted."""

    def names(self) -> tuple[str, ...]:
        return tuple(member.name for member in self.members)

    def rank(self, name: str) -> int | None:
        """The position of a member in the view, by which the ordering protocols identify it; None if it is no member."""
        for rank, member in enumerate(self.members):
            if member.name == name:
                return rank
        return None

    def clusters(self) -> tuple[str, ...]:
        """The cluster of each member."""
        return tuple(member.cluster for member in self.members)

    def incarnation(self, name: str) -> int | None:
        rank = self.rank(name)
        return None if rank is None else self.members[rank].incarnation

    def is_quorum(self, names: Collection[str], tie: Tie) -> bool:
        """Whether these members may decide for all. Any two quorums have a member in common: each has more than half of the
        weight or, where ties go to the senior, just half of it and the senior."""
        weight = sum(member.weight for member in self.members if member.name in names)
        total = sum(member.weight for member in self.members)
        return is_majority(weight, total, tie, senior=self.members[0].name in names)


def is_majority(weight: int, total: int, tie: Tie, *, senior: bool) -> bool:
    """Whether members with `weight` of the `total` weight are a quorum; `senior`: whether the senior is one of them."""
    return 2 * weight > total or (tie == "senior" and 2 * weight == total and senior)


class Ballot(NamedTuple):
    """Ballots are compared by round, then by who leads them."""

    round: int
    name: str
    incarnation: int


class Position(msgspec.Struct, frozen=True, array_like=True):
    """How far a process has come: how many messages of each member it has delivered in this epoch. It identifies a state."""

    epoch: int
    delivered: tuple[int, ...]

    def covers(self, other: Position) -> bool:
        """Whether this position is at least as far as the other."""
        if self.epoch != other.epoch:
            return self.epoch > other.epoch
        return all(map(int.__ge__, self.delivered, other.delivered))


class Joiner(msgspec.Struct, frozen=True, array_like=True):
    """A process that asks to join, and the position of the state that it has."""

    participant: Participant
    position: Position


class Value(msgspec.Struct, frozen=True, array_like=True):
    """What a ballot decides: the next view, and the cut, which is what all deliver of the present view before it."""

    members: tuple[Participant, ...]
    cut: tuple[int, ...]
    """For each member of the present view, how many of its messages belong to that view."""
    latest: dict[str, int]
    joiners: tuple[Joiner, ...] = ()
    closing: bool = False
    """Whether the group is to be closed; all members learn it by this."""
    terminal: bool = False
    """Whether the group ends with the present view: it is closing, and no member has anything left to send."""

    def is_survivor(self, name: str) -> bool:
        """Whether a member of the present view goes on to the next."""
        joining = {joiner.participant.name for joiner in self.joiners}
        return name not in joining and any(member.name == name for member in self.members)

    def view_after(self, view: View) -> View:
        return View(view.epoch + 1, self.members, self.latest)


def founding_view(founders: Collection[Participant]) -> View:
    """The view that every founder is configured with. It carries no messages: its quorum decides the first real view."""
    return View(1, tuple(founders), {founder.name: founder.incarnation for founder in founders})
