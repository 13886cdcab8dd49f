"""Pauses, partitions, crashes and bad networks: what must hold does, and what broke is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from quire.model.errors import BadInput
from quire.model.messages import Body
from quire.pipeline.auditing.auditor import audit_here
from quire.simulation.config import Crash, FaultConfig, NetworkConfig, Partition, Pause, SimulationConfig, WorkloadConfig
from quire.simulation.simulate import SimulationResult, simulate
from quire.trace.store import open_run
from tests.kit.effort import runs
from tests.kit.variants import single_phase_variants
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


def judged(home: Path, **settings: Any) -> SimulationResult:
    """A run in which everything comes to its end, and whose trace keeps all that was promised."""
    settings = {"members": 4, "workload": WorkloadConfig(messages=20, interval_ms=20), **settings}
    out = home / "run"
    result = simulate(SimulationConfig(**settings), out)
    assert result.complete
    audit = audit_here(out)
    assert {name: audit.checks[name].because for name in audit.expected if audit.checks[name].verdict != "holds"} == {}
    assert {"agreement", "virtual-synchrony", "once"} <= set(audit.expected)
    return result


@pytest.mark.parametrize("protocol", ["single-phase", "two-phase"])
def test_a_paused_member_delivers_everything_after_its_pause(protocol: str) -> None:
    result, calm = run(protocol=protocol, pauses=(Pause(1, 100, 200),)), run(protocol=protocol)
    assert result.complete
    assert result.latency.remote is not None
    assert result.latency.remote.max >= 200
    assert result.digest != calm.digest or result.packets != calm.packets


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
    result = run(protocol="two-phase", partitions=(Partition(((0, 1), (2, 3)), 100, 150),))
    assert result.complete
    assert result.link_packets["RETRANSMISSION"] > 0
    assert result.latency.origin is not None
    assert result.latency.origin.max > 100


@pytest.mark.parametrize("protocol", ["single-phase", "fifo", "causal-vector"])
def test_a_partition_of_a_group_that_changes_heals_and_nothing_is_missing(protocol: str) -> None:
    result = run(5, protocol=protocol, partitions=(Partition(((0, 1), (2, 3, 4)), 100, 3000),), messages=200)
    assert result.complete
    told = [(each.what, each.about) for each in result.happened]
    assert ("view 3", "2, 3, 4") in told
    assert ("blocked", "0") in told
    assert set(told[-1][1].split(", ")) == set("01234")


@pytest.mark.parametrize("protocol", ["single-phase", "fifo", "causal-vector", "two-phase"])
def test_every_protocol_is_complete_over_a_bad_network(protocol: str) -> None:
    result = run(protocol=protocol, delay="uniform:1:30", loss=0.2, duplicate=0.2, reorder=True)
    assert result.complete
    assert result.link_packets["RETRANSMISSION"] > 0


def test_the_counts_of_the_protocol_leave_out_the_repair_of_links() -> None:
    result = run(protocol="fifo", loss=0.3)
    assert result.packets == {"CAST": 80, "multicasts": 80}
    assert result.packets_point_to_point == {"CAST": 240}


def test_what_raw_links_lose_is_missed() -> None:
    result = run(loss=0.2, links="raw")
    assert not result.complete
    assert not result.link_packets


@pytest.mark.parametrize("protocol", ["single-phase", "fifo", "causal-vector"])
@pytest.mark.parametrize("seed", range(runs(4, 12)))
def test_survivors_of_a_crash_agree(protocol: str, seed: int, tmp_path: Path) -> None:
    faults = FaultConfig(crashes=(Crash(seed % 4, 150),))
    result = judged(tmp_path, seed=seed, protocol=protocol, faults=faults, network=NetworkConfig(delay="exponential:10"))
    assert result.crashed == (seed % 4,)
    survivors = ", ".join(str(member) for member in range(4) if member != seed % 4)
    assert ("view 3", survivors) in [(each.what, each.about) for each in result.happened]


@pytest.mark.parametrize("options", [each.options for each in single_phase_variants()], ids=str)
def test_survivors_of_a_crash_agree_over_a_bad_network_whatever_the_options(options: dict[str, object], tmp_path: Path) -> None:
    network = NetworkConfig(delay="uniform:1:30", loss=0.2, duplicate=0.1, reorder=True)
    for seed in range(2):
        result = judged(
            tmp_path / str(seed), seed=seed, options=options, network=network, faults=FaultConfig(crashes=(Crash(3, 150),))
        )
        assert result.link_packets["RETRANSMISSION"] > 0


def test_a_member_that_has_no_room_because_of_a_partition_goes_on_after_a_crash(tmp_path: Path) -> None:
    # While 0 and 1 are apart, member 1 fills up with what waits for 0, and refuses what comes from 2. Then 0 crashes.
    judged(
        tmp_path,
        options={"outstanding": 8},
        members=3,
        workload=WorkloadConfig(messages=33, batch=4),
        faults=FaultConfig(crashes=(Crash(0, 436),), partitions=(Partition(((0,), (1,)), 81, 400),)),
    )


@pytest.mark.parametrize("apart_ms", [5, 20, 35, 50, 65])
def test_a_second_crash_takes_whoever_leads_the_change_and_the_others_finish(apart_ms: int, tmp_path: Path) -> None:
    # Member 0 leads the change to the view without member 4, and crashes in the midst of that.
    result = judged(tmp_path, members=5, faults=FaultConfig(crashes=(Crash(4, 150), Crash(0, 150 + apart_ms))))
    assert result.crashed == (0, 4)


def test_faults_of_all_options_go_together(tmp_path: Path) -> None:
    faults = FaultConfig(
        crashes=(Crash(0, 150),), pauses=(Pause(1, 400, 300), Pause(2, 100, 0)), words="kill 4@1s, restart 4@1.5s"
    )
    result = judged(tmp_path, members=5, workload=WorkloadConfig(messages=60), faults=faults)
    told = [(each.what, each.about) for each in result.happened]
    assert {("kill", "0"), ("stop", "1"), ("kill", "4"), ("restart", "4")} <= set(told)
    assert result.crashed == (0,)


def test_silence_is_detected_when_it_is_asked_to_be() -> None:
    def found_after_ms(detect_ms: float) -> float:
        result = run(detect_ms=detect_ms, pauses=(Pause(1, 100, 4000),), messages=250)
        assert result.complete
        return 1000 * next(each.at_s for each in result.happened if each.what == "view 3") - 100

    assert 200 <= found_after_ms(200) < 400 < 800 <= found_after_ms(800) < 1000


def test_a_crash_blocks_nobody_for_long() -> None:
    config = SimulationConfig(
        workload=WorkloadConfig(mode="blocking", messages=50), faults=FaultConfig(crashes=(Crash(2, 300),))
    )
    result = simulate(config)
    assert result.complete
    assert result.latency.origin is not None
    assert result.latency.origin.max < 200, "a crash is detected by the ends of connections, before any timeout"


@pytest.mark.parametrize("protocol", ["two-phase", "coordinator", "matrix"])
def test_a_protocol_whose_groups_are_fixed_refuses_crashes(protocol: str) -> None:
    with pytest.raises(BadInput, match=f"groups of {protocol} are fixed and end with their first fault; choose one of single-"):
        run(protocol=protocol, crashes=(Crash(0, 150),))


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"crashes": (Crash(1, 10.5),)}, "the time 10.5 of a fault is not a whole number of milliseconds"),
        ({"crashes": (Crash(1, 10),), "detect_ms": 1}, "at least 10 ms to detect"),
        ({"crashes": (Crash(1, 10),), "links": "raw"}, "leave out --links"),
        ({"crashes": (Crash(1, 10),), "pauses": (Pause(1, 20, 5),)}, "affects a member that is not running"),
    ],
)
def test_faults_that_cannot_be_are_refused(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        run(**settings)


def test_a_crash_sometimes_leaves_survivors_with_different_beginnings(tmp_path: Path) -> None:
    """What some survivor lacks of the member that crashed, it delivers only at the end of the view."""
    spreads_ns = []
    for seed in range(10):
        home = tmp_path / str(seed)
        home.mkdir()
        judged(home, seed=seed, protocol="fifo", faults=FaultConfig(crashes=(Crash(0, 165),)))
        rows = [pq.read_table(file.path).to_pylist() for file in open_run(home / "run").files]
        last = max(row["seq"] for row in rows[0] if row["kind"] == "send")
        deliveries = [row for each in rows[1:] for row in each if row["kind"] == "deliver"]
        times = [row["time_ns"] for row in deliveries if (row["origin"], row["seq"]) == (0, last)]
        spreads_ns.append(max(times, default=0) - min(times, default=0))
    assert max(spreads_ns) > 15 * MS
