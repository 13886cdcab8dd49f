"""Random runs of groups that change, under crashes, partitions, wrong suspicions, competing ballots and lost disks.

QUIRE_SWARM_RUNS says how many runs there are of each configuration. Run number n has seed n, so that a failure is made again by
`Chaos(CONFIGURATIONS[name], n).run()`.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from quire.simulation.membership.chaos import Chaos, ChaosConfig
from quire.views.effects import Effect, ProcessEffect
from tests.kit.effort import runs

CLUSTERS = ("a", "b", "b/east", "b/west")

CONFIGURATIONS = {
    "fast": ChaosConfig(),
    "uniform": ChaosConfig(uniform=True),
    "journal": ChaosConfig(journal=True, total_crashes=True),
    "journal, uniform": ChaosConfig(journal=True, uniform=True, total_crashes=True),
    "causal": ChaosConfig(protocol="causal-vector"),
    "causal, uniform": ChaosConfig(protocol="causal-vector", uniform=True),
    "causal, journal, uniform": ChaosConfig(protocol="causal-vector", journal=True, uniform=True),
    "fifo": ChaosConfig(protocol="fifo"),
    "hierarchy": ChaosConfig(protocol="hierarchy", options={"branching": 2, "leaf": 3}, founders=(3, 7)),
    "clusters": ChaosConfig(protocol="hierarchy", clusters=CLUSTERS, moves=2, leaves=1, founders=(3, 6)),
    "clusters, uniform": ChaosConfig(protocol="hierarchy", uniform=True, clusters=CLUSTERS, moves=2, founders=(3, 6)),
    "clusters, journal": ChaosConfig(
        protocol="hierarchy", options={"inside": "mixed"}, journal=True, total_crashes=True, clusters=CLUSTERS, moves=2
    ),
    "coordinators, journal, uniform": ChaosConfig(
        protocol="hierarchy", options={"inside": "coordinator"}, journal=True, uniform=True, clusters=CLUSTERS, moves=4
    ),
    "clusters, heavy": ChaosConfig(
        protocol="hierarchy",
        options={"inside": "mixed"},
        founders=(5, 5),
        heavy=True,
        clusters=CLUSTERS,
        moves=2,
        outstanding=4,
    ),
    "weights, uniform": ChaosConfig(weights=True, uniform=True),
    "two founders, uniform": ChaosConfig(founders=(2, 2), uniform=True),
    "strict, uniform": ChaosConfig(tie="strict", uniform=True),
    "three, heavy": ChaosConfig(founders=(3, 3), heavy=True),
    "three, heavy, journal, uniform": ChaosConfig(founders=(3, 3), heavy=True, journal=True, uniform=True),
    "five, heavy": ChaosConfig(founders=(5, 5), heavy=True),
    "five, heavy, uniform": ChaosConfig(founders=(5, 5), heavy=True, uniform=True),
    "five, heavy, causal": ChaosConfig(founders=(5, 5), heavy=True, protocol="causal-vector"),
    "leaves": ChaosConfig(leaves=4, journal=True, uniform=True),
    "lookahead": ChaosConfig(uniform=True, options={"lookahead": 16}),
    "rotating": ChaosConfig(uniform=True, options={"ids": "rotating", "lookahead": 8}),
    "run-length": ChaosConfig(options={"batches": "run-length"}),
    "rotating, run-length": ChaosConfig(options={"batches": "run-length", "ids": "rotating", "lookahead": 5}),
    "point-to-point": ChaosConfig(uniform=True, options={"acks": "point-to-point"}),
    "basic": ChaosConfig(uniform=True, options={"acks": "basic"}),
    "small windows": ChaosConfig(uniform=True, outstanding=2, history=10),
    "short runs": ChaosConfig(uniform=True, options={"outstanding": 2}),
    "closing": ChaosConfig(uniform=True, closes=0.4, outstanding=4),
    "closing, journal": ChaosConfig(uniform=True, journal=True, closes=0.4),
    "reads": ChaosConfig(uniform=True, reads=6),
    "reads, journal, heavy": ChaosConfig(uniform=True, reads=6, journal=True, heavy=True, founders=(3, 3)),
}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_whatever_happens_every_promise_is_kept(name: str) -> None:
    config, live = CONFIGURATIONS[name], 0
    count = runs(8, 200)
    for seed in range(count):
        try:
            live += Chaos(config, seed).run().live
        except AssertionError as error:
            raise AssertionError(f"seed {seed} of {name!r}: {error}") from error
    assert live > count / 4, "too few runs had to come to rest for this to mean anything"


def digest(name: str, seed: int) -> str:
    """Of everything that every process did in a run, and when."""
    chaos, seen = Chaos(CONFIGURATIONS[name], seed), hashlib.sha256()
    perform = chaos.world._perform

    def watch(name: str, effect: Effect | ProcessEffect) -> None:
        seen.update(repr((chaos.world.now, name, effect)).encode())
        perform(name, effect)

    chaos.world._perform = watch  # type: ignore[method-assign]
    chaos.run()
    return seen.hexdigest()


def test_a_seed_makes_the_same_run_again_whatever_order_sets_have_in_a_process() -> None:
    names = ("uniform", "journal", "closing", "leaves")
    command = "from tests.views.test_swarm import digest; import sys; print(*(digest(name, 3) for name in sys.argv[1:]))"
    found = [
        subprocess.run(
            [sys.executable, "-c", command, *names],
            check=True,
            capture_output=True,
            text=True,
            cwd=Path(__file__).parents[2],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
        ).stdout.split()
        for hash_seed in ("1", "12345")
    ]
    assert found[0] == found[1]
    assert len(set(found[0])) == len(names)
