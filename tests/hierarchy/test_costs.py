"""Headers counted on the wire and loads computed exactly are those of the specification, number by number."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import sqrt
from random import Random
from statistics import mean
from typing import Any

import pytest

from quire.protocols.clusters.encoding import size_bytes
from quire.protocols.clusters.packets import Tagged
from quire.protocols.clusters.site import Site
from quire.protocols.clusters.tree import Routes, routes_of
from quire.protocols.hierarchy.costs import CROSSING, from_above, from_below, header_entries, hops_max, top_load
from quire.protocols.hierarchy.description import build, layer_count, tree_of
from tests.hierarchy.trees import GOLDEN, Net, factory


def worst_route(routes: Routes) -> tuple[int, int, int]:
    """The pair of sites whose messages carry the most entries, of which every cluster's last site suffices, and the most
    hops that any pair has."""

    def entries(hops: list[Any]) -> int:
        return sum(len(routes.clusters[hop.cluster].sites) ** 2 for hop in hops)

    ends = [cluster.sites[-1] for cluster in routes.tree.clusters if cluster.layer == 1]
    if len(ends) > 64:
        # All parts are equal; the first and the last will do.
        ends = [ends[0], ends[-1], ends[len(ends) // 2 - 1], ends[len(ends) // 2]]
    found = {(one, other): routes.route(one, other) for one in ends for other in ends if one != other or len(ends) == 1}
    pair = max(found, key=lambda ends: entries(found[ends]))
    return (*pair, max(map(len, found.values())))


def entries_on_the_wire(n: int, b: int, d: int) -> tuple[int, int]:
    """The matrix entries that one message carries over all hops of the worst route, and the hops."""
    tree = tree_of(build(n, b, d))
    source, dest, hops_most = worst_route(routes_of(tree))
    if source == dest:
        source = next(site for site in range(n) if site != dest)
    net = Net(factory(tree, kind=Site), n)
    net.send(source, dest)
    hops = net.drain()
    assert len(net.logs[dest]) == 1
    return sum(packet.entries for _, _, packet in hops if isinstance(packet, Tagged)), hops_most


@pytest.mark.parametrize("case", GOLDEN["cost"], ids=lambda case: f"{case['n']}-{case['b']}-{case['d']}")
def test_entries_counted_on_the_wire_are_exactly_those_of_the_formula(case: dict[str, int]) -> None:
    n, b, d = case["n"], case["b"], case["d"]
    measured, hops = entries_on_the_wire(n, b, d)
    assert (layer_count(n, b, d), measured, header_entries(n, b, d)) == (case["l"], case["measured"], case["formula"])
    assert hops == case["max_hops"] <= hops_max(case["l"])
    assert case["flat"] == n * n
    if n % b ** (case["l"] - 1) == 0:
        assert measured == header_entries(n, b, d)
    else:
        assert measured <= header_entries(n, b, d)


@pytest.mark.parametrize("case", GOLDEN["cost_sqrt"], ids=lambda case: str(case["n"]))
def test_two_layers_of_square_shape_cost_exactly_three_entries_a_site(case: dict[str, int]) -> None:
    measured, _ = entries_on_the_wire(case["n"], case["b"], case["b"] + 1)
    assert measured == case["C"] == case["three_n"] == 3 * case["n"]


@pytest.mark.parametrize("b", [3, 4])
def test_each_factor_of_the_branching_adds_the_same(b: int) -> None:
    costs = [entries_on_the_wire(b**power, b, b + 1)[0] for power in (2, 3, 4, 5)]
    assert [later - earlier for earlier, later in pairwise(costs)] == [2 * b * b] * 3


@pytest.mark.parametrize("case", GOLDEN["load_layers"], ids=lambda case: f"b{case['b']}-l{case['l']}-k{case['k']}")
def test_the_loads_of_coordinators_are_exact(case: dict[str, Any]) -> None:
    b, layers, layer = case["b"], case["l"], case["k"]
    assert from_below(b, layers, layer) == Fraction(case["R_exact"])
    assert from_above(b, layers, layer) == Fraction(case["S_exact"])
    if layers == 2:
        assert round(float(from_below(b, layers, layer)), 6) == case["R_paper"], "with two layers the paper is right"


@pytest.mark.parametrize("case", GOLDEN["figure7"], ids=lambda case: str(case["b"]))
def test_figure_7(case: dict[str, Any]) -> None:
    b = case["b"]
    assert round(float(top_load(b, 2)), 6) == case["L"]
    assert round(float(from_below(b, 2, 1) + from_above(b, 2, 1)), 6) == case["RS"]


def test_the_curves_of_figure_7_cross_where_they_should() -> None:
    assert pytest.approx((2 * CROSSING - 1) / CROSSING**2) == (CROSSING - 1) / CROSSING
    assert pytest.approx(2.618, abs=0.0005) == CROSSING
    worst = {b: max(top_load(b, 2), from_below(b, 2, 1) + from_above(b, 2, 1)) for b in range(2, 21)}
    assert min(worst, key=lambda b: worst[b]) == 3
    assert worst[3] == Fraction(2, 3)


def test_the_best_real_branching_costs_less_than_three_entries_a_site() -> None:
    n = 10_000
    best = 2**0.25 * sqrt(n)
    assert 2 * (n / best) ** 2 + best**2 == pytest.approx(2 * sqrt(2) * n)


def packets_under_traffic(n: int, b: int, d: int, messages: int, encoding: str) -> list[Tagged]:
    """What is on the wire under uniform random traffic, of which some is always under way."""
    random = Random(n)
    net = Net(factory(tree_of(build(n, b, d)), kind=Site, encoding=encoding), n)
    steps = messages * 2
    for number in range(messages + steps):
        if random.randrange(messages + steps - number) < messages - sum(net.sent.values()):
            net.send(random.randrange(n), random.randrange(n))
        elif net.queue:
            net.queue.rotate(random.randrange(len(net.queue)))
            net.step()
    packets = [packet for _, _, packet in net.drain() if isinstance(packet, Tagged)]
    assert not any(site.held_back() for site in net.sites.values())
    return packets


def entries_on_a_hop(n: int, b: int, d: int, messages: int, encoding: str) -> float:
    return mean(packet.entries for packet in packets_under_traffic(n, b, d, messages, encoding))


LARGEST = {16: 5, 27: 4, 12: 12}
"""How many sites the clusters at the bottom may have, by the number of all."""


@pytest.mark.parametrize("case", GOLDEN["compression"], ids=lambda case: f"{case['n']}-{case['msgs']}")
def test_changed_entries_save_what_was_published(case: dict[str, Any]) -> None:
    """What changes depends on the traffic, so the published figures hold within a fifth; what a dense matrix has does not."""
    n, b, messages = case["n"], case["b"], case["msgs"]
    assert layer_count(n, b, LARGEST[n]) == case["l"]
    dense = entries_on_a_hop(n, b, LARGEST[n], messages, "dense")
    changes = entries_on_a_hop(n, b, LARGEST[n], messages, "changes")
    assert dense == case["full"]
    assert changes == pytest.approx(case["diff"], rel=0.2)
    assert 1 - changes / dense == pytest.approx(case["saving"], abs=0.05)


@pytest.mark.parametrize(("n", "b"), [(16, 4), (27, 3), (12, 2)])
def test_no_packet_is_larger_in_the_adaptive_encoding_than_with_changes_or_dense(n: int, b: int) -> None:
    """In numbers on the wire changes may cost more than they save, as in the flat group; adaptive never does."""
    means = {
        encoding: mean(size_bytes(packet.tag) for packet in packets_under_traffic(n, b, LARGEST[n], 400, encoding))
        for encoding in ("dense", "changes", "adaptive")
    }
    assert means["adaptive"] <= min(means["dense"], means["changes"])
    assert (means["changes"] > means["dense"]) == (n == 12)
