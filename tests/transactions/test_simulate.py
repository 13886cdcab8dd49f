"""`quire simulate --protocol transactions`: figures, a trace from which every transaction can be told, refusals."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest

from quire.model.errors import BadInput
from quire.protocols.transactions.timestamps import UNWRITTEN, Timestamp, Version
from quire.simulation.config import Crash, FaultConfig, NetworkConfig, SimulationConfig, WorkloadConfig
from quire.simulation.simulate import SimulationResult, simulate
from quire.trace.store import read_info
from tests.transactions.histories import Did, History, dirty_read, wrong_order

HARD = NetworkConfig(delay="exponential:5", loss=0.1, duplicate=0.1, reorder=True)


def play(out: Path | None = None, crashes: tuple[Crash, ...] = (), **options: object) -> SimulationResult:
    config = SimulationConfig(
        protocol="transactions",
        options={"keys": 4, **options},
        network=HARD,
        workload=WorkloadConfig(messages=15),
        faults=FaultConfig(crashes=crashes),
    )
    return simulate(config, out)


def read_histories(run: Path) -> tuple[History, set[Timestamp]]:
    """What the trace says that transactions did, and which of them committed."""
    rows = [row for file in sorted((run / "trace").glob("*.parquet")) for row in pq.read_table(file).to_pylist()]
    history: History = {}
    committed: set[Timestamp] = set()
    for row in rows:
        if row["txn"] is None:
            continue
        tid, pno = map(int, row["txn"].split("."))
        t = Timestamp(tid, pno)
        history.setdefault(t, [])
        number = row["seq"] % (1 << 16)
        written = Version(row["seq"] >> 16, row["origin"], number)
        if row["op"] == "commit":
            committed.add(t)
        elif row["op"] == "w" and row["kind"] == "send":
            history[t].append(Did("w", row["object"], written, None))
        elif row["op"] == "r" and row["kind"] == "view":
            seen = written if number < 1 << 15 else UNWRITTEN
            history[t].append(Did("r", row["object"], seen, None))
    return history, committed


@pytest.mark.parametrize("options", [{}, {"copies": 2}, {"order": "stable"}, {"replication": "majority"}])
def test_the_trace_tells_what_every_transaction_read_and_wrote(tmp_path: Path, options: dict[str, object]) -> None:
    result = play(tmp_path / "run", (), **options)
    assert result.complete
    assert result.details["committed"] == 45
    assert result.details["replicas_differ"] == []
    history, committed = read_histories(tmp_path / "run")
    assert len(committed) == 45
    assert wrong_order(history, committed) is None
    assert dirty_read(history, committed) is None
    assert "serialisable" in read_info(tmp_path / "run").promises


def test_majorities_go_on_without_clients_and_replicas_that_crash(tmp_path: Path) -> None:
    result = play(tmp_path / "run", (Crash(2, 300.0), Crash(4, 200.0)), replication="majority", lease_ms=200)
    assert result.crashed == (2, 4)
    assert result.complete
    assert 30 <= int(str(result.details["committed"])) < 45
    history, committed = read_histories(tmp_path / "run")
    assert wrong_order(history, committed) is None
    assert dirty_read(history, committed) is None


def test_waiting_for_stability_omits_operations_and_says_from_how_many() -> None:
    result = play(order="stable", writes=90, clients=8, keys=2)
    ratio, depth = result.details["ratio"], result.details["queue_depth"]
    assert isinstance(ratio, float)
    assert isinstance(depth, float)
    assert 0.2 < ratio < 0.98
    assert depth > 1.0


def test_a_seed_replays(tmp_path: Path) -> None:
    first, again = play(tmp_path / "one"), play(tmp_path / "two")
    assert msgspec.structs.replace(first, wall_s=0, trace=None) == msgspec.structs.replace(again, wall_s=0, trace=None)


def test_what_makes_no_sense_is_refused_in_one_sentence() -> None:
    with pytest.raises(BadInput, match="assumes that no process crashes"):
        play(None, (Crash(0, 1.0),))
    with pytest.raises(BadInput, match="choose replication=all"):
        play(replication="majority", order="stable")
    with pytest.raises(BadInput, match="at 1 to 3 of 3 replicas"):
        play(copies=9)
    with pytest.raises(BadInput, match="clients=N"):
        simulate(SimulationConfig(protocol="transactions", workload=WorkloadConfig(senders=(0,))))
