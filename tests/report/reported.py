"""Runs to report on, and what is in a report."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from quire.simulation.config import NetworkConfig, SimulationConfig, WorkloadConfig
from quire.simulation.simulate import simulate


def simulated(directory: Path, protocol: str = "single-phase", **workload: Any) -> Path:
    network = NetworkConfig(delay="exponential:10")
    given = {"messages": 20, "spacing": "poisson", "interval_ms": 7.0, **workload}
    simulate(SimulationConfig(protocol=protocol, members=4, network=network, workload=WorkloadConfig(**given)), directory)
    return directory


def rows_of(directory: Path) -> list[dict[str, Any]]:
    return [row for path in sorted((directory / "trace").glob("*.parquet")) for row in pq.read_table(path).to_pylist()]


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data
