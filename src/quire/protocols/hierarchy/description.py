"""Descriptions of hierarchies, as plain data, as TOML text, or generated; checked before they are used.

A description lists the layers from the bottom up; each has its clusters and, but for the top one, the agent of each:

    [[layers]]
    clusters = [[0, 1, 2], [3, 4]]
    agents = [0, 3]
    inside = ["matrix", "coordinator"]

    [[layers]]
    clusters = [[0, 3]]

`inside` may be left out; what the group's option says then holds. The generator divides n sites into b parts, those again,
and so on, until no part has more than d sites; all parts are divided equally often, and differ by one site at most.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence

import msgspec

from quire.protocols.clusters.errors import DuplicateSite, InvalidHierarchy, NotInCluster
from quire.protocols.clusters.tree import COORDINATOR, MATRIX, NO_AGENT, Cluster, Tree

MIXED = "mixed"
PART = "/"
"""Between the name of a cluster and that of one inside it."""


class Layer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The clusters of one layer, and their agents in the same order."""

    clusters: tuple[tuple[int, ...], ...]
    agents: tuple[int, ...] = ()
    inside: tuple[str, ...] = ()


class Description(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    layers: tuple[Layer, ...]


def read_toml(text: str) -> Description:
    """A description from TOML. Raises InvalidHierarchy if it is not one; `tree_of` checks its contents."""
    try:
        return msgspec.convert(tomllib.loads(text), Description)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, RecursionError) as error:
        raise InvalidHierarchy(f"the description cannot be read: {error}") from error


def tree_of(description: Description, inside: str = MATRIX) -> Tree:
    """The tree described. Raises InvalidHierarchy with one sentence. `inside` applies to clusters that do not say."""
    layers = description.layers
    if not layers:
        raise InvalidHierarchy("a hierarchy needs at least one layer")
    clusters: list[Cluster] = []
    expected: set[int] | None = None
    for level, layer in enumerate(layers, 1):
        top = level == len(layers)
        sites = _check_layer(layer, level, expected, top=top)
        for index, members in enumerate(layer.clusters):
            number = len(clusters)
            agent = NO_AGENT if top else layer.agents[index]
            if not top and agent not in members:
                raise NotInCluster(agent, number)
            chosen = layer.inside[index] if layer.inside else _chosen(inside, number)
            if chosen not in (MATRIX, COORDINATOR):
                raise InvalidHierarchy(f"cluster {number} is ordered by {chosen!r}; choose {MATRIX} or {COORDINATOR}")
            clusters.append(Cluster(number, level, members, agent, chosen))
        if not top and not 1 < len(layer.clusters) < len(sites):
            raise InvalidHierarchy(f"layer {level} must have more than one cluster, and fewer than its {len(sites)} sites")
        expected = set(layer.agents)
    return Tree(tuple(clusters))


def _check_layer(layer: Layer, level: int, expected: set[int] | None, *, top: bool) -> set[int]:
    """The sites of one layer, which are the agents of the layer below."""
    if top and len(layer.clusters) != 1:
        raise InvalidHierarchy(f"the top layer must be one cluster, not {len(layer.clusters)}")
    if len(layer.agents) != (0 if top else len(layer.clusters)):
        raise InvalidHierarchy(f"layer {level} needs {'no agent' if top else 'one agent for each cluster'}")
    if layer.inside and len(layer.inside) != len(layer.clusters):
        raise InvalidHierarchy(f"layer {level} must say of each cluster how it is ordered, or of none")
    sites: set[int] = set()
    for members in layer.clusters:
        if not members:
            raise InvalidHierarchy(f"a cluster on layer {level} is empty; leave it out or give it a site")
        for site in members:
            if site < 0:
                raise InvalidHierarchy(f"sites are numbered from 0; there is no {site}")
            if site in sites:
                raise DuplicateSite(site, level)
            sites.add(site)
    if expected is not None and sites != expected:
        raise InvalidHierarchy(f"the sites of layer {level} must be the agents of layer {level - 1}, no more and no fewer")
    return sites


def _chosen(inside: str, number: int) -> str:
    """The order used in a cluster that does not choose one; `mixed` alternates."""
    return (MATRIX, COORDINATOR)[number % 2] if inside == MIXED else inside


def layer_count(n: int, b: int, d: int) -> int:
    """How many layers n sites need if clusters are divided by b until none has more than d sites. In integers only: a
    logarithm would be wrong at exact powers."""
    if not 1 < b < d:
        raise InvalidHierarchy(f"branching must be more than 1 and less than the largest cluster, not {b} and {d}")
    if n < 1:
        raise InvalidHierarchy(f"a hierarchy needs at least one site, not {n}")
    layers, room = 1, d
    while n > room:
        layers += 1
        room *= b
    return layers


def split(n: int, b: int) -> list[int]:
    """n divided into b parts whose sizes differ by at most one, larger ones first."""
    each, more = divmod(n, b)
    return [each + 1] * more + [each] * (b - more)


def build(n: int, b: int, d: int) -> Description:
    """n sites, numbered from 0, in as many layers as necessary; the first site of a cluster is its agent."""
    layers = layer_count(n, b, d)
    parts = [n]
    for _ in range(layers - 1):
        parts = [size for part in parts for size in split(part, b)]
    clusters: list[tuple[int, ...]] = []
    start = 0
    for size in parts:
        clusters.append(tuple(range(start, start + size)))
        start += size
    found: list[Layer] = []
    while len(clusters) > 1:
        agents = tuple(members[0] for members in clusters)
        found.append(Layer(tuple(clusters), agents))
        clusters = [agents[start : start + b] for start in range(0, len(agents), b)]
    return Description((*found, Layer(tuple(clusters))))


def grouped(names: Sequence[str]) -> Description:
    """Sites, numbered from 0, in clusters of these names; the first site of a cluster is its agent. `eu/berlin` is a cluster
    inside `eu`, next to other clusters there, and so on. A layer that would connect nothing is left out."""
    paths = [tuple(filter(None, name.split(PART))) for name in names]
    depth = max(map(len, paths))
    found: list[Layer] = []
    sites: Sequence[int] = range(len(names))
    for length in range(depth, -1, -1):
        clusters: dict[tuple[str, ...], list[int]] = {}
        for site in sites:
            # Whoever is in a cluster but in none inside it stands beside these, in one without a name.
            clusters.setdefault((paths[site] + ("",) * depth)[:length], []).append(site)
        if len(clusters) == 1:
            break
        if len(clusters) < len(sites):
            sites = [members[0] for members in clusters.values()]
            found.append(Layer(tuple(map(tuple, clusters.values())), tuple(sites)))
    return Description((*found, Layer((tuple(sites),))))


def describe(tree: Tree) -> Description:
    """The description of a tree."""
    layers: list[Layer] = []
    for level in range(1, tree.layers + 1):
        of_layer: Sequence[Cluster] = [
            cluster
            for cluster in tree.clusters
            if cluster.layer == level and any((cluster.number, slot) not in tree.gone for slot in range(len(cluster.sites)))
        ]
        agents = tuple(cluster.agent for cluster in of_layer if cluster.agent != NO_AGENT)
        inside = tuple(cluster.inside for cluster in of_layer)
        members = tuple(
            tuple(site for slot, site in enumerate(cluster.sites) if (cluster.number, slot) not in tree.gone)
            for cluster in of_layer
        )
        layers.append(Layer(members, agents, inside))
    return Description(tuple(layers))
