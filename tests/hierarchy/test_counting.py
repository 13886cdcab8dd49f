"""The counting model follows the same routes as real sites, and its loads are those of the formulas."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from quire.model.errors import BadInput
from quire.model.packets import header_bytes
from quire.protocols.clusters.packets import Down, Tagged, Up
from quire.protocols.clusters.site import Site
from quire.protocols.hierarchy.costs import CROSSING, from_above, from_below, header_entries, top_load
from quire.protocols.hierarchy.description import build, tree_of
from quire.simulation.counting import Shape, _Counter, count_routes
from tests.hierarchy.trees import GOLDEN, Net, factory


@pytest.mark.parametrize("inside", ["matrix", "coordinator"])
@pytest.mark.parametrize(("n", "b", "d"), [(16, 4, 5), (27, 3, 4), (30, 3, 4), (23, 2, 3), (5, 4, 9), (1, 2, 3)])
def test_counts_are_those_of_real_sites_message_by_message(n: int, b: int, d: int, inside: str) -> None:
    random = Random(n)
    shape = Shape(n, b, d)
    tree = tree_of(build(n, b, d), inside)
    for _ in range(60):
        source, dest = random.randrange(n), random.randrange(n)
        counter = _Counter(shape, inside)
        counter.follow(np.array([source]), np.array([dest]))
        net = Net(factory(tree, kind=Site), n)
        net.send(source, dest)
        hops = net.drain()
        arrivals = np.bincount([to for _, to, _ in hops], minlength=n) if hops else np.zeros(n, dtype=np.int64)
        assert counter.arrivals.tolist() == arrivals.tolist()
        assert counter.entries[0][0] == sum(packet.entries for _, _, packet in hops if isinstance(packet, Tagged))
        counted = counter.bytes[0][0]
        measured = sum(header_bytes(packet) for _, _, packet in hops)
        assert counted - 3 * len(hops) <= measured <= counted, "but for destinations that need not be named"
        assert all(isinstance(packet, Tagged if inside == "matrix" else Up | Down) for _, _, packet in hops)


@pytest.mark.parametrize(("b", "power"), [(2, 2), (3, 2), (4, 2), (2, 3), (3, 3), (2, 5), (4, 5)])
def test_loads_are_within_two_percent_of_the_formulas(b: int, power: int) -> None:
    counted = count_routes(b**power, b, messages=400_000, inside="coordinator")
    layers = counted.layers
    for layer in range(1, layers + 1):
        assert counted.from_below[layer - 1] == pytest.approx(float(from_below(b, layers, layer)), rel=0.02)
        assert counted.from_above[layer - 1] == pytest.approx(float(from_above(b, layers, layer)), rel=0.02, abs=1e-12)


@pytest.mark.parametrize("case", GOLDEN["hot_site"], ids=lambda case: f"{case['n']}-{case['b']}-{case['d']}")
def test_the_hottest_site_gets_what_was_published(case: dict[str, Any]) -> None:
    counted = count_routes(case["n"], case["b"], case["d"], inside="coordinator")
    assert counted.layers == case["l"]
    assert counted.hottest == pytest.approx(case["hottest_net_arrivals"], abs=0.02)


def test_every_site_of_sixteen_gets_what_was_published() -> None:
    counted = count_routes(16, 4, inside="coordinator")
    for site, share in GOLDEN["physical_16_4"]["net_arrivals"].items():
        assert counted.arrivals[int(site)] / counted.messages == pytest.approx(share, abs=0.02)


def test_coordinators_that_are_members_serve_what_was_published() -> None:
    tree = tree_of(build(16, 4, 5), "coordinator")
    net = Net(factory(tree, kind=Site), 16)
    random = Random(5)
    messages = 8000
    for _ in range(messages):
        net.send(random.randrange(16), random.randrange(16))
        net.drain()
    for (layer, index), share in GOLDEN["physical_16_4"]["served"]:
        number = 4 * layer + index
        coordinator = net.site(tree.clusters[number].coordinator)
        served = coordinator.orderings[number].serial  # type: ignore[union-attr]
        assert served / messages == pytest.approx(share, abs=0.02)


def test_figure_7_crosses_between_two_and_three_parts() -> None:
    gap = {}
    for b in (2, 3):
        counted = count_routes(b * 60, b, 61, messages=300_000, inside="coordinator")
        assert counted.layers == 2
        gap[b] = counted.from_below[1] - counted.from_below[0] - counted.from_above[0]
        assert counted.from_below[1] == pytest.approx(float(top_load(b, 2)), rel=0.02)
    assert gap[2] < 0 < gap[3]
    assert 2 < CROSSING < 3


def test_a_million_sites_are_counted() -> None:
    counted = count_routes(1_000_000, 10, messages=20_000)
    assert counted.layers == 6
    assert counted.hops_max == 11
    assert counted.entries_max == header_entries(1_000_000, 10, 11) == 1100
    assert counted.arrivals.sum() <= 11 * 20_000
    assert counted.bytes_mean > counted.entries_mean > 0


def test_what_cannot_be_counted_is_refused() -> None:
    with pytest.raises(BadInput, match="1 to 1000000 sites"):
        count_routes(1_000_001, 10)
    with pytest.raises(BadInput, match="at least one message"):
        count_routes(10, 2, messages=0)
