"""The numbers that the single-phase paper claims, and those that it should have: counted exactly, or measured.

Source: Sun and Maheshwari 1996, sections 4 and 5, with the corrections that the protocol module names: an origin waits up
to two delays, and the table of loads replaces "approaches zero".
"""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from quire.simulation.config import NetworkConfig, SimulationConfig, WorkloadConfig
from quire.simulation.simulate import SimulationResult, simulate
from quire.trace.latency import Latency
from tests.kit.effort import cases

DELAY_MS = 10.0


def run(
    members: int,
    *,
    messages: int,
    interval_ms: float = 100.0,
    senders: tuple[int, ...] | None = None,
    spacing: str = "even",
    delay: str = f"constant:{DELAY_MS}",
    protocol: str = "single-phase",
    seed: int = 1,
    out: Path | None = None,
    **options: object,
) -> SimulationResult:
    return simulate(
        SimulationConfig(
            protocol=protocol,
            options=options,
            members=members,
            seed=seed,
            network=NetworkConfig(delay=delay),
            workload=WorkloadConfig(messages=messages, interval_ms=interval_ms, senders=senders, spacing=spacing),
        ),
        out,
    )


EVERY_SENDER = [(members, sender) for members in (2, 3, 5, 8) for sender in range(members)]


@pytest.mark.parametrize("members", [2, 3, 5, 8])
def test_basic_takes_one_multicast_of_every_member_for_an_operation(members: int) -> None:
    result = run(members, messages=20, acks="basic")
    operations = 20 * members
    assert result.packets == {"GOP": operations, "ACK": operations * (members - 1), "multicasts": operations * members}
    assert sum(result.packets_point_to_point.values()) == operations * members * (members - 1)


@pytest.mark.parametrize("members", [2, 3, 5, 8])
def test_two_phase_takes_n_plus_1_multicasts_or_3_times_n_minus_1_packets(members: int) -> None:
    result = run(members, messages=20, protocol="two-phase")
    operations = 20 * members
    assert result.packets["multicasts"] == operations * (members + 1)
    assert sum(result.packets_point_to_point.values()) == operations * 3 * (members - 1)


