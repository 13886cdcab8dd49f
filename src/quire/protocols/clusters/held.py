"""Letters that a cluster has ordered at a site, and why others are held back there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from quire.model.messages import Run
from quire.protocols.clusters.coordinator import Coordinated
from quire.protocols.clusters.matrix import Matrix
from quire.protocols.clusters.packets import Letter, Sites
from quire.protocols.clusters.tree import Cluster
from quire.protocols.contract import Waiting


class Arrival(NamedTuple):
    """A letter that arrived at this site in order, with its destinations and the cluster through which it came."""

    letter: Letter
    dests: Sites
    via: int
    serial: int = -1


Ordering = Matrix[Arrival] | Coordinated[Arrival]


def held_in(cluster: Cluster, ordering: Ordering, members: int) -> Iterator[Waiting]:
    """Everything that the ordering of a cluster holds back here."""
    if isinstance(ordering, Matrix):
        here = cluster.sites[ordering.me]
        for sender, by_number in enumerate(ordering.early):
            for early in by_number.values():
                slots = ordering.waited_for(sender, early)
                late = tuple(cluster.sites[slot] % members for slot in slots if slot < len(cluster.sites))
                because = f"it was sent after messages to site {here} that have not arrived in cluster {cluster.number}"
                yield Waiting(shown(early.item.letter), late, because)
        return
    for sender, numbered in enumerate(ordering.early):
        for arrival in numbered.values():
            late = (cluster.sites[sender] % members,)
            yield Waiting(shown(arrival.letter), late, f"earlier packets of the link in cluster {cluster.number} are missing")


def shown(letter: Letter) -> Run:
    """A letter that is held back, as a run; a note counts as one message."""
    return letter.run if letter.run.count else Run(letter.run.origin, 0, 1)
