"""Causal order for messages to any sites, maintained cluster by cluster in a hierarchy.

The sites are divided into clusters, each with an agent; the agents into clusters again; and so on to one cluster at the
top. Inside a cluster, messages are ordered by a matrix or by a coordinator, as if there were nothing else. A message to a
site elsewhere goes to its cluster's agent, from agent to agent, and down again, along the one path there is. Wherever it
enters a cluster it is ordered there anew, and what the last cluster needed for that is left behind. A site passes letters
on in the order in which its clusters delivered them, its own messages among them, so that what was before another in one
cluster is before it in the next. So each header has the size of a cluster, not of the group.

Source: L.-H. Yen, K.-H. Chi and T.-L. Huang, "A Scalable Scheme for Causal Message Ordering", sections II and III.
Assumes: links that lose nothing; they may repeat and reorder. No site crashes. Membership changes one step at a time. In the
views of a group that changes (docs/decisions/hierarchies.md) sites crash, join, leave and move; each view is a new hierarchy.
Guarantees: integrity, agreement, causal order (and with it sender order), whomever messages are addressed to.
Departures, by the names of docs/papers.md: the paper's relay keeps one queue for each pair of clusters. That is not enough
(Y1): a message that waits in such a queue is overtaken by one that the same site sends after delivering a later message.
Here the delivery by a cluster and all that follows from it at the site are one step. The paper proves chains through one
other site; the general case follows by induction along the chain, given that rule (Y5). The number of layers is counted in
whole numbers (Y4). Changes of membership, which the paper leaves out (Y6), are in `membership`; `costs` has the figures
(Y2, Y3, Y7, Y8). A multicast is one letter until paths part, and counts as sent to all at once, so that an answer to one
copy overtakes no other.
Cost: at most 2l-1 hops for l layers. Header: with dense matrices 2s²+(2l-3)b² counts over all hops of the worst message,
in clusters of s sites at the bottom and b above; with coordinators two numbers a hop. A multicast to all takes n-1
copies with matrices.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Literal

import msgspec

from quire.protocols.clusters.errors import InvalidHierarchy
from quire.protocols.clusters.tree import Tree
from quire.protocols.hierarchy.description import build, grouped, read_toml, tree_of
from quire.protocols.hierarchy.membership import DynamicSite


class HierarchyOptions(msgspec.Struct, frozen=True, kw_only=True):
    branching: Annotated[int, msgspec.Meta(ge=2, le=1 << 20)] = 4
    """Into how many parts the sites are divided on each layer."""
    leaf: Annotated[int, msgspec.Meta(ge=0, le=1 << 20)] = 0
    """How many sites a cluster at the bottom may have; 0 is one more than `branching`."""
    inside: Literal["matrix", "coordinator", "mixed"] = "matrix"
    """How messages are ordered inside clusters; mixed takes turns."""
    encoding: Literal["dense", "changes", "adaptive"] = "adaptive"
    """How matrices are written: whole, what changed, or whichever is the smallest."""
    held: Annotated[int, msgspec.Meta(ge=1, le=1 << 30)] = 1 << 20
    """How many messages may be held back at a site at once."""
    description: str = ""
    """The hierarchy as TOML text; without it one is generated from `branching` and `leaf`."""


@lru_cache(maxsize=16)
def hierarchy_of(members: int, options: HierarchyOptions) -> Tree:
    """The tree that the options describe. Raises InvalidHierarchy."""
    if not options.description:
        leaf = options.leaf or options.branching + 1
        return tree_of(build(members, options.branching, leaf), options.inside)
    tree = tree_of(read_toml(options.description), options.inside)
    for site in (site for cluster in tree.clusters if cluster.layer == 1 for site in cluster.sites):
        if site >= members:
            raise InvalidHierarchy(f"site {site} is described, but the group has {members} members, numbered from 0")
    return tree


@lru_cache(maxsize=16)
def tree_by_clusters(clusters: tuple[str, ...], inside: str) -> Tree:
    """The tree in which each site is in the named cluster, and the first site of each cluster is its agent."""
    return tree_of(grouped(clusters), inside)


class Hierarchy(DynamicSite):
    """One site of a hierarchy. If the sites name their `clusters`, the tree follows from the names."""

    clustered = True

    def __init__(self, me: int, members: int, options: HierarchyOptions, clusters: tuple[str, ...] = ()) -> None:
        tree = tree_by_clusters(clusters, options.inside) if clusters else hierarchy_of(members, options)
        super().__init__(me, members, tree, options.encoding, options.held)
        self.options = options
