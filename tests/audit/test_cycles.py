"""Strongly connected components, and a shortest cycle, whatever order of the nodes the search is given."""

from __future__ import annotations

import random
from itertools import pairwise, permutations

import numpy as np
import pytest

from quire.pipeline.auditing.cycles import find_knots


@pytest.mark.parametrize("ranks", list(permutations(range(3))))
def test_a_cycle_of_neighbours_is_found_in_any_order_of_the_nodes(ranks: tuple[int, ...]) -> None:
    edges = np.array([[0, 1], [1, 0], [1, 2]])

    found = find_knots(edges, 3, lambda: np.array(ranks))

    assert found.components == 1
    assert sorted(found.cycle) == [0, 1]
    assert found.knotted.tolist() == [True, True, False]


@pytest.mark.parametrize("seed", range(40))
def test_a_shortest_cycle_is_as_short_as_any(seed: int) -> None:
    rng = random.Random(seed)
    nodes = 6
    edges = np.array([rng.sample(range(nodes), 2) for _ in range(rng.randint(2, 12))])
    steps = {(one, other) for one, other in edges.tolist()}
    lengths = [
        size
        for size in range(2, nodes + 1)
        for path in permutations(range(nodes), size)
        if all(step in steps for step in pairwise((*path, path[0])))
    ]
    order = np.array(rng.sample(range(nodes), nodes))

    found = find_knots(edges, nodes, lambda: order)

    assert len(found.cycle) == (min(lengths) if lengths else 0)
    assert all(edges[one][1] == edges[other][0] for one, other in pairwise((*found.cycle, *found.cycle[:1])))
