"""Seeded swarms of services whose processes and clients crash, are cut off and come back, on networks that may be very bad.

QUIRE_SWARM_RUNS says how many runs of each kind there are; QUIRE_SWARM_SEED runs one alone, which is how a failure is
replayed. Run number n has seed n, so a longer swarm contains every shorter one.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from quire.protocols.sequencing.failover import replica
from tests.kit.effort import runs
from tests.sequencing.failover import rebuilt_oracle
from tests.sequencing.failover.oracle import wrong_with
from tests.sequencing.failover.plans import losing_plan, random_plan, rebuilt_plan
from tests.sequencing.failover.rebuilt_kit import LosingService, RebuiltService
from tests.sequencing.failover.schedules import CASES, schedule

RUNS = runs(60, 120)
SEED = os.environ.get("QUIRE_SWARM_SEED")
KINDS = {
    "total": {"order": "total"},
    "hybrid": {"order": "hybrid"},
    "causal-total": {"order": "causal-total"},
    "hybrid, pipelined": {"order": "hybrid", "pipelined": True},
    "causal-total, pipelined": {"order": "causal-total", "pipelined": True},
}
MANY = 2000
"""Runs, among which there is one in which a number is left of which nobody knows anything."""
EXPECTED = {"a new epoch", "a move", "an eviction", "a process that came back"}
RARE = {"a move that was called off"}


@pytest.mark.parametrize("late", [False, True], ids=["", "late copies"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_run_with_crashes_breaks_a_promise(kind: str, late: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: Counter[str] = Counter()
    if late:
        # States are short here: this way they travel in several pieces all the same.
        monkeypatch.setattr(replica, "PIECE_BYTES", 200)
    for seed in range(RUNS // 2 if late else RUNS) if SEED is None else [int(SEED)]:
        plan = random_plan(seed, late=late, **KINDS[kind])  # type: ignore[arg-type]
        service = plan.play()
        found = wrong_with(service)
        command = f"QUIRE_SWARM_SEED={seed} .venv/bin/python -m pytest '{os.environ.get('PYTEST_CURRENT_TEST', '')}'"
        assert found is None, f"{found}\n{command}"
        shown["a new epoch"] += sum(each.epoch for each in service.register.succession.configurations.values()) > 0
        shown["a move"] += service.directory.moved > 0
        shown["a move that was called off"] += not all(service.directory.committed.values())
        shown["an eviction"] += bool(service.evictions)
        shown["a process that came back"] += any(service.lives)
    assert SEED is not None or {sign for sign, count in shown.items() if count} >= (EXPECTED if late else EXPECTED | RARE)


@pytest.mark.parametrize("crashes", [False, True], ids=["", "clients crash"])
@pytest.mark.parametrize("order", ["total", "hybrid", "causal-total"])
def test_no_run_without_backups_breaks_a_promise_to_a_group_that_is_not_lost(order: str, crashes: bool) -> None:
    shown: Counter[str] = Counter()
    for seed in range(RUNS) if SEED is None else [int(SEED)]:
        service = rebuilt_plan(seed, order, crashes=crashes).play()
        assert isinstance(service, RebuiltService)
        found = rebuilt_oracle.wrong_with(service)
        command = f"QUIRE_SWARM_SEED={seed} .venv/bin/python -m pytest '{os.environ.get('PYTEST_CURRENT_TEST', '')}'"
        assert found is None, f"{found}\n{command}"
        shown["rebuilt"] += service.rebuilt
        shown["lost"] += len(service.directory.lost)
        shown["groups"] += len(service.founders)
        shown["blank"] += service.blanks
    assert SEED is not None or (shown["rebuilt"] and crashes <= shown["lost"] < shown["groups"] / 3), shown
    # Something must be lost on its way to everybody, and not what came after it.
    assert SEED is not None or shown["blank"] or RUNS < MANY, shown


@pytest.mark.parametrize("order", ["total", "hybrid", "causal-total"])
def test_only_groups_without_a_copy_are_lost_when_sequencers_crash_together(order: str) -> None:
    shown: Counter[str] = Counter()
    for seed in range(RUNS // 2) if SEED is None else [int(SEED)]:
        service = losing_plan(seed, order).play()
        assert isinstance(service, LosingService)
        found = rebuilt_oracle.wrong_with(service)
        command = f"QUIRE_SWARM_SEED={seed} .venv/bin/python -m pytest '{os.environ.get('PYTEST_CURRENT_TEST', '')}'"
        assert found is None, f"{found}\n{command}"
        shown["lost"] += len(service.directory.lost)
        shown["groups"] += len(service.founders)
    assert SEED is not None or 0 < shown["lost"] < shown["groups"], shown


@pytest.mark.parametrize("name", CASES)
def test_every_shrunk_schedule_is_right_on_any_network(name: str) -> None:
    for seed in range(runs(5, 10)):
        found = wrong_with(schedule(name, seed).play())
        assert found is None, (seed, found)
