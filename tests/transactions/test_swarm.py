"""Seeded swarms of stores: serialisable by re-execution, replicas equal at the end, nothing dirty seen, nobody stuck.

QUIRE_SWARM_RUNS says how many runs of each kind there are; QUIRE_SWARM_SEED runs one alone, which is how a failure is
replayed. Run number n has seed n, so a longer swarm contains every shorter one.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from random import Random

import pytest

from quire.protocols.transactions.errors import CommitUnknown, Obsolete, TxAborted
from quire.protocols.transactions.quorum_replica import QuorumReplica
from quire.protocols.transactions.timestamps import ZERO
from tests.kit.effort import runs
from tests.transactions import plans
from tests.transactions.duels import Duel
from tests.transactions.kept_stores import KeptStore
from tests.transactions.stores import Plan, Store

RUNS = runs(125, 500)
SEED = os.environ.get("QUIRE_SWARM_SEED")
SHARES = {
    "full": 1.0,
    "partial": 1.0,
    "lossy": 1.0,
    "stable": 0.1,
    "quorum": 0.5,
    "crashing": 1.0,
    "restless": 0.2,
    "reborn": 0.2,
    "forgetting": 0.4,
    "kept": 0.3,
}
"""Runs of each kind, of those that are asked for; in a long swarm, all of them have all."""

DUELS = 8
"""So many times as many runs: each is of one transaction."""

Make = Callable[[Random], Plan]


def play(kind: str, seed: int) -> tuple[Store, str | None]:
    make: Make = getattr(plans, kind)
    plan = make(Random(f"{kind} {seed}"))
    if kind == "kept":
        kept = KeptStore(plan, seed)
        return kept, kept.run() or kept.unlike_its_disk()
    store = Store(plan, seed)
    return store, store.run()


@pytest.mark.parametrize("kind", SHARES)
def test_committed_transactions_are_as_if_one_after_the_other(kind: str) -> None:
    runs = RUNS if RUNS > 1000 else int(RUNS * SHARES[kind])
    seeds = range(runs) if SEED is None else [int(SEED)]
    seen: Counter[str] = Counter()
    for seed in seeds:
        store, wrong = play(kind, seed)
        replay = f"QUIRE_SWARM_SEED={seed} pytest tests/transactions/test_swarm.py -k {kind}"
        assert wrong is None, f"{wrong}; replay with: {replay}"
        seen.update(observed(store))
    if SEED is None:
        wanted = {"commit", "abort", "obsolete"} | ({"replica crash", "client crash"} if kind == "crashing" else set())
        wanted |= {"decisions forgotten"} if kind == "forgetting" else set()
        wanted |= {"all at once", "disk read", "disk lost", "checkpoint"} if kind == "kept" else set()
        assert wanted <= set(seen), seen
        print(kind, runs, dict(seen))


def observed(store: Store) -> Counter[str]:
    """What a swarm must show somewhere, or it has shown nothing."""
    replicas = [host.node for host in store.world.hosts if isinstance(host.node, QuorumReplica)]
    kept = Counter[str]()
    if isinstance(store, KeptStore):
        kept.update({"all at once": store.all_at_once, "disk read": store.read_disks, "disk lost": store.lost_disks})
        kept["checkpoint"] = sum(host.checkpoints for host in store.kept)
    return (
        kept
        + Counter(
            {
                "transactions": len(store.history),
                "commit": len(store.answered),
                "abort": len(store.history) - len(store.committed()),
                "programs given up": sum(driver.given_up for driver in store.by_address.values()),
                "obsolete": sum(isinstance(error, Obsolete) for error in store.errors),
                "ended by replicas": sum(isinstance(error, TxAborted) for error in store.errors),
                "outcome unknown": sum(isinstance(error, CommitUnknown) for error in store.errors),
                "committed without its client": len(store.committed() - store.answered),
                "replica crash": len(store.durable),
                "client crash": len(store.plan.client_crashes),
                "decisions forgotten": sum(
                    store.plan.settings.remembered == 1 and node.state.horizon > ZERO for node in replicas
                ),
            }
        )
        - Counter()
    )


def test_whoever_ends_a_transaction_all_learn_one_outcome() -> None:
    seen: Counter[str] = Counter()
    for seed in range(DUELS * RUNS) if SEED is None else [int(SEED)]:
        duel = Duel(Random(seed))
        wrong = duel.run()
        assert wrong is None, (
            f"{wrong}; replay with: QUIRE_SWARM_SEED={seed} pytest tests/transactions/test_swarm.py -k outcome"
        )
        outcomes = {commit for _, commit in duel.outcomes}
        seen.update(["no outcome"] if not outcomes else ["a commit"] if True in outcomes else ["an abort"])
        seen.update(["competing ballots"] if duel.enders > 1 else [])
        seen.update(["a commit in spite of ballots"] if True in outcomes and duel.enders else [])
        seen.update(["a disk that was lost"] if duel.lost else [])
    if SEED is None:
        signs = ("a commit", "an abort", "competing ballots", "a commit in spite of ballots", "a disk that was lost")
        assert all(seen[sign] > RUNS // 2 for sign in signs), seen
