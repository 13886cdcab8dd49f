"""Planted faults: the swarm's checks catch every wrong rule that does harm, and what only costs aborts is still right."""

from __future__ import annotations

from random import Random

import pytest

from quire.model.errors import ProtocolViolation
from tests.transactions import faults, plans
from tests.transactions.faults import Plant
from tests.transactions.kept_stores import KeptStore
from tests.transactions.stores import Plan, Store

SEEDS = 200


def run_kept(plan: Plan, seed: int) -> str | None:
    store = KeptStore(plan, seed)
    return store.run() or store.unlike_its_disk()


def first_caught(kind: str, start: int) -> tuple[int, str] | None:
    """The first seed whose run is wrong, and how."""
    for seed in range(start, start + SEEDS):
        plan = getattr(plans, kind)(Random(f"{kind} {seed}"))
        try:
            wrong = run_kept(plan, seed) if kind == "kept" else Store(plan, seed).run()
        except (AssertionError, KeyError, ProtocolViolation) as error:
            wrong = repr(error)
        if wrong is not None:
            return seed, wrong
    return None


@pytest.mark.parametrize(("plant", "kind", "start"), faults.HARMFUL, ids=lambda part: getattr(part, "__name__", str(part)))
def test_a_wrong_rule_is_caught(plant: Plant, kind: str, start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    caught = first_caught(kind, start)
    assert caught is not None
    print(plant.__name__, *caught)


def test_without_thomass_rule_all_is_right_but_more_aborts(monkeypatch: pytest.MonkeyPatch) -> None:
    def aborts() -> int:
        total = 0
        for seed in range(150):
            store = Store(plans.full(Random(f"full {seed}")), seed)
            assert store.run() is None
            total += len(store.errors)
        return total

    with_rule = aborts()
    faults.no_thomas_rule(monkeypatch)
    assert aborts() > with_rule
