"""Who tells whom that it holds a message, and when, so that all know when a quorum does.

A few witnesses of each member do so, as many as make up a quorum with it; the others say it with whatever they have to say
anyway. Nobody waits for that before the message is in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quire.model.messages import Run
from quire.views.core import GroupSettings
from quire.views.view import Tie, View


class Witnessing:
    """Of the member of this rank. Where delivery is not uniform, nobody is a witness."""

    def __init__(self, view: View, rank: int, settings: GroupSettings) -> None:
        members, tie = range(len(view.members)), settings.tie
        self._of = [settings.uniform and (origin == rank or rank in _witnesses(view, origin, tie)) for origin in members]
        """Of whose messages this one tells that it holds them, durably where there is a journal."""
        self._origin_only = [origin != rank and _origin_suffices(view, origin, tie) for origin in members]
        self._rank = rank
        self._told = [0 for _ in members]
        """How much of each member this one has told that it holds."""
        self._untold: set[int] = set()
        """The members of whose messages this one has to tell, with the next packet, that it holds them."""

    def is_in_order(self, run: Run) -> None:
        """A run is in order here, so that whoever is as far waits until it is safe."""
        origin = run.origin
        if self._of[origin] and origin != self._rank and run.end > self._told[origin]:
            self._untold.add(origin)

    def told_all(self, held: Sequence[int]) -> None:
        """Everybody is told with another packet how much is held here."""
        self._told = list(held)
        self._untold.clear()

    def take(self, held: Sequence[int]) -> set[int]:
        """The members of whose messages it is to be told now that so many are held here."""
        taken, self._untold = self._untold, set()
        for origin in taken:
            self._told[origin] = held[origin]
        return taken

    def of(self, origins: Iterable[int]) -> set[int]:
        """Those of these members of whom this one is a witness."""
        return {origin for origin in origins if self._of[origin]}

    def audience(self, origins: Iterable[int]) -> tuple[int, ...] | None:
        """Who waits for what is told of these members; None: everybody."""
        return tuple(origins) if all(self._origin_only[origin] for origin in origins) else None


def _witnesses(view: View, origin: int, tie: Tie) -> Sequence[int]:
    """Who tells at once that it holds a message of this member: those after it in the order of the view, as many as make up
    a quorum with it."""
    members = len(view.members)
    chosen: list[int] = []
    while not view.is_quorum([view.members[rank].name for rank in (origin, *chosen)], tie) and len(chosen) < members - 1:
        chosen.append((origin + len(chosen) + 1) % members)
    return chosen


def _origin_suffices(view: View, origin: int, tie: Tie) -> bool:
    """Whether the origin and any one other member are a quorum: then whoever has a message of it knows that a quorum holds
    it, and only the origin itself has to be told."""
    name = view.members[origin].name
    return all(view.is_quorum([name, member.name], tie) for member in view.members if member.name != name)
