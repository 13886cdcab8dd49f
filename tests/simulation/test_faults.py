"""Pauses, partitions, crashes and bad networks: what must hold does, and what broke is said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from quire.model.messages import Body
from quire.simulation.config import Crash, FaultConfig, NetworkConfig, Partition, Pause, SimulationConfig, WorkloadConfig
from quire.simulation.flights import Entry, cut_flights
from quire.simulation.group import Group
from quire.simulation.simulate import SimulationResult, simulate
from tests.simulation.plain import Plain, engine

MS = 1_000_000
BODY = Body(b"x", 1)


def run(
    members: int = 4, seed: int = 0, protocol: str = "single-phase", messages: int = 20, **settings: Any
) -> SimulationResult:
    network = {key: settings.pop(key) for key in ("delay", "loss", "duplicate", "reorder", "links") if key in settings}
    return simulate(
        SimulationConfig(
            protocol=protocol,
            members=members,
            seed=seed,
            network=NetworkConfig(**network),
            workload=WorkloadConfig(messages=messages, interval_ms=20),
            faults=FaultConfig(**settings),
        )
    )


def test_a_paused_member_delivers_everything_after_its_pause() -> None:
    result = run(pauses=(Pause(1, 100, 200),))
    assert result.complete
    assert result.latency.remote is not None
    assert result.latency.remote.max >= 200
    assert result.digest != run().digest or result.packets != run().packets


def test_submissions_and_packets_that_wait_out_a_pause_take_turns() -> None:
    made, log = engine(Plain, members=2)
    made.pause(0)
    for _ in range(3):
        made.submit(0, 1, BODY)
        made.submit(1, 1, BODY)
    made.at(50 * MS, made.resume, 0)
    made.run()
    assert log[0] == [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]


def test_a_partition_heals_and_nothing_is_missing() -> None:
    result = run(partitions=(Partition(((0, 1), (2, 3)), 100, 150),))
    assert result.complete
    assert result.link_packets["RETRANSMISSION"] > 0
    assert result.latency.origin is not None
    assert result.latency.origin.max > 100


@pytest.mark.parametrize("protocol", ["single-phase", "fifo", "causal-vector", "two-phase"])
def test_every_protocol_is_complete_over_a_bad_network(protocol: str) -> None:
    result = run(protocol=protocol, delay="uniform:1:30", loss=0.2, duplicate=0.2, reorder=True)
    assert result.complete
    assert result.link_packets["LINK-ACK"] > 0


def test_the_counts_of_the_protocol_leave_out_the_repair_of_links() -> None:
    result = run(protocol="fifo", loss=0.3)
    assert result.packets == {"CAST": 80, "multicasts": 80}
    assert result.packets_point_to_point == {"CAST": 240}


def test_what_raw_links_lose_is_missed() -> None:
    result = run(loss=0.2, links="raw")
    assert not result.complete
    assert not result.link_packets


@pytest.mark.parametrize("seed", range(12))
def test_survivors_of_a_crash_agree(seed: int) -> None:
    result = run(seed=seed, delay="exponential:10", crashes=(Crash(seed % 4, 150),))
    assert result.complete
    assert result.crashed == (seed % 4,)
    assert result.packets["UNION"] == 1
    assert result.packets["REPORT"] == 2


def test_survivors_of_a_crash_agree_over_a_bad_network_too() -> None:
    for seed in range(6):
        assert run(seed=seed, delay="uniform:1:30", loss=0.2, reorder=True, crashes=(Crash(3, 150),)).complete


def test_the_payload_in_reports_and_unions_is_not_counted_as_header() -> None:
    settings = {"members": 3, "faults": FaultConfig(crashes=(Crash(0, 600),)), "network": NetworkConfig(delay="constant:10")}
    small, large = (
        simulate(SimulationConfig(workload=WorkloadConfig(messages=20, size=size), **settings))  # type: ignore[arg-type]
        for size in (130, 255)
    )
    assert small.packets["UNION"] == large.packets["UNION"] == 1
    # Both sizes are encoded in as many bytes, so nothing but the payload differs.
    assert small.header_bytes == large.header_bytes


def test_reports_of_a_crash_pass_packets_for_which_there_is_no_room() -> None:
    # While 0 and 1 are apart, member 1 fills up with what waits for 0, and refuses what comes from 2. Then 0 crashes.
    result = simulate(
        SimulationConfig(
            options={"outstanding": 8},
            members=3,
            workload=WorkloadConfig(messages=33, batch=4),
            faults=FaultConfig(crashes=(Crash(0, 436),), partitions=(Partition(((0,), (1,)), 81, 400),)),
        )
    )
    assert result.complete


def test_a_second_crash_takes_the_coordinator_and_the_next_one_finishes() -> None:
    # Member 0 coordinates the end of member 3 and crashes while the reports are on their way.
    result = run(crashes=(Crash(3, 150), Crash(0, 185)))
    assert result.complete
    assert result.crashed == (0, 3)


def test_a_protocol_that_does_not_survive_crashes_ends_incomplete() -> None:
    result = run(protocol="two-phase", crashes=(Crash(0, 150),))
    assert not result.complete
    assert "UNION" not in result.packets


def test_a_crash_sometimes_leaves_survivors_with_different_beginnings() -> None:
    counts = set()
    for seed in range(20):
        group = Group(members=4, seed=seed, delay="constant:10", detect_ms=1000)
        for _ in range(3):
            group.submit(0, b"x")
        group.crash(0)
        group.advance(500)
        counts.add(tuple(sum(site.protocol.held_back() for site in [each]) for each in group._engine.sites[1:]))
    assert any(len(set(held)) > 1 for held in counts)


def entry(number: int, source: int, receivers: Sequence[int]) -> Entry:
    return (number, number, None, (source, f"packet {number}", 0, tuple(receivers), -1, 0))


def test_only_a_tail_of_each_link_is_lost_in_a_crash() -> None:
    entries = [entry(0, 1, (0, 2)), entry(1, 0, (1, 2)), entry(2, 1, (0, 2)), entry(3, 1, (2,))]

    def flying(each: Entry) -> tuple[int, ...]:
        receivers: tuple[int, ...] = each[3][3]
        return receivers if each[3][0] == 1 else ()

    kept = sorted(cut_flights(entries, flying, lambda copies: copies - 1))
    assert [(number, item[3]) for number, _, _, item in kept] == [(0, (0, 2)), (1, (1, 2)), (2, (2,))]
