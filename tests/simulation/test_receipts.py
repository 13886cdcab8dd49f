"""Receipts in traces: one for each message and member that got it, before its delivery; and nothing else changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from quire.model.errors import BadInput
from quire.pipeline.auditing.auditor import audit_here
from quire.pipeline.auditing.verdicts import Verdict
from quire.pipeline.layout import lay_out
from quire.report.scan import scan
from quire.simulation.config import Crash, FaultConfig, NetworkConfig, Partition, Pause, SimulationConfig, WorkloadConfig
from quire.simulation.services import SERVICES
from quire.simulation.simulate import simulate
from quire.trace.store import open_run


def config(protocol: str, *, receipts: bool, **more: Any) -> SimulationConfig:
    network = NetworkConfig(delay="exponential:10", loss=0.05, duplicate=0.1, reorder=True)
    workload = WorkloadConfig(messages=15, interval_ms=6.0, spacing="poisson", batch=2)
    return SimulationConfig(protocol=protocol, members=4, network=network, workload=workload, receipts=receipts, **more)


def rows_of(directory: Path) -> list[dict[str, Any]]:
    return [row for path in sorted((directory / "trace").glob("*.parquet")) for row in pq.read_table(path).to_pylist()]


@pytest.mark.parametrize("protocol", ["single-phase", "causal-vector", "two-phase", "fifo", "coordinator"])
def test_every_message_is_received_once_before_it_is_delivered_elsewhere(protocol: str, tmp_path: Path) -> None:
    result = simulate(config(protocol, receipts=True), tmp_path / "run")
    rows = rows_of(tmp_path / "run")
    received = {(row["process"], row["origin"], row["seq"]): row for row in rows if row["kind"] == "receive"}
    assert len(received) == sum(row["kind"] == "receive" for row in rows)
    sent = {(row["origin"], row["seq"]): row for row in rows if row["kind"] == "send"}
    elsewhere = [row for row in rows if row["kind"] == "deliver" and row["origin"] != row["process"]]
    assert len(elsewhere) == len(received) or protocol == "coordinator", "who relays receives what it does not deliver"
    for row in elsewhere:
        receipt = received[row["process"], row["origin"], row["seq"]]
        assert receipt["pos"] < row["pos"]
        assert sent[row["origin"], row["seq"]]["lamport"] < receipt["lamport"] < row["lamport"]
    assert result.digest == simulate(config(protocol, receipts=False)).digest, "what happens is the same"
    assert audit_here(tmp_path / "run").verdict == Verdict.HOLDS


def test_the_report_counts_from_receipts_what_the_simulator_counts(tmp_path: Path) -> None:
    """Without loss and with messages one by one, hold-back is the simulator's latency elsewhere."""
    given = SimulationConfig(members=5, workload=WorkloadConfig(messages=40, spacing="poisson", interval_ms=9.0), receipts=True)
    result = simulate(given, tmp_path / "run")
    found = scan(lay_out(open_run(tmp_path / "run")))
    assert found.held.total() == 5 * 4 * 40
    assert found.held.summary() == result.latency.remote
    assert result.latency.remote_since == "receipt"
    assert found.held_back is not None
    assert found.held_back.max() > 0
    assert (found.held_back[:, -1] == 0).all()


def test_receipts_go_with_pauses_and_partitions(tmp_path: Path) -> None:
    faults = FaultConfig(pauses=(Pause(1, 20.0, 30.0),), partitions=(Partition(((0, 1), (2, 3)), 40.0, 50.0),))
    given = config("two-phase", receipts=True, faults=faults)
    assert simulate(given, tmp_path / "run").complete
    assert audit_here(tmp_path / "run").verdict == Verdict.HOLDS
    found = scan(lay_out(open_run(tmp_path / "run")))
    assert found.held_back is not None
    assert (found.held_back >= 0).all()


def test_a_group_that_survives_faults_refuses_to_record_receipts() -> None:
    with pytest.raises(BadInput, match="receipts are not recorded in a group that survives faults"):
        simulate(config("single-phase", receipts=True, faults=FaultConfig(crashes=(Crash(1, 20.0),))))


@pytest.mark.parametrize("service", sorted(SERVICES))
def test_a_service_refuses_to_record_receipts(service: str) -> None:
    with pytest.raises(BadInput, match=r"receipts of .* cannot be recorded"):
        simulate(SimulationConfig(protocol=service, receipts=True))
