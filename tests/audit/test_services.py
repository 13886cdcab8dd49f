"""Traces of the services are what their promises say, by an audit that knows nothing of the protocols."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from quire.model.orders import Guarantee
from quire.pipeline import Audit, Verdict
from quire.pipeline.auditing.auditor import audit_with
from quire.pipeline.auditing.registry import audit_job
from quire.pipeline.tasks import run_here
from quire.protocols.sequencing.delivery import HoldBack
from quire.simulation.config import Crash, FaultConfig, NetworkConfig, SimulationConfig, WorkloadConfig
from quire.simulation.simulate import simulate
from tests.transactions.faults import no_read_timestamps, readers_do_not_wait

HARD = NetworkConfig(delay="exponential:20", loss=0.2, duplicate=0.1, reorder=True)


def run(directory: Path, protocol: str, options: dict[str, object], crashes: tuple[Crash, ...] = ()) -> Audit:
    config = SimulationConfig(
        protocol=protocol, members=6 if protocol == "sequencer" else 3, options=options, network=HARD,
        workload=WorkloadConfig(messages=30, interval_ms=5.0), faults=FaultConfig(crashes=crashes),
    )  # fmt: skip
    simulate(config, directory)
    return audit_with(run_here(audit_job()), directory, segments=2)


CHANGING: dict[str, object] = {"overlap": 2, "changes": 20, "moves": 4, "strangers": 1}


@pytest.mark.parametrize("order", ["total", "hybrid", "causal-total"])
def test_groups_whose_members_change_keep_their_order(tmp_path: Path, order: str) -> None:
    found = run(tmp_path / "run", "sequencer", {"order": order, **CHANGING})

    assert found.verdict is Verdict.HOLDS, found.checks
    assert {Guarantee.AGREEMENT, Guarantee.MEMBERSHIPS} < set(found.expected)
    assert (found.checks[Guarantee.TOTAL].verdict is Verdict.VIOLATED) == (order == "hybrid")


@pytest.mark.parametrize(
    ("options", "crashes"), [({}, ()), ({"replication": "majority"}, (Crash(member=2, at_ms=300),))], ids=["all", "majority"]
)
def test_transactions_are_serialisable(tmp_path: Path, options: dict[str, object], crashes: tuple[Crash, ...]) -> None:
    found = run(tmp_path / "run", "transactions", {"keys": 4, "clients": 4, **options}, crashes)

    assert found.checks[Guarantee.SERIALISABLE].verdict is found.verdict is Verdict.HOLDS
    assert Verdict.UNDECIDED not in {check.verdict for check in found.checks.values()}


@pytest.mark.parametrize(("order", "broken"), [("total", Guarantee.TOTAL), ("hybrid", Guarantee.HYBRID)])
def test_a_client_that_waits_for_no_other_group_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str, broken: Guarantee
) -> None:
    monkeypatch.setattr(HoldBack, "_must_wait", lambda *_: False)

    assert run(tmp_path / "run", "sequencer", {"order": order, **CHANGING}).checks[broken].verdict is Verdict.VIOLATED


@pytest.mark.parametrize("fault", [no_read_timestamps, readers_do_not_wait])
def test_a_store_with_a_wrong_rule_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Callable[[pytest.MonkeyPatch], None]
) -> None:
    fault(monkeypatch)
    check = run(tmp_path / "run", "transactions", {"keys": 3, "clients": 5}).checks[Guarantee.SERIALISABLE]

    assert check.verdict is Verdict.VIOLATED
    assert check.witness is not None
    assert len(check.witness.chain) >= 2
