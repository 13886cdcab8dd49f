"""What each member of a view is known to hold and to have delivered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from quire.model.errors import ProtocolViolation
from quire.views.packets import Known
from quire.views.view import Tie, View, is_majority


class Knowledge:
    def __init__(self, view: View, me: int, tie: Tie) -> None:
        members = len(view.members)
        self._weights, self._tie = [member.weight for member in view.members], tie
        self._weight = sum(self._weights)
        self._me, self._members = me, members
        self.held = [[0] * members for _ in view.members]
        """held[r][o]: how many messages of o the member r holds; this member's own row is what it holds durably."""
        self._delivered_here = [0] * members
        self.delivered: list[Sequence[int]] = [
            self._delivered_here if rank == me else (0,) * members for rank in range(members)
        ]
        self._floor = [0] * members
        self._in_turn = [
            [(at % members, self._weights[at % members]) for at in range(rank, rank + members)] for rank in range(members)
        ]
        """For each member, the ranks and weights of all, beginning with that one: those that follow it acknowledge its messages
        first."""
        self._safe = [0] * members
        """How many messages of each member were found to be safe."""

    def learn(self, member: int, known: Known) -> None:
        """A member has said what it has. Links are FIFO, so its counts never go down; but a message that it sent, and so holds,
        may be known here before it says so."""
        if len(known.held) != self._members or len(known.delivered) != self._members:
            raise ProtocolViolation(member, "it sent counts for another number of members than the view has")
        sent, held = self.held[member][member], list(known.held)
        if held[member] < sent:
            held[member] = sent
        self.held[member], self.delivered[member] = held, known.delivered

    def learn_floor(self, origin: int, floor: int) -> None:
        """The origin knows that so many of its messages are stable, though not every member has said so to this one."""
        if self._floor[origin] < floor:
            self._floor[origin] = floor

    def holds(self, origin: int, count: int) -> None:
        """This member holds so many messages of an origin at least."""
        row = self.held[self._me]
        if row[origin] < count:
            row[origin] = count

    def came(self, origin: int, count: int) -> None:
        """So many messages of an origin are here: it holds them, and so does this member."""
        for row in (self.held[origin], self.held[self._me]):
            if row[origin] < count:
                row[origin] = count

    def has_delivered(self, origin: int, count: int) -> None:
        """This member has delivered so many messages of an origin."""
        row = self._delivered_here
        if row[origin] < count:
            row[origin] = count

    def restore(self, held: Sequence[int], delivered: Sequence[int]) -> None:
        """What this member holds and has delivered, according to its journal."""
        self.held[self._me] = list(held)
        self._delivered_here = self.delivered[self._me] = list(delivered)

    def mine(self) -> Known:
        return Known(tuple(self.held[self._me]), tuple(self._delivered_here))

    def stable(self, origin: int) -> int:
        """How many messages of a member are stable: every member has delivered them, so none will ever ask for them."""
        return max(self._floor[origin], min([row[origin] for row in self.delivered]))

    def all_stable(self) -> Iterator[int]:
        """The same for each member."""
        delivered = self.delivered
        return map(max, self._floor, map(min, *delivered) if len(delivered) > 1 else delivered[0])

    def is_safe(self, origin: int, count: int) -> bool:
        """Whether a quorum is known to hold so many messages of a member, so that every later view has them."""
        if count <= self._safe[origin]:
            return True
        held, weight = self.held, 0
        for rank, each in self._in_turn[origin]:
            if held[rank][origin] >= count:
                weight += each
                if 2 * weight > self._weight:
                    break
        else:
            if not is_majority(weight, self._weight, self._tie, senior=held[0][origin] >= count):
                return False
        self._safe[origin] = count
        return True

    def lacking(self, origin: int, count: int) -> Iterator[int]:
        """The members that are not known to hold so many messages of a member."""
        return (rank for rank, row in enumerate(self.held) if row[origin] < count)

    def behind(self, origin: int) -> Iterator[int]:
        """The members that have delivered the fewest messages of a member, as far as is known."""
        least = min(row[origin] for row in self.delivered)
        return (rank for rank, row in enumerate(self.delivered) if row[origin] == least)
