"""What each member of a view is known to hold and to have delivered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from quire.views.packets import Known
from quire.views.view import Tie, View


class Knowledge:
    def __init__(self, view: View, me: int, tie: Tie) -> None:
        members = len(view.members)
        self._view, self._tie = view, tie
        self._me = me
        self.held = [[0] * members for _ in range(members)]
        """held[r][o]: how many messages of o the member r holds; my own row is what I hold durably."""
        self.delivered = [[0] * members for _ in range(members)]
        self._floor = [0] * members

    def learn(self, member: int, known: Known) -> None:
        self.held[member] = list(map(max, self.held[member], known.held))
        self.delivered[member] = list(map(max, self.delivered[member], known.delivered))

    def learn_floor(self, origin: int, floor: int) -> None:
        """The origin knows that everybody has delivered so many of its messages, though not everybody has told me so."""
        self._floor[origin] = max(self._floor[origin], floor)

    def mine(self) -> Known:
        return Known(tuple(self.held[self._me]), tuple(self.delivered[self._me]))

    def stable(self, origin: int) -> int:
        """How many messages of a member everybody has delivered: nobody will ever ask for them."""
        return self.all_stable()[origin]

    def all_stable(self) -> list[int]:
        """The same, of every member."""
        return [*map(max, map(min, zip(*self.delivered, strict=True)), self._floor)]

    def is_safe(self, origin: int, count: int) -> bool:
        """Whether a quorum holds so many messages of a member, so that no later view is without them."""
        holders = [member.name for rank, member in enumerate(self._view.members) if self.held[rank][origin] >= count]
        return self._view.is_quorum(holders, self._tie)

    def lacking(self, origin: int, count: int) -> Iterator[int]:
        """Who is not known to hold so many messages of a member."""
        return (rank for rank, row in enumerate(self.held) if row[origin] < count)

    def behind(self, origin: int) -> Iterator[int]:
        """Who has delivered the least of a member's messages, as far as is known."""
        least = min(row[origin] for row in self.delivered)
        return (rank for rank, row in enumerate(self.delivered) if row[origin] == least)


def witnesses(view: View, origin: int, tie: Tie) -> Sequence[int]:
    """Who tells at once that it holds a message of this member: those after it in the order of the view, as many as make up
    a quorum with it."""
    members = len(view.members)
    chosen: list[int] = []
    while not view.is_quorum([view.members[rank].name for rank in (origin, *chosen)], tie) and len(chosen) < members - 1:
        chosen.append((origin + len(chosen) + 1) % members)
    return chosen


def origin_suffices(view: View, origin: int, tie: Tie) -> bool:
    """Whether the origin and any one other member are a quorum: then whoever has a message of it knows that a quorum holds
    it, and only the origin itself has to be told."""
    name = view.members[origin].name
    return all(view.is_quorum([name, member.name], tie) for member in view.members if member.name != name)
