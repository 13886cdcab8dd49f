"""The event loop: what it records, counts and measures."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from quire.model.messages import Body
from quire.simulation.config import NetworkConfig, SimulationConfig, WorkloadConfig
from quire.simulation.simulate import SimulationResult, simulate
from quire.trace.store import open_run, read_info
from quire.trace.tables import as_records
from tests.simulation.plain import Choosy, Halving, Narrow, Plain, engine, later

BODY = Body(b"x", 1)
MS = 1_000_000


def traced(out: Path, **settings: Any) -> tuple[SimulationResult, list[list[dict[str, Any]]]]:
    """The result of a run, and each member's events."""
    result = simulate(SimulationConfig(**settings), out)
    files = open_run(out).files
    return result, [pq.read_table(file.path).to_pylist() for file in files]


def test_a_trace_keeps_the_rules_of_logical_time(tmp_path: Path) -> None:
    _, members = traced(
        tmp_path / "run",
        members=4,
        network=NetworkConfig(delay="exponential:10"),
        workload=WorkloadConfig(messages=30, batch=3),
    )
    sent = {(row["origin"], row["seq"]): row["lamport"] for rows in members for row in rows if row["kind"] == "send"}
    assert len(sent) == 4 * 30
    for rows in members:
        assert [row["pos"] for row in rows] == list(range(len(rows)))
        clocks = [row["lamport"] for row in rows]
        assert all(earlier < later for earlier, later in pairwise(clocks))
        times = [row["time_ns"] for row in rows]
        assert times == sorted(times)
        delivered = [(row["origin"], row["seq"], row["lamport"]) for row in rows if row["kind"] == "deliver"]
        assert len(delivered) == 4 * 30
        assert all(lamport > sent[origin, seq] for origin, seq, lamport in delivered)


def test_messages_are_sent_before_the_packet_that_carries_them_and_addressed_to_all(tmp_path: Path) -> None:
    _, members = traced(tmp_path / "run", members=3, workload=WorkloadConfig(messages=2, batch=2, senders=(1,), size=5))
    kinds = [row["kind"] for row in members[1]]
    assert kinds[:3] == ["send", "send", "packet"]
    send, packet = members[1][1], members[1][2]
    assert (send["origin"], send["seq"], send["group"], send["dests"], send["payload_bytes"]) == (1, 1, "all", [0, 1, 2], 5)
    assert (packet["packet"], packet["fanout"], packet["payload_bytes"]) == ("GOP", 2, 10)


def test_the_counts_of_a_result_are_those_of_its_trace(tmp_path: Path) -> None:
    result, members = traced(tmp_path / "run", members=5, workload=WorkloadConfig(messages=40))
    packets = [row for rows in members for row in rows if row["kind"] == "packet"]
    for name in ("GOP", "ACK"):
        of_type = [row for row in packets if row["packet"] == name]
        assert result.packets[name] == len(of_type)
        assert result.packets_point_to_point[name] == sum(row["fanout"] for row in of_type) == 4 * len(of_type)
    assert result.packets["multicasts"] == len(packets)
    assert result.header_bytes == sum(row["header_bytes"] for row in packets)
    assert result.header_bytes_point_to_point == sum(row["header_bytes"] * row["fanout"] for row in packets)
    assert result.simulated_ms == max(rows[-1]["time_ns"] for rows in members) / MS
    assert result.deliveries == sum(row["kind"] == "deliver" for rows in members for row in rows)
    info = read_info(tmp_path / "run")
    assert info.outcome.complete
    assert (info.outcome.messages, info.outcome.deliveries, info.seed) == (200, 1000, 0)


@pytest.mark.parametrize("sender", [0, 2, 4])
def test_one_sender_costs_and_waits_what_theory_says(sender: int) -> None:
    messages, members = 100, 5
    result = simulate(SimulationConfig(members=members, workload=WorkloadConfig(messages=messages, senders=(sender,))))
    assert result.packets.get("ACK", 0) == sender * messages + (members - 1 - sender) * (messages // 2)
    assert result.latency.origin is not None
    assert result.latency.remote is not None
    assert result.latency.origin.max == 20.0
    assert result.latency.remote.max == 10.0


def test_the_digest_depends_on_the_order_of_deliveries_alone() -> None:
    def digest(**workload: Any) -> str:
        return simulate(SimulationConfig(members=3, workload=WorkloadConfig(senders=(1,), messages=24, **workload))).digest

    assert digest() == digest(batch=5) == digest(interval_ms=1, size=0)
    assert digest() != simulate(SimulationConfig(members=3, workload=WorkloadConfig(senders=(2,), messages=24))).digest


def test_a_trace_written_in_pieces_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"members": 3, "workload": WorkloadConfig(messages=50)}
    whole, whole_rows = traced(tmp_path / "whole", **settings)
    monkeypatch.setattr("quire.simulation.runs._KEEP_RECORDS", 20)
    monkeypatch.setattr("quire.simulation.simulate._KEEP_WAITS", 10)
    monkeypatch.setattr("quire.simulation.engine._CHUNK_EVENTS", 16)
    pieces, pieces_rows = traced(tmp_path / "pieces", **settings)
    assert pieces_rows == whole_rows
    assert msgspec.structs.replace(pieces, wall_s=0, trace=None) == msgspec.structs.replace(whole, wall_s=0, trace=None)


def test_a_full_window_delays_submissions_without_reordering_them() -> None:
    made, log = engine(Narrow)
    for _ in range(5):
        made.submit(0, 1, BODY)
    made.run()
    assert log == [[(0, number) for number in range(5)]] * 3
    # Each waits for a round trip to member 1, and for those before it.
    assert list(made.origin_waits) == [20 * MS * (number + 1) for number in range(5)]


def test_a_packet_that_is_refused_for_lack_of_room_stays_on_its_link() -> None:
    made, log = engine(Choosy)
    for _ in range(3):
        made.submit(0, 1, BODY)
    made.at(50 * MS, later(made, 1, 1, BODY), None)
    made.run()
    assert log[2] == [(1, 0), (0, 0), (0, 1), (0, 2)]
    assert log[1] == [(0, 0), (0, 1), (0, 2), (1, 0)]


def test_the_wait_of_a_run_is_weighed_by_its_messages_part_by_part() -> None:
    made, log = engine(Halving, members=2)
    made.submit(0, 4, Body(b"xxxx", 1))
    made.at(30 * MS, later(made, 0, 2, Body(b"xx", 1)), None)
    made.run()
    assert log[1] == [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4)]
    assert list(made.remote_waits) == [0, 0, 30 * MS, 30 * MS, 0]


def test_messages_of_different_sizes_are_recorded_one_by_one() -> None:
    made, _ = engine(Plain, members=2)
    made.submit(0, 2, Body(b"abc", 0, (1, 2)))
    made.run()
    assert [tuple(row) for row in as_records(made.sites[1].log.take())[:, [1, 2, 3, 7]]] == [(0, 0, 1, 1), (0, 1, 1, 2)]


def test_a_group_of_one_needs_no_packets() -> None:
    result = simulate(SimulationConfig(members=1, workload=WorkloadConfig(messages=10)))
    assert (result.complete, result.deliveries, result.packets) == (True, 10, {"multicasts": 0})
