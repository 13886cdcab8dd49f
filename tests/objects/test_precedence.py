"""Pairs of messages that are ordered: counted as one by one, and significance never orders what causality does not."""

from __future__ import annotations

from itertools import permutations

import pytest

from quire.objects.workload import ObjectWorkloadOptions
from quire.protocols.objects.vectors import dense_key, precedes
from quire.simulation.config import NetworkConfig, SimulationConfig, WorkloadConfig
from quire.simulation.objects import SIMULATED_NS_MAX
from quire.simulation.precedence import HISTORY, Watched, count_pairs
from quire.simulation.runs import make_network
from quire.simulation.world import World


def configure(seed: int) -> SimulationConfig:
    network = NetworkConfig(delay="exponential:5", loss=0.1, duplicate=0.1, reorder=True)
    workload = WorkloadConfig(messages=4, interval_ms=5.0, spacing="poisson")
    return SimulationConfig(protocol="objects", members=4, network=network, workload=workload, seed=seed)


@pytest.mark.parametrize("vectors", ["exact", "dense"])
@pytest.mark.parametrize("seed", range(6))
def test_pairs_are_counted_as_one_by_one(seed: int, vectors: str) -> None:
    config = configure(seed)
    options = ObjectWorkloadOptions(conflicts=seed * 20, vectors=vectors, collect=False, history=HISTORY)  # type: ignore[arg-type]
    world = World(make_network(config))
    watched = Watched(config, options, world)
    watched.start()
    assert world.run(SIMULATED_NS_MAX, watched.done)
    heads = {}
    for executor in watched.group.executors:
        node = executor.node
        heads.update({key: head for key, head in node.heads.found.items() if key[0] == node.address})
    assert heads.keys() == watched.clocks.keys()
    significant = causal = 0
    for one, other in permutations(heads, 2):
        sender = heads[one].sender if vectors == "exact" else dense_key(heads[one].sender)
        before = precedes(sender, heads[one].sends, dict(heads[other].past))
        caused = bool(watched.clocks[other][one[0]] >= watched.clocks[one][one[0]])
        assert caused or not before
        significant += before
        causal += caused
    pairs = count_pairs(config, options)
    assert (pairs.messages, pairs.causal, pairs.significant) == (len(heads), causal, significant)


def test_the_more_conflicts_the_more_is_ordered_and_less_than_causality_orders() -> None:
    found = [count_pairs(configure(1), ObjectWorkloadOptions(conflicts=share)) for share in (0, 50, 100)]
    shares = [pairs.significant / pairs.causal for pairs in found]
    assert shares[0] < shares[1] < shares[2] < 1
