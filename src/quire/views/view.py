"""Views, quorums, ballots, and what a ballot decides."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, NamedTuple

import msgspec

Tie = Literal["senior", "strict"]
"""Who may go on when the members are parted into equal halves: the half of the senior, or none."""


class Participant(msgspec.Struct, frozen=True, array_like=True):
    """A process that is, or asks to be, a member. Each start of a process, and each return to the group, is another
    incarnation; of one name, a later one has a higher number."""

    name: str
    incarnation: int
    weight: int = 1
    cluster: str = ""
    """The name of the cluster that it is in, where the protocol knows clusters."""


class View(msgspec.Struct, frozen=True, array_like=True):
    """The members of an epoch, in order. The first is the senior; survivors keep their order, and joiners come last."""

    epoch: int
    members: tuple[Participant, ...]
    latest: dict[str, int]
    """Of every name that was ever admitted, the latest incarnation. An older one never comes in again."""

    def names(self) -> tuple[str, ...]:
        return tuple(member.name for member in self.members)

    def rank(self, name: str) -> int | None:
        """The position of a member in the view, by which protocols know it."""
        for rank, member in enumerate(self.members):
            if member.name == name:
                return rank
        return None

    def clusters(self) -> tuple[str, ...]:
        """In which cluster each member is."""
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
    """Whether members of this weight, of so much in all, are a quorum; `senior`: whether the senior is one of them."""
    return 2 * weight > total or (tie == "senior" and 2 * weight == total and senior)


class Ballot(NamedTuple):
    """Ballots are compared by round, then by who leads them."""

    round: int
    name: str
    incarnation: int


class Position(msgspec.Struct, frozen=True, array_like=True):
    """How far a member has come: so many messages of each member delivered in this epoch. It names a state of the group."""

    epoch: int
    delivered: tuple[int, ...]

    def covers(self, other: Position) -> bool:
        """Whether whoever has come this far has come as far as that."""
        if self.epoch != other.epoch:
            return self.epoch > other.epoch
        return all(map(int.__ge__, self.delivered, other.delivered))


class Joiner(msgspec.Struct, frozen=True, array_like=True):
    """Somebody who asks to be a member, and the state that it has."""

    participant: Participant
    position: Position


class Value(msgspec.Struct, frozen=True, array_like=True):
    """What a ballot decides: the next view, and how much of the present one everybody delivers before it."""

    members: tuple[Participant, ...]
    cut: tuple[int, ...]
    """Of each member of the present view, how many of its messages belong to it."""
    latest: dict[str, int]
    joiners: tuple[Joiner, ...] = ()
    closing: bool = False
    """Whether the group is to be closed, which everybody learns in this way."""
    terminal: bool = False
    """Whether there is nothing more to deliver, so that this is the end."""

    def is_survivor(self, name: str) -> bool:
        """Whether a member of the present view goes on to the next."""
        joining = {joiner.participant.name for joiner in self.joiners}
        return name not in joining and any(member.name == name for member in self.members)

    def view_after(self, view: View) -> View:
        return View(view.epoch + 1, self.members, self.latest)


def founding_view(founders: Collection[Participant]) -> View:
    """The view that every founder is configured with. It carries no messages: a quorum of it elects the first real one."""
    return View(1, tuple(founders), {founder.name: founder.incarnation for founder in founders})
