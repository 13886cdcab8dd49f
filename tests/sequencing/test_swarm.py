"""Seeded swarms: small random services on networks that may be very bad, in every order.

QUIRE_SWARM_RUNS says how many runs of each order there are; QUIRE_SWARM_SEED runs one alone, which is how a failure is
replayed. Run number n has seed n, so a longer swarm contains every shorter one.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable

import pytest

from quire.protocols.sequencing.errors import Overload
from quire.protocols.sequencing.events import JOIN, LEAVE
from tests.kit import effort
from tests.sequencing.kit import Service
from tests.sequencing.oracle import disagreements, wrong_with
from tests.sequencing.plans import Plan, random_plan, restless_plan

RUNS = effort.runs(250, 500)
SEED = os.environ.get("QUIRE_SWARM_SEED")
DISAGREE = "two clients that disagree on messages of two groups"
EXPECTED = {
    "a join", "a leave", "a message of who is no member", "a move", "a move that was called off", "a window that was full",
    "loss of 45 %", "30 % twice", "bodies that went directly", "a client that did not wait",
}  # fmt: skip
ORDERS = ("total", "hybrid", "causal-total")


def observed(plan: Plan, service: Service) -> list[str]:
    """What a swarm must show somewhere, or it has shown nothing."""
    seen = [each for log in service.log.values() for each in log.values()]
    signs = {
        "a join": any(each.kind == JOIN for each in seen),
        "a leave": any(each.kind == LEAVE for each in seen),
        "a message of who is no member": any(sender not in dests for (sender, _), dests in service.dests.items()),
        "a move": service.directory.moved > 0,
        "a move that was called off": not all(service.directory.committed.values()),
        "a window that was full": service.overloads > 0,
        "loss of 45 %": plan.faults.loss == 0.45,
        "30 % twice": plan.faults.duplicate == 0.3,
        "bodies that went directly": plan.options.bodies == "direct",
        "a client that did not wait": plan.options.pipelined,
        DISAGREE: disagreements(service)[0] > 0,
    }
    return [sign for sign, shown in signs.items() if shown]


def swarm(name: str, order: str, make: Callable[[int, str], Plan], runs: int, expected: set[str]) -> None:
    """Plays so many plans, and requires that nothing is wrong with any, and that all together show what they should."""
    signs: Counter[str] = Counter()
    for seed in range(runs) if SEED is None else [int(SEED)]:
        plan = make(seed, order)
        try:
            service = plan.play()
            wrong = wrong_with(service)
        except (AssertionError, KeyError, Overload) as error:
            wrong = repr(error)
        if wrong:
            chosen = f"tests/sequencing/test_swarm.py::{name}[{order}]"
            pytest.fail(f"{plan}: {wrong}\nreplay: QUIRE_SWARM_SEED={seed} make test PYTEST_ARGS='{chosen}'", pytrace=False)
        signs.update(observed(plan, service))
    if SEED is None and RUNS >= 250:
        assert expected <= set(signs), signs


@pytest.mark.parametrize("order", ORDERS)
def test_no_run_of_a_swarm_breaks_a_promise(order: str, request: pytest.FixtureRequest) -> None:
    expected = EXPECTED | ({DISAGREE} if order == "hybrid" else set())
    swarm(request.function.__name__, order, random_plan, RUNS, expected)


@pytest.mark.parametrize("order", ORDERS)
def test_no_run_with_late_copies_of_joins_and_leaves_breaks_a_promise(order: str, request: pytest.FixtureRequest) -> None:
    expected = {"a join", "a leave"} | (set() if order == "hybrid" else {"a move"})
    swarm(request.function.__name__, order, restless_plan, RUNS if RUNS > 1000 else RUNS * 2 // 5, expected)
