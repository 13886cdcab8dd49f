"""What the network does to packets."""

from __future__ import annotations

from itertools import pairwise

import pytest

from quire.simulation.delays import parse_delays
from quire.simulation.network import Network, Split
from quire.simulation.randomness import stream

MS = 1_000_000


def network(delay: str = "uniform:1:50", **settings: object) -> Network:
    return Network(4, parse_delays(delay, 4), stream(1, "network"), **settings)  # type: ignore[arg-type]


def test_packets_of_a_link_keep_their_order_though_delays_differ() -> None:
    net = network()
    times = [net.arrivals(0, 1, at * MS)[0] for at in range(200)]
    assert times == sorted(times)
    assert len({later - earlier for earlier, later in pairwise(times)}) > 10


def test_packets_overtake_each_other_when_reordering_is_asked_for() -> None:
    net = network(reorder=True)
    times = [net.arrivals(0, 1, at * MS)[0] for at in range(200)]
    assert times != sorted(times)


def test_links_do_not_hold_each_other_up() -> None:
    net = network("matrix:[[0,100,1,1],[1,0,1,1],[1,1,0,1],[1,1,1,0]]")
    assert net.arrivals(0, 1, 0) == [100 * MS]
    assert net.arrivals(0, 2, 0) == [1 * MS]


@pytest.mark.parametrize("probability", [0.1, 0.5])
def test_loss_and_duplication_come_as_often_as_asked(probability: float) -> None:
    losing, repeating = network(loss=probability), network(duplicate=probability)
    assert sum(len(losing.arrivals(0, 1, 0)) for _ in range(4000)) == pytest.approx(4000 * (1 - probability), rel=0.05)
    assert sum(len(repeating.arrivals(0, 1, 0)) for _ in range(4000)) == pytest.approx(4000 * (1 + probability), rel=0.05)


def test_a_partition_cuts_its_sides_apart_while_it_lasts() -> None:
    net = network("constant:10", splits=[Split(((0, 1), (2,)), 100 * MS, 150 * MS)])
    assert net.arrivals(0, 2, 99 * MS)
    assert not net.arrivals(0, 2, 100 * MS)
    assert not net.arrivals(2, 1, 149 * MS)
    assert net.arrivals(0, 1, 120 * MS)
    assert net.arrivals(0, 2, 150 * MS)
    # Member 3 is on neither side.
    assert net.arrivals(3, 0, 120 * MS)
    assert net.arrivals(2, 3, 120 * MS)


def test_one_delay_serves_all_only_on_a_perfect_constant_network() -> None:
    assert network("constant:10").one_delay_ns() == 10 * MS
    assert network("constant:10", loss=0.1).one_delay_ns() is None
    assert network("uniform:1:2").one_delay_ns() is None
