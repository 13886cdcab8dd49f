"""`quire simulate --protocol objects`: what it promises, records and says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from quire.model.errors import BadInput
from quire.simulation.config import NetworkConfig, SimulationConfig, WorkloadConfig
from quire.simulation.simulate import simulate

ROUGH = NetworkConfig(delay="exponential:2", reorder=True, loss=0.2, duplicate=0.2)


def config(**options: object) -> SimulationConfig:
    return SimulationConfig(
        protocol="objects", options=options, members=4, network=ROUGH,
        workload=WorkloadConfig(messages=15, interval_ms=8.0, spacing="poisson"),
    )  # fmt: skip


def rows(directory: Path) -> list[dict[str, Any]]:
    found = [pq.read_table(path).to_pylist() for path in sorted((directory / "trace").glob("*.parquet"))]
    return [row for table in found for row in table if row["kind"] in ("send", "deliver")]


def test_a_run_ends_with_equal_replicas() -> None:
    result = simulate(config(aborts=10))
    assert result.complete
    assert result.details["roots"] == 60
    assert result.details["replicas_differ"] == []


def test_the_trace_says_who_called_what_and_what_became_of_it(tmp_path: Path) -> None:
    simulate(config(depth=2), tmp_path / "run")
    info = json.loads((tmp_path / "run/run.json").read_text())
    assert info["promises"] == ["integrity", "agreement", "significant"]
    assert info["settings"]["conflicts"]["x0"] == {"add": [], "set": ["set"]}
    sends = {(row["origin"], row["seq"]): row for row in rows(tmp_path / "run") if row["kind"] == "send"}
    numbers: dict[int, list[int]] = {}
    for origin, number in sends:
        numbers.setdefault(origin, []).append(number)
    assert all(sorted(each) == list(range(len(each))) for each in numbers.values()), "numbers are left out"
    started = {row["txn"] for row in rows(tmp_path / "run") if row["kind"] == "deliver" and row["object"] is not None}
    delivered: dict[tuple[int, int], list[int]] = {}
    for row in rows(tmp_path / "run"):
        if row["kind"] == "send":
            assert (row["object"] is None) == (row["op"] in ("ok", "aborted", "died"))
            continue
        sent = sends[row["origin"], row["seq"]]
        delivered.setdefault((row["origin"], row["seq"]), []).append(row["process"])
        assert row["op"] == sent["op"]
        if sent["object"] is None:
            assert row["object"] is None
            assert row["txn"] in started or "/@" in row["txn"], "a response must reach an instance"
        else:
            assert row["object"] in (None, sent["object"])
    assert {message: sorted(each) for message, each in delivered.items()} == {
        message: sorted(row["dests"]) for message, row in sends.items()
    }


def test_nothing_waits_for_stability_where_nothing_conflicts() -> None:
    free, strict = (simulate(config(conflicts=share, depth=0)) for share in (0, 100))
    assert free.latency.remote is not None
    assert strict.latency.remote is not None
    assert free.latency.remote.max == 0
    assert strict.latency.remote.mean > 1


@pytest.mark.parametrize("options", [{"objects": 0, "replicated": 0}, {"depth": "deep"}, {"vectors": "long"}])
def test_options_that_make_no_sense_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(BadInput):
        simulate(config(**options))
