"""Hierarchies whose members change: the faults are those of other groups, and happen to agents and to others alike."""

from __future__ import annotations

import random
from pathlib import Path

from tests.faults.chaos import groups
from tests.faults.chaos.rounds import Judge, Outcome, Round

CLUSTERS = ("a", "b", "b/c")


def play(round: Round, directory: Path, judge: Judge) -> Outcome:
    choose = random.Random(round.seed)
    clusters = tuple(choose.choice(CLUSTERS) for _ in range(round.members))
    inside = choose.choice(("matrix", "coordinator", "mixed"))
    return groups.play(
        round, directory, judge, protocol="hierarchy", options={"inside": inside}, delivery="uniform", clusters=clusters
    )