@pytest.mark.parametrize("count", [1, 20, 31])
@pytest.mark.parametrize(("members", "sender"), EVERY_SENDER)
def test_economical_acknowledgements_of_one_sender_are_exact(members: int, sender: int, count: int) -> None:
    result = run(members, messages=count, senders=(sender,))
    assert result.packets.get("ACK", 0) == sender * count + (members - 1 - sender) * (count // 2)


@pytest.mark.parametrize("members", [2, 3, 5, 8])
def test_economical_acknowledgements_with_rotating_ids_are_exact_but_for_the_start(members: int) -> None:
    rounds = 50
    result = run(members, messages=rounds * members, senders=(0,), ids="rotating")
    each_round = members * (members - 1) // 2 + (members - 1) ** 2 // 4
    assert abs(result.packets["ACK"] - rounds * each_round) <= members


@pytest.mark.parametrize(("members", "sender"), [pair for pair in EVERY_SENDER if pair[0] > 2])
def test_point_to_point_acknowledgements_and_relays_of_one_sender_are_exact(members: int, sender: int) -> None:
    count = 20
    packets = run(members, messages=count, senders=(sender,), acks="point-to-point").packets_point_to_point
    relays = {0: (members - 1) * count // 2, 1: (2 * members - 3) * count // 2}.get(sender, (members - 1) * count)
    assert packets.get("ACK", 0) == sender * count + (members - 1 - sender) * count // 2
    assert packets["REL"] == relays


@pytest.mark.parametrize("acks", ["economical", "point-to-point"])
def test_an_operation_takes_between_0_and_all_possible_acknowledgements(acks: str) -> None:
    for seed in range(20):
        result = run(5, messages=20, interval_ms=7.0, spacing="poisson", delay="uniform:1:10", seed=seed, acks=acks)
        most = 4 if acks == "economical" else 8
        sent = result.packets.get("ACK", 0) if acks == "economical" else result.packets_point_to_point.get("ACK", 0)
        sent += 0 if acks == "economical" else result.packets_point_to_point.get("REL", 0)
        assert 0 <= sent <= most * result.messages


@pytest.mark.parametrize("ids", ["static", "rotating"])
def test_with_equal_delays_a_remote_member_waits_at_most_one_delay_and_the_origin_two(ids: str) -> None:
    for seed in range(20):
        latency = run(4, messages=30, interval_ms=9.0, spacing="poisson", seed=seed, ids=ids).latency
        assert latency.remote is not None
        assert latency.origin is not None
        assert latency.remote.max <= DELAY_MS
        assert latency.origin.max <= 2 * DELAY_MS


@pytest.mark.parametrize("sender", [1, 2, 3])
def test_an_isolated_operation_of_a_member_other_than_the_first_waits_exactly_two_delays_at_its_origin(sender: int) -> None:
    latency = run(4, messages=20, senders=(sender,)).latency
    assert latency.origin is not None
    assert (latency.origin.p50, latency.origin.max) == (2 * DELAY_MS, 2 * DELAY_MS)


def test_with_unequal_delays_a_remote_member_waits_less_than_two_of_the_longest() -> None:
    longest = 0.0
    for seed in range(30):
        latency = run(4, messages=30, interval_ms=20.0, spacing="poisson", delay="uniform:0.1:10", seed=seed).latency
        assert latency.remote is not None
        longest = max(longest, latency.remote.max)
    assert DELAY_MS < longest < 2 * DELAY_MS, "more than one delay is possible, which the paper denies; two are not"


@pytest.mark.parametrize(
    ("load", "acknowledgements", "remote", "local", "messages"),
    [(0.05, 1.75, 0.78, 1.74, 200), (0.5, 0.80, 0.57, 1.57, 200), (2.0, 0.33, 0.41, 1.41, 100), (20.0, 0.06, 0.28, 1.28, 250)],
)
def test_the_heavier_the_load_the_fewer_acknowledgements_and_the_shorter_the_wait(
    load: float, acknowledgements: float, remote: float, local: float, messages: int
) -> None:
    """The table is of runs of a few hundred messages a member; the longer a run, the fewer acknowledgements it needs (at
    load 2, 0.27 an operation after 5,000 messages a member), because the busiest member's clock leads ever more often."""
    runs = [run(4, messages=messages, interval_ms=DELAY_MS / load, spacing="poisson", seed=seed) for seed in range(16)]
    sent = sum(result.packets.get("ACK", 0) for result in runs) / sum(result.messages for result in runs)
    assert sent == pytest.approx(acknowledgements, rel=0.10)
    assert _mean([result.latency.remote for result in runs]) == pytest.approx(remote, rel=0.10)
    assert _mean([result.latency.origin for result in runs]) == pytest.approx(local, rel=0.10)


def _mean(latencies: list[Latency | None]) -> float:
    means = [latency.mean for latency in latencies if latency is not None]
    return sum(means) / len(means) / DELAY_MS


@pytest.mark.parametrize(("ids", "expected"), [("static", (1.07, 1.70, 1.82, 1.85)), ("rotating", (1.53, 1.55, 1.54, 1.53))])
def test_rotating_ids_give_every_member_the_same_wait(ids: str, expected: tuple[float, ...], tmp_path: Path) -> None:
    run(4, messages=4000, interval_ms=DELAY_MS / 0.3, spacing="poisson", ids=ids, out=tmp_path / "run")
    assert [_mean_local_wait(tmp_path / "run", member) for member in range(4)] == [pytest.approx(d, rel=0.10) for d in expected]


def _mean_local_wait(directory: Path, member: int) -> float:
    """The mean time, in delays, from a member's sends to its deliveries of its own messages."""
    rows = pq.read_table(directory / "trace" / f"p{member:05d}.parquet", columns=["kind", "origin", "time_ns"])
    total_ns, messages = 0, 0
    for kind, origin, time_ns in zip(*(rows[name].to_pylist() for name in ("kind", "origin", "time_ns")), strict=True):
        if origin == member:
            total_ns += time_ns if kind == "deliver" else -time_ns
            messages += kind == "send"
    return float(total_ns / messages / 1e6 / DELAY_MS)


@pytest.mark.parametrize(("lookahead", "remote"), [(0, 1.0), (1, 0.5), (4, 0.2), (16, 0.06)])
def test_lookahead_divides_the_acknowledgements_of_silent_members(lookahead: int, remote: float) -> None:
    result = run(5, messages=1700, senders=(4,), lookahead=lookahead)
    assert result.latency.remote is not None
    assert result.packets["ACK"] / result.messages == pytest.approx(4 / (lookahead + 1), rel=0.02)
    assert result.latency.remote.mean / DELAY_MS == pytest.approx(remote, rel=0.05)


def _packets_per_operation(members: int, load: float, acks: str) -> float:
    result = run(
        members,
        messages=600,
        interval_ms=DELAY_MS / load,
        spacing="poisson",
        delay=f"uniform:0:{DELAY_MS}",
        acks=acks,
    )
    sent = result.packets_point_to_point
    return (sent.get("ACK", 0) + sent.get("REL", 0)) / result.messages


@pytest.mark.parametrize(
    ("members", "load", "point_to_point", "economical"),
    [(8, 0.02, 11.9, 30.3), (8, 0.2, 10.1, 19.4), (8, 1.0, 6.1, 8.9), (5, 0.02, 6.6, 10.2), (5, 0.2, 5.5, 7.4)],
)
def test_point_to_point_takes_as_few_packets_as_measured_before(
    members: int, load: float, point_to_point: float, economical: float
) -> None:
    assert _packets_per_operation(members, load, "point-to-point") == pytest.approx(point_to_point, rel=0.10)
    assert _packets_per_operation(members, load, "economical") == pytest.approx(economical, rel=0.10)


@pytest.mark.parametrize("load", cases([0.02, 5.0], [0.2, 1.0]))
def test_point_to_point_pays_from_five_members_on_and_not_for_three(load: float) -> None:
    for members in (5, 8):
        assert _packets_per_operation(members, load, "point-to-point") < _packets_per_operation(members, load, "economical")
    if load == 0.02:
        assert _packets_per_operation(3, load, "point-to-point") > _packets_per_operation(3, load, "economical")
