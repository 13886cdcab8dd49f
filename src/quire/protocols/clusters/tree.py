"""A tree of clusters, and the one path through it between any two sites.

Layer 1 holds every site; each cluster below the top has an agent, a member of it; the agents of a layer are the sites of
the next; the top layer is one cluster. Two sites share at most one cluster, and a path never comes back to a cluster that
it left: sites and clusters form a tree. So a site that relays a message needs only its destination, and hop by hop it takes
the same path as if it had been planned at the start.

A site is a number, and so is a cluster. The index of a site in its cluster is its *slot*; slots are never given twice, so
that members who do not know of the latest one yet still mean the same by the others.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import msgspec

from quire.protocols.clusters.errors import UnknownSite

NO_AGENT = -1
MATRIX = "matrix"
COORDINATOR = "coordinator"


class Cluster(msgspec.Struct, frozen=True, array_like=True):
    """`sites` are by slot. `inside` is the order used in it; its coordinator is the agent or, at the top, the first member."""

    number: int
    layer: int
    sites: tuple[int, ...]
    agent: int
    inside: str = MATRIX

    @property
    def coordinator(self) -> int:
        return self.sites[0] if self.agent == NO_AGENT else self.agent


class Tree(msgspec.Struct, frozen=True, array_like=True):
    """Clusters from the bottom up. `gone`: pairs of cluster and slot that no site has any more. `spent`: the sites that
    left."""

    clusters: tuple[Cluster, ...]
    gone: frozenset[tuple[int, int]] = frozenset()
    spent: frozenset[int] = frozenset()

    @property
    def layers(self) -> int:
        return max(cluster.layer for cluster in self.clusters)


class Hop(NamedTuple):
    source: int
    dest: int
    cluster: int


class Step(NamedTuple):
    """A site as seen on one layer: the cluster, and the member of it that represents the site."""

    cluster: int
    member: int


class Routes(msgspec.Struct, frozen=True, eq=False):
    """The next hops in one tree. Equal trees share one of these, so it is compared by identity."""

    tree: Tree
    clusters: dict[int, Cluster]
    homes: dict[int, tuple[int, ...]]
    """Per site, its clusters from layer 1 up."""
    slots: dict[int, dict[int, int]]
    """Per cluster, the slot of each of its present members."""
    everyone: tuple[int, ...]
    climbs: dict[int, tuple[Step, ...]]

    def climb(self, site: int) -> tuple[Step, ...]:
        """What represents the site on each layer, from 1 to the top. Raises UnknownSite."""
        steps = self.climbs.get(site)
        if steps is None:
            if site not in self.homes:
                raise UnknownSite(site)
            found, member = [], site
            for layer in range(self.tree.layers):
                cluster = self.homes[member][layer]
                found.append(Step(cluster, member))
                member = self.clusters[cluster].agent
            steps = self.climbs[site] = tuple(found)
        return steps

    def next_hop(self, here: int, dest: int) -> Step:
        """The cluster in which `here` passes on a message for `dest`, and the member of it that gets it.

        A site's message to itself stays there, in its cluster on layer 1.
        """
        theirs = self.climb(dest)
        for layer, number in enumerate(self.homes[here]):
            if theirs[layer].cluster == number:
                return theirs[layer]
            agent = self.clusters[number].agent
            if agent != here:
                return Step(number, agent)
        raise UnknownSite(dest)

    def exit(self, cluster: Cluster, dest: int) -> int:
        """The member of the cluster that is nearest to the destination."""
        step = self.climb(dest)[cluster.layer - 1]
        return step.member if step.cluster == cluster.number else cluster.agent

    def route(self, source: int, dest: int) -> list[Hop]:
        """Every hop from one site to another, in order."""
        hops: list[Hop] = []
        here = source
        while here != dest or not hops:
            step = self.next_hop(here, dest)
            hops.append(Hop(here, step.member, step.cluster))
            here = step.member
        return hops

    def neighbours(self, site: int) -> frozenset[int]:
        """The sites that share a cluster with this one: no other site sends packets to it."""
        return frozenset(other for number in self.homes.get(site, ()) for other in self.slots[number]) - {site}

    def role(self, site: int) -> str:
        """The role of the site, by the highest layer on which others depend on it."""
        homes = self.homes.get(site, ())
        if not homes:
            return "outside"
        top = self.clusters[homes[-1]]
        if top.inside == COORDINATOR and top.agent == NO_AGENT and top.coordinator == site:
            return "top coordinator" if self.tree.layers > 1 else "coordinator"
        if self.tree.layers == 1:
            return "member"
        return "client" if len(homes) == 1 else f"agent of layer {len(homes) - 1}"

    def touches(self, source: int, dest: int, site: int) -> bool:
        """Whether a message between these two goes through the site, as a hop or as the coordinator of a cluster."""
        return any(
            site in hop[:2]
            or (self.clusters[hop.cluster].inside == COORDINATOR and self.clusters[hop.cluster].coordinator == site)
            for hop in self.route(source, dest)
        )


@lru_cache(maxsize=128)
def routes_of(tree: Tree) -> Routes:
    """The routes of a tree, computed once."""
    homes: dict[int, tuple[int, ...]] = {}
    slots: dict[int, dict[int, int]] = {}
    for cluster in sorted(tree.clusters, key=lambda one: one.layer):
        present = {site: slot for slot, site in enumerate(cluster.sites) if (cluster.number, slot) not in tree.gone}
        slots[cluster.number] = present
        for site in present:
            homes[site] = (*homes.get(site, ()), cluster.number)
    clusters = {cluster.number: cluster for cluster in tree.clusters}
    return Routes(tree, clusters, homes, slots, tuple(sorted(homes)), {})
