"""Descriptions are checked, generated hierarchies have the right shape, and there is one path between any two sites."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from quire.model.errors import BadInput
from quire.protocols.clusters.errors import DuplicateSite, InvalidHierarchy, NotInCluster, UnknownSite
from quire.protocols.clusters.tree import Tree, routes_of
from quire.protocols.hierarchy.description import (
    Description,
    Layer,
    build,
    describe,
    grouped,
    layer_count,
    read_toml,
    split,
    tree_of,
)
from quire.protocols.registry import create
from tests.hierarchy.trees import GOLDEN, named_tree, random_tree

TEXT = """
[[layers]]
clusters = [[0, 1, 2], [3, 4]]
agents = [0, 3]
inside = ["matrix", "coordinator"]

[[layers]]
clusters = [[0, 3]]
"""


def layered(*layers: tuple[list[list[int]], list[int]]) -> Description:
    return Description(tuple(Layer(tuple(map(tuple, clusters)), tuple(agents)) for clusters, agents in layers))


def test_a_description_is_read_from_toml() -> None:
    tree = tree_of(read_toml(TEXT))
    assert [(cluster.sites, cluster.agent, cluster.inside) for cluster in tree.clusters] == [
        ((0, 1, 2), 0, "matrix"),
        ((3, 4), 3, "coordinator"),
        ((0, 3), -1, "matrix"),
    ]
    assert tree_of(describe(tree)) == tree


@pytest.mark.parametrize("text", ["layers = 3", "[[layers]]\nclusters = [[0]]\ncolour = 1", "[[layers", "", "layers = []"])
def test_text_that_is_no_description_is_refused(text: str) -> None:
    with pytest.raises(InvalidHierarchy):
        tree_of(read_toml(text))


REFUSED: list[tuple[Description, type[BadInput], str]] = [
    (layered(([[0], []], [0, 1]), ([[0]], [])), InvalidHierarchy, "a cluster on layer 1 is empty"),
    (layered(([[0, 1], [1, 2]], [0, 1]), ([[0, 1]], [])), DuplicateSite, "site 1 appears twice on layer 1"),
    (layered(([[0, 1], [2]], [0, 1]), ([[0, 1]], [])), NotInCluster, "site 1 is not a member of cluster 1"),
    (layered(([[0, 1], [2]], [0, 2]), ([[0, 1]], [])), InvalidHierarchy, "must be the agents of layer 1"),
    (layered(([[0, 1, 2]], [0]), ([[0]], [])), InvalidHierarchy, "must have more than one cluster"),
    (layered(([[0], [1]], [0, 1]), ([[0, 1]], [])), InvalidHierarchy, "fewer than its 2 sites"),
    (layered(([[0, 1], [2, 3]], [])), InvalidHierarchy, "the top layer must be one cluster"),
    (layered(([[0, 1], [2]], [0]), ([[0, 2]], [])), InvalidHierarchy, "one agent for each cluster"),
    (layered(([[0, 1]], [0])), InvalidHierarchy, "needs no agent"),
    (layered(([[-1, 1]], [])), InvalidHierarchy, "sites are numbered from 0"),
]


@pytest.mark.parametrize(("description", "error", "sentence"), REFUSED)
def test_what_is_no_hierarchy_is_refused_in_one_sentence(
    description: Description, error: type[BadInput], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        tree_of(description)


def test_a_description_must_name_members_of_the_group_and_how_clusters_are_ordered() -> None:
    with pytest.raises(InvalidHierarchy, match="site 3 is described, but the group has 3 members"):
        create("hierarchy", 0, 3, {"description": TEXT})
    with pytest.raises(InvalidHierarchy, match="'chance'; choose matrix or coordinator"):
        tree_of(Description((Layer(((0, 1),), (), ("chance",)),)))
    assert create("hierarchy", 4, 5, {"description": TEXT}).me == 4


@pytest.mark.parametrize("case", GOLDEN["layers"])
def test_the_number_of_layers_is_as_specified(case: dict[str, int]) -> None:
    n, b, d = case["n"], case["b"], case["d"]
    assert layer_count(n, b, d) == case["l"]
    if n > 1:
        assert tree_of(build(n, b, d)).layers == case["l"]


@pytest.mark.parametrize(("b", "d"), [(1, 3), (3, 3), (4, 2)])
def test_a_generator_needs_parts_smaller_than_the_largest_cluster(b: int, d: int) -> None:
    with pytest.raises(InvalidHierarchy):
        build(10, b, d)


def test_generated_clusters_differ_by_one_site_and_hold_no_more_than_asked() -> None:
    for b in (2, 3, 4):
        for n in range(1, 200):
            tree = tree_of(build(n, b, b + 1))
            sizes = [len(cluster.sites) for cluster in tree.clusters if cluster.layer == 1]
            assert sum(sizes) == n
            assert max(sizes) - min(sizes) <= 1
            assert max(sizes) <= b + 1
            assert all(cluster.agent == cluster.sites[0] for cluster in tree.clusters if cluster.agent >= 0)
    assert split(10, 4) == [3, 3, 2, 2]


@pytest.mark.parametrize("case", GOLDEN["mrp"]["routes"], ids=lambda case: f"{case['src']}-{case['dst']}")
def test_a_route_is_as_specified(case: dict[str, Any]) -> None:
    tree, names = named_tree(GOLDEN["mrp"]["hierarchy"])
    routes = routes_of(tree)
    hops = [
        [hop.source, hop.dest, routes.clusters[hop.cluster].layer]
        for hop in routes.route(names[case["src"]], names[case["dst"]])
    ]
    assert hops == case["hops"]


def planned(tree: Tree, source: int, dest: int, layer: int = 1) -> list[tuple[int, int, int]]:
    """A route by the recursion of the paper, from end to end."""
    at = {site: c for c in tree.clusters if c.layer == layer for site in c.sites}
    ours, theirs = at[source], at[dest]
    if ours is theirs:
        return [(source, dest, ours.number)]
    first = [(source, ours.agent, ours.number)] if source != ours.agent else []
    last = [(theirs.agent, dest, theirs.number)] if dest != theirs.agent else []
    return first + planned(tree, ours.agent, theirs.agent, layer + 1) + last


def test_in_any_hierarchy_there_is_one_simple_path_between_two_sites_and_relaying_finds_it() -> None:
    random = Random(1)
    depths = set()
    for _ in range(300):
        tree = random_tree(random, random.randint(1, 9))
        depths.add(tree.layers)
        routes = routes_of(tree)
        sites = routes.everyone
        assert sum(len(cluster.sites) for cluster in tree.clusters) == len(sites) + len(tree.clusters) - 1, "it is a tree"
        for one in sites:
            for other in sites:
                hops = routes.route(one, other)
                assert hops == planned(tree, one, other)
                assert len(hops) <= 2 * tree.layers - 1
                stops = [one, *(hop.dest for hop in hops)]
                assert one == other or len(set(stops)) == len(stops)
                assert len({hop.cluster for hop in hops}) == len(hops)
                shared = set(routes.homes[one]) & set(routes.homes[other])
                assert one == other or len(shared) <= 1
    assert len(depths) >= 4


def test_an_unknown_site_has_no_route() -> None:
    with pytest.raises(UnknownSite, match="there is no site 9"):
        routes_of(tree_of(build(4, 2, 3))).next_hop(0, 9)


def clusters_by_name(*names: str) -> list[tuple[tuple[int, ...], int]]:
    return [(cluster.sites, cluster.agent) for cluster in tree_of(grouped(names)).clusters]


def test_the_first_of_a_cluster_by_name_is_its_agent() -> None:
    assert clusters_by_name("a", "b", "a", "b", "b") == [((0, 2), 0), ((1, 3, 4), 1), ((0, 1), -1)]
    assert clusters_by_name("a", "a", "a") == [((0, 1, 2), -1)]
    assert clusters_by_name("a", "b", "c") == [((0, 1, 2), -1)]
    assert clusters_by_name("", "b", "") == [((0, 2), 0), ((1,), 1), ((0, 1), -1)]


def test_clusters_inside_clusters_make_layers() -> None:
    assert clusters_by_name("eu/rome", "us", "eu/bonn", "eu/rome", "eu/bonn", "us", "eu") == [
        ((0, 3), 0), ((1, 5), 1), ((2, 4), 2), ((6,), 6),
        ((0, 2, 6), 0), ((1,), 1),
        ((0, 1), -1),
    ]  # fmt: skip
    assert clusters_by_name("eu/rome", "eu/rome", "eu/bonn") == [((0, 1), 0), ((2,), 2), ((0, 2), -1)]


def test_whatever_names_sites_have_they_are_in_one_hierarchy_with_the_others_of_their_name() -> None:
    random = Random(7)
    for _ in range(300):
        names = [random.choice(("", "a", "a/x", "a/x/p", "a/y", "b", "b/z")) for _ in range(random.randint(1, 9))]
        tree = tree_of(grouped(names))
        routes = routes_of(tree)
        assert routes.everyone == tuple(range(len(names)))
        for cluster in tree.clusters:
            assert cluster.agent in (-1, min(cluster.sites))
        for one, name in enumerate(names):
            for other in (other for other, same in enumerate(names) if same == name and other != one):
                assert routes.homes[one][0] == routes.homes[other][0]
                assert len(routes.route(one, other)) == 1
