"""The audit, which knows nothing of the protocol, finds its traces in significant order, and finds out what breaks it."""

from __future__ import annotations

from pathlib import Path

import pytest

from quire.model.orders import Guarantee
from quire.pipeline.auditing.auditor import audit_with
from quire.pipeline.auditing.registry import audit_job
from quire.pipeline.auditing.verdicts import Verdict
from quire.pipeline.tasks import run_here
from quire.protocols.objects.exchange import Exchange
from quire.simulation.config import NetworkConfig, SimulationConfig, WorkloadConfig
from quire.simulation.simulate import simulate
from tests.objects.faults import _always_stable


def run(directory: Path, seed: int) -> None:
    config = SimulationConfig(
        protocol="objects", members=3, seed=seed, options={"conflicts": 70, "aborts": 10, "depth": 1},
        network=NetworkConfig(delay="exponential:3", reorder=True, loss=0.2, duplicate=0.2),
        workload=WorkloadConfig(messages=12, interval_ms=4.0, spacing="poisson"),
    )  # fmt: skip
    simulate(config, directory)


@pytest.mark.parametrize("seed", range(3))
def test_a_trace_of_objects_is_in_significant_order(seed: int, tmp_path: Path) -> None:
    run(tmp_path / "run", seed)
    verdict = audit_with(run_here(audit_job()), tmp_path / "run")
    assert verdict.verdict is Verdict.HOLDS
    assert verdict.checks[Guarantee.SIGNIFICANT].verdict is Verdict.HOLDS


def test_requests_that_do_not_wait_for_stability_are_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Exchange, "is_stable", _always_stable)
    run(tmp_path / "run", 1)
    assert audit_with(run_here(audit_job()), tmp_path / "run").checks[Guarantee.SIGNIFICANT].verdict is Verdict.VIOLATED
