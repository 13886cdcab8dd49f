"""Which members acknowledge a message at once, to whom, and when, so that all learn when a quorum holds it.

Each member has a few witnesses: as many as make up a quorum together with it. They acknowledge its messages at once; all other
members only piggyback acknowledgements on packets that they send anyway. No acknowledgement is needed before the message is
in order, because until then nobody waits for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quire.views.core import GroupSettings
from quire.views.view import Tie, View


class Holders:
    """The acknowledgements that the member of this rank owes. Where delivery is not uniform, no member is a witness."""

    def __init__(self, view: View, rank: int, settings: GroupSettings) -> None:
        members, tie = range(len(view.members)), settings.tie
        self._of = [settings.uniform and (origin == rank or rank in _witnesses(view, origin, tie)) for origin in members]
        """For each member, whether this one acknowledges its messages; where there is a journal, once they are durable."""
        self._origin_only = [origin != rank and _origin_suffices(view, origin, tie) for origin in members]
        self._rank = rank
        self._told = [0 for _ in members]
        """How many messages of each member this one has acknowledged."""
        self._untold: set[int] = set()
        """The members whose messages this one has to acknowledge with the next packet."""

    def is_in_order(self, origin: int, count: int) -> None:
        """So many messages of a member are in order here: members that have come as far wait only until they are safe, so
        acknowledge them."""
        if self._of[origin] and origin != self._rank and count > self._told[origin]:
            self._untold.add(origin)

    def owes(self) -> bool:
        return bool(self._untold)

    def told_all(self, held: Sequence[int]) -> None:
        """Another packet to all members carries what is held here, so no acknowledgement is owed."""
        self._told = list(held)
        self._untold.clear()

    def take(self, held: Sequence[int]) -> set[int]:
        """Take out and return the members whose messages are to be acknowledged now; `held`: how many are held of each."""
        taken, self._untold = self._untold, set()
        for origin in taken:
            self._told[origin] = held[origin]
        return taken

    def of(self, origins: Iterable[int]) -> set[int]:
        """The members among `origins` whose messages this one acknowledges."""
        return {origin for origin in origins if self._of[origin]}

    def audience(self, origins: Iterable[int]) -> tuple[int, ...] | None:
        """Which members wait for an acknowledgement of messages of these; None: all."""
        return tuple(origins) if all(self._origin_only[origin] for origin in origins) else None


def _witnesses(view: View, origin: int, tie: Tie) -> Sequence[int]:
    """The witnesses of a member: those that follow it in the order of the view, as many as make up a quorum with it."""
    members = len(view.members)
    chosen: list[int] = []
    while not view.is_quorum([view.members[rank].name for rank in (origin, *chosen)], tie) and len(chosen) < members - 1:
        chosen.append((origin + len(chosen) + 1) % members)
    return chosen


def _origin_suffices(view: View, origin: int, tie: Tie) -> bool:
    """Whether the origin and any one other member are a quorum. Then every member that has a message from the origin knows
    that a quorum holds it, and only the origin needs acknowledgements."""
    name = view.members[origin].name
    return all(view.is_quorum([name, member.name], tie) for member in view.members if member.name != name)
