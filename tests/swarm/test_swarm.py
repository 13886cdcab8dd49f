"""Seeded swarms: many small random groups, options, batches, senders, crashes and schedules for every protocol.

QUIRE_SWARM_RUNS says how many runs of each protocol there are; QUIRE_SWARM_SEED runs one alone, which is how a failure
is replayed. Run number n has seed n, so a longer swarm contains every shorter one.
"""

from __future__ import annotations

import os
from collections import Counter
from itertools import pairwise
from random import Random

import pytest

from quire.model.errors import QuireError
from quire.protocols.registry import PROTOCOLS
from tests.kit.effort import runs
from tests.kit.schedules import Plan, broken_promise, random_plan, run_plan
from tests.kit.variants import ACKS, BATCHES, IDS, Variant
from tests.kit.world import World

RUNS = runs(600, 1000)
SEED = os.environ.get("QUIRE_SWARM_SEED")
MEMBERS = (2, 6)
RUN_LONGEST = 5
ENCODINGS = ("dense", "changes", "adaptive")


def random_options(random: Random, protocol: str) -> dict[str, object]:
    """Any options under which the protocol must work; windows are sometimes so small that members must wait."""
    window = random.choice((RUN_LONGEST, 2 * RUN_LONGEST, 1 << 16))
    if protocol == "single-phase":
        acks = random.choice(ACKS)
        lookahead = 0 if acks == "basic" else random.choice((0, 0, 1, 3, 16))
        return {
            "acks": acks,
            "ids": random.choice(IDS),
            "batches": random.choice(BATCHES),
            "lookahead": lookahead,
            "outstanding": window,
        }
    if protocol == "two-phase":
        return {"outstanding": window}
    if protocol == "matrix":
        return {"encoding": random.choice(ENCODINGS), "held": window}
    if protocol == "hierarchy":
        inside = random.choice(("matrix", "coordinator", "mixed"))
        return {"branching": random.choice((2, 2, 3)), "inside": inside, "encoding": random.choice(ENCODINGS), "held": window}
    return {"held": window}


def swarm_run(protocol: str, seed: int, seen: Counter[str]) -> str | None:
    """Run one world to its end. Returns what is wrong with it, and counts what could be seen in it."""
    random = Random(f"{protocol} {seed}")
    variant = Variant(protocol, random_options(random, protocol))
    plan = random_plan(random, members=MEMBERS, crash=variant.kind.changes_views and random.random() < 0.3)
    try:
        world = run_plan(plan, variant.factory(), random, reordering=variant.reordering)
        wrong = broken_promise(world, variant.promises)
    except (AssertionError, QuireError) as error:
        return f"{variant}, {plan}: {error!r}"
    seen.update(observed(plan, world))
    return wrong and f"{variant}, {plan}: {wrong}"


def observed(plan: Plan, world: World) -> list[str]:
    """What a swarm must show somewhere, or it has shown nothing."""
    origins = [message.origin for message in world.log(world.survivors()[0])]
    switches = sum(one != other for one, other in pairwise(origins))
    signs = {
        "held back": world.held_back_most > 0,
        "a run of several messages": any(len(run.payloads) > 1 for run in plan.runs),
        "senders alternate": switches > len(set(origins)),
        "a causal chain through three members": any(
            len({cause.origin for cause in past} | {message.origin}) >= 3 for message, past in world.past.items()
        ),
        "a submission had to wait": world.refused_submissions > 0,
        "a packet had to wait": world.refused_packets > 0,
        "a crash": world.crashed is not None,
        "a packet came to a survivor by the flush alone": world.flushed > 0,
    }
    return [sign for sign, shown in signs.items() if shown]


def expected_signs(protocol: str) -> set[str]:
    signs = {"held back", "a run of several messages", "senders alternate", "a causal chain through three members"}
    kind = PROTOCOLS[protocol].protocol
    if "outstanding" in PROTOCOLS[protocol].options.__struct_fields__:
        signs |= {"a submission had to wait"}
    if kind.changes_views:
        signs |= {"a crash", "a packet came to a survivor by the flush alone"}
    return signs


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_run_of_a_swarm_breaks_a_promise(protocol: str) -> None:
    seen: Counter[str] = Counter()
    for seed in range(RUNS) if SEED is None else [int(SEED)]:
        wrong = swarm_run(protocol, seed, seen)
        if wrong:
            command = f"QUIRE_SWARM_SEED={seed} make test PYTEST_ARGS='tests/swarm -k {protocol}'"
            pytest.fail(f"{wrong}\nreplay: {command}", pytrace=False)
    if SEED is None and RUNS >= 1000:
        assert expected_signs(protocol) <= set(seen), seen
