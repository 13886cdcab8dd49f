"""Connections over a bad network: what is sent arrives, at most late."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from quire.model.messages import Body
from quire.simulation.config import NetworkConfig
from quire.simulation.connections import BACK_OFF_MAX, RETRANSMISSION, Connections
from quire.simulation.delays import parse_delays
from quire.simulation.network import Network, Split
from tests.simulation.plain import Loose, Plain, engine, later

BODY = Body(b"x", 1)
MS = 1_000_000


def connections(ordered: bool = True, delay: str = "uniform:1:30", seed: int = 1, **network: Any) -> Connections:
    made = Network(2, parse_delays(delay, 2), Random(seed), **network)
    return Connections(made, ordered=ordered)


@given(st.integers(0, 1 << 32), st.lists(st.integers(0, 40_000_000), max_size=60).map(sorted))
def test_whatever_is_sent_arrives_once_and_in_order(seed: int, sent_ns: list[int]) -> None:
    made = connections(seed=seed, loss=0.4, duplicate=0.3, reorder=True)
    arrivals = [made.arrivals(0, 1, now_ns) for now_ns in sent_ns]
    assert all(len(times) == 1 for times in arrivals)
    times_ns = [times[0] for times in arrivals]
    assert times_ns == sorted(times_ns)
    assert all(time_ns > now_ns for time_ns, now_ns in zip(times_ns, sent_ns, strict=True))


def test_what_follows_something_late_waits_behind_it_and_the_other_way_nothing_does() -> None:
    split = Split(((0,), (1,)), 0, 10 * MS)
    made = connections(delay="constant:10", splits=[split])
    assert made.arrivals(0, 1, 0) == (40 * MS,), "sent again after three delays"
    assert made.arrivals(0, 1, 11 * MS) == (40 * MS,)
    assert made.arrivals(1, 0, 11 * MS) == (21 * MS,)
    assert made.counts == {RETRANSMISSION: 1}


def test_the_timeout_doubles_up_to_a_bound() -> None:
    made = connections(delay="constant:10", splits=[Split(((0,), (1,)), 0, 60_000 * MS)])
    (time,) = made.arrivals(0, 1, 0)
    tries = [30 * MS * 2**number for number in range(7)]
    while sum(tries) < 60_000 * MS:
        tries.append(30 * MS * BACK_OFF_MAX)
    assert time == sum(tries) + 10 * MS
    assert made.counts[RETRANSMISSION] == len(tries)


def test_connections_repair_loss_duplication_and_reordering_for_a_protocol_that_needs_order() -> None:
    network = NetworkConfig(delay="uniform:1:30", loss=0.3, duplicate=0.2, reorder=True)
    made, log = engine(Plain, network=network)
    for number in range(100):
        made.at(number * 1_000_000, later(made, 0, 1, BODY), None)
    made.run()
    assert log == [[(0, number) for number in range(100)]] * 3
    assert made.connections is not None
    assert made.connections.counts[RETRANSMISSION] > 10


def test_a_protocol_that_copes_with_disorder_gets_it_raw_but_complete() -> None:
    made, log = engine(Loose, network=NetworkConfig(delay="uniform:1:30", loss=0.3, duplicate=0.5, reorder=True))
    for _ in range(100):
        made.submit(0, 1, BODY)
    made.run()
    assert set(log[1]) == {(0, number) for number in range(100)}
    assert len(log[1]) > 100
    assert log[1] != sorted(log[1])


def test_without_connections_messages_are_missing_and_the_violator_is_heard_no_more() -> None:
    made, log = engine(Plain, network=NetworkConfig(loss=0.3, links="raw"))
    for _ in range(100):
        made.submit(0, 1, BODY)
    made.run()
    assert made.connections is None
    assert log[1] == [(0, number) for number in range(len(log[1]))]
    assert len(log[1]) < 100


def test_a_perfect_network_gets_no_connections() -> None:
    assert engine(Plain)[0].connections is None
    assert engine(Loose, network=NetworkConfig(reorder=True))[0].connections is None
