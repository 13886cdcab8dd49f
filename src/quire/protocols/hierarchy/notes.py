"""The notes by which sites announce membership changes, and how a change modifies the tree.

A *note* is sent as a letter, on the ordinary path and in causal order with all messages. A *control* packet takes the same path
from site to site, but bypasses the ordering of the clusters: it carries no causality, so nothing waits for it.

All sites apply the same changes in the same order, so a note has only what is new. A site that comes back, or goes to another
cluster, gets a new number, its old one plus the number of members, so that no packet from its earlier self is mistaken for one
of its present self.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from quire.model.packets import Packet
from quire.protocols.clusters.tree import COORDINATOR, MATRIX, NO_AGENT, Cluster, Routes, Tree, routes_of

YOU = -1
"""In the place of a site whose number its peer may not know."""

FLUSHED, SWITCHED, ASK, ADMIT, ATTACH = range(5)


class Control(Packet, frozen=True, tag=4):
    """A note from one site to another: FLUSHED, SWITCHED, ASK, ATTACH or ADMIT; `number` says which note it answers."""

    name: ClassVar[str] = "CONTROL"

    to: int
    source: int
    what: int
    number: int
    body: bytes


class Stop(msgspec.Struct, frozen=True, tag=1, array_like=True):
    """Send nothing more through this site, and answer."""

    site: int
    number: int


class Answer(msgspec.Struct, frozen=True, tag=2, array_like=True):
    """Nothing more will be sent through you."""

    number: int


class Flush(msgspec.Struct, frozen=True, tag=3, array_like=True):
    """Acknowledge this, and with it everything before it."""

    number: int


class Joined(msgspec.Struct, frozen=True, tag=4, array_like=True):
    """The site is now in the cluster; `earlier` is its previous number, or YOU. In a cluster of agents, the site comes with
    a cluster of its own on layer 1, in which it is alone."""

    number: int
    site: int
    cluster: int
    earlier: int


class Left(msgspec.Struct, frozen=True, tag=5, array_like=True):
    number: int
    site: int


class Replaced(msgspec.Struct, frozen=True, tag=6, array_like=True):
    """The new site is now the agent wherever the old one was."""

    number: int
    old: int
    new: int


class Resume(msgspec.Struct, frozen=True, tag=7, array_like=True):
    """All sites know the new paths: send again."""

    site: int


Change = Joined | Left | Replaced
Note = Stop | Answer | Flush | Joined | Left | Replaced | Resume

write_note = msgspec.msgpack.Encoder().encode
_note_reader: msgspec.msgpack.Decoder[Note] = msgspec.msgpack.Decoder(Note)
_tree_reader = msgspec.msgpack.Decoder(Tree)


def read_note(body: bytes) -> Note | None:
    """The note in these bytes, or None if there is none."""
    try:
        return _note_reader.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return None


def read_tree(body: bytes) -> Tree | None:
    """The tree in these bytes, or None if there is none."""
    try:
        return _tree_reader.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return None


def is_possible(tree: Tree, change: Change) -> bool:
    """Whether this change can be made to this tree."""
    routes = routes_of(tree)
    if isinstance(change, Joined):
        cluster = routes.clusters.get(change.cluster)
        free = change.site >= 0 and change.site not in routes.homes and change.site not in tree.spent
        return free and cluster is not None and cluster.layer <= 2 and bool(routes.slots[cluster.number])
    if isinstance(change, Left):
        return may_leave(tree, change.site)
    homes = routes.homes
    return (
        change.old in homes
        and not is_client(tree, change.old)
        and is_client(tree, change.new)
        and homes[change.old][0] == homes[change.new][0]
    )


def is_client(tree: Tree, site: int) -> bool:
    """Whether the site is in one cluster only, and not its agent."""
    routes = routes_of(tree)
    homes = routes.homes.get(site, ())
    if len(homes) != 1:
        return False
    cluster = routes.clusters[homes[0]]
    return site != cluster.agent and not (cluster.agent == NO_AGENT and site == cluster.coordinator)


def may_leave(tree: Tree, site: int) -> bool:
    """Whether the site is a client, or the agent of a cluster in which it is alone and whose removal leaves a hierarchy:
    more than one cluster on layer 1, and fewer clusters on layer 2 than sites in it."""
    if is_client(tree, site):
        return True
    routes = routes_of(tree)
    homes = routes.homes.get(site, ())
    if len(homes) != 2 or len(routes.slots[homes[0]]) != 1 or routes.clusters[homes[1]].agent == site:
        return False
    upper = routes.clusters[homes[1]]
    if upper.agent == NO_AGENT and upper.inside == COORDINATOR and upper.coordinator == site:
        return False
    counts = [
        sum(cluster.layer == layer and bool(routes.slots[cluster.number]) for cluster in tree.clusters) for layer in (1, 2)
    ]
    return counts[0] - 1 > counts[1]


def sponsors(routes: Routes, site: int, layer: int) -> Cluster | None:
    """The cluster on this layer to which the site may admit others, or None. That is the agent's task; at the top, where
    there is no agent, the first member's or, among agents, that of any member whose letters reach all others directly."""
    homes = routes.homes.get(site, ())
    if len(homes) < layer:
        return None
    cluster = routes.clusters[homes[layer - 1]]
    if cluster.agent == NO_AGENT:
        anybody = layer > 1 and cluster.inside == MATRIX
        return cluster if anybody or cluster.coordinator == site else None
    return cluster if cluster.agent == site else None


def apply(tree: Tree, change: Change) -> Tree:
    """The tree after a change, which must be possible."""
    if isinstance(change, Replaced):
        return _replace(tree, change.old, change.new)
    going = change.site if isinstance(change, Left) else change.earlier
    routes = routes_of(tree)
    gone = {(number, routes.slots[number][going]) for number in routes.homes.get(going, ())}
    clusters = tree.clusters
    if isinstance(change, Joined):
        clusters = tuple(_with(cluster, change.site) if cluster.number == change.cluster else cluster for cluster in clusters)
        entered = routes.clusters[change.cluster]
        if entered.layer == 2:
            number = max(routes.clusters) + 1
            clusters = (*clusters, Cluster(number, 1, (change.site,), change.site, entered.inside))
    return Tree(clusters, tree.gone | gone, tree.spent | {going} if gone else tree.spent)


def _with(cluster: Cluster, site: int) -> Cluster:
    return msgspec.structs.replace(cluster, sites=(*cluster.sites, site))


def _replace(tree: Tree, old: int, new: int) -> Tree:
    """Where the old agent was the coordinator, nothing is in transit, and the cluster starts anew under another number.
    Other clusters continue, with the new agent in a new slot."""
    number = max(cluster.number for cluster in tree.clusters)
    slots = routes_of(tree).slots
    clusters: list[Cluster] = []
    gone = set(tree.gone)
    for cluster in tree.clusters:
        if old not in slots[cluster.number]:
            clusters.append(cluster)
            continue
        restarts = cluster.inside == COORDINATOR and cluster.coordinator == old
        changed = msgspec.structs.replace(cluster, agent=new if cluster.agent == old else cluster.agent)
        if cluster.layer > 1:
            changed = _with(changed, new)
            gone.add((cluster.number, slots[cluster.number][old]))
        if restarts:
            number += 1
            present = tuple(site for slot, site in enumerate(changed.sites) if (cluster.number, slot) not in gone)
            changed = msgspec.structs.replace(changed, number=number, sites=present)
        clusters.append(changed)
    return Tree(tuple(clusters), frozenset(gone), tree.spent)
