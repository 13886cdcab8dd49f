"""Seeded swarms of object groups: exact vectors, one order, nobody stuck, whatever the network does.

QUIRE_SWARM_RUNS says how many runs of each kind there are (60 if it does not, 500 in `make test-long`); QUIRE_SWARM_SEED
runs one alone.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable

import pytest

from quire.protocols.objects.exchange import ObjectOptions
from quire.simulation.randomness import stream
from tests.kit.effort import runs
from tests.objects.kit import Execution, Plan, closure, order_violations, vector_errors

RUNS = runs(60, 500)
SEED = os.environ.get("QUIRE_SWARM_SEED")
CHUNK = min(125, RUNS)


def random_plan(seed: int, *, cyclic: bool, options: ObjectOptions) -> Plan:
    random = stream(seed, "plan")
    return Plan(
        members=random.choice((3, 4)),
        roots=random.choice((2, 3, 4)),
        cyclic=cyclic,
        conflict=random.choice((0.3, 0.6, 1.0)),
        loss=random.choice((0.0, 0.2)),
        replicas=random.random() < 0.3,
        abort=random.choice((0.0, 0.1)),
        options=options,
    )


def judge(seed: int, plan: Plan, seen: Counter[str], until_ms: int = 10_000) -> str | None:
    """What is wrong with the execution, if anything is; counts what could be seen in it."""
    execution = Execution(seed, plan)
    if not execution.play(until_ms):
        return "it is stuck"
    unplanned = [error for error in execution.failed if "as planned" not in str(error)]
    if unplanned:
        return f"a call failed: {unplanned[0]!r}"
    before = closure(execution)
    wrong = order_violations(execution, before) + vector_errors(execution, before) + execution.differing_replicas()
    seen["related"] += sum(map(len, before.values()))
    seen["messages"] += len(before)
    seen["retries"] += sum(executor.died for executor in execution.executors)
    seen["aborts"] += len(execution.failed)
    return wrong[0] if wrong else None


KINDS = {
    "exact": ObjectOptions(heartbeat_ms=3, collect=False, history=100_000),
    "collected": ObjectOptions(heartbeat_ms=3, history=100_000),
    "dense": ObjectOptions(heartbeat_ms=3, vectors="dense", collect=False, history=100_000),
}


def swarm(chunk: int, test: str, plan: Callable[[int], Plan]) -> None:
    seen: Counter[str] = Counter()
    seeds = [int(SEED)] if SEED is not None else range(chunk, min(chunk + CHUNK, RUNS))
    for seed in seeds:
        wrong = judge(seed, plan(seed), seen)
        assert wrong is None, f"{wrong}; replay: QUIRE_SWARM_SEED={seed} pytest tests/objects/test_swarm.py -k {test}"
    if SEED is None:
        idle = [what for what in ("related", "retries", "aborts") if not seen[what]]
        assert not idle, f"a swarm without {idle} proves nothing"


@pytest.mark.parametrize("chunk", range(0, RUNS, CHUNK))
def test_vectors_say_exactly_what_precedes_what(chunk: int) -> None:
    swarm(chunk, "exactly", lambda seed: random_plan(seed, cyclic=seed % 4 == 0, options=KINDS["exact"]))


@pytest.mark.parametrize("chunk", range(0, RUNS, CHUNK))
def test_calls_in_cycles_are_ordered_and_end(chunk: int) -> None:
    kinds = ("collected", "collected", "dense")
    swarm(chunk, "cycles", lambda seed: random_plan(seed, cyclic=True, options=KINDS[kinds[seed % 3]]))
