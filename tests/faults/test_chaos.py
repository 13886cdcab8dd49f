"""A short round of random faults; `make chaos` has long ones."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from quire.model.faults import Kill, Restart, Stop, check_faults, parse_faults
from quire.report.run_report import audit_here
from tests.faults.chaos import sequencers
from tests.faults.chaos.groups import make_round, play
from tests.faults.chaos.rounds import TIMEOUT_MS, Round
from tests.live.hosts import hosts


def test_a_seed_stands_for_the_same_faults_of_every_kind() -> None:
    rounds = [make_round(seed, 10, True) for seed in range(50)]
    assert rounds == [make_round(seed, 10, True) for seed in range(50)]
    kinds = {type(fault).__name__ for each in rounds for fault in each.faults}
    assert kinds == {"Kill", "Restart", "Stop", "Full", "Partition", "Cut"}
    for each in rounds:
        check_faults(each.faults, each.members)
    stops = [fault.for_ms for each in rounds for fault in each.faults if isinstance(fault, Stop)]
    assert min(stops) < TIMEOUT_MS < max(stops)
    assert any(together(each) == each.members for each in rounds)


def together(round: Round) -> int:
    """How many members are killed in the same moment, at most."""
    return max(Counter(fault.at_ms for fault in round.faults if isinstance(fault, Kill)).values(), default=0)


def test_nothing_is_lost_when_all_are_killed_at_once_while_others_are_stopped(tmp_path: Path) -> None:
    faults = parse_faults(
        "stop 1@200ms for 300ms, kill 0@700ms, kill 1@700ms, kill 2@700ms, restart 0@800ms, restart 1@801ms, restart 2@900ms"
    )
    outcome = play(Round(0, 3, faults), tmp_path, audit_here)
    assert outcome.acknowledged == outcome.delivered > 0


@pytest.mark.parametrize("seed", [4])
def test_a_short_round_of_random_faults_loses_nothing(tmp_path: Path, seed: int) -> None:
    with hosts(1):
        pass  # Where there can be no hosts of their own, this says so.
    outcome = play(make_round(seed, 4, True), tmp_path, audit_here)
    assert outcome.acknowledged == outcome.delivered > 0


def test_a_seed_kills_one_sequencer_at_a_time() -> None:
    rounds = [sequencers.make_round(seed, 10, True) for seed in range(50)]
    assert rounds == [sequencers.make_round(seed, 10, True) for seed in range(50)]
    kinds = {type(fault).__name__ for each in rounds for fault in each.faults}
    assert kinds == {"Kill", "Restart", "Stop", "Partition", "Cut"}
    for each in rounds:
        killed: set[int] = set()
        for fault in each.faults:
            if isinstance(fault, Kill | Restart) and fault.member in sequencers.SEQUENCERS:
                assert isinstance(fault, Restart) or not killed
                killed ^= {fault.member}


def test_clients_of_sequencers_lose_nothing_when_one_is_killed_and_others_are_stopped(tmp_path: Path) -> None:
    faults = parse_faults("kill 0@200ms, stop 4@250ms for 100ms, restart 0@500ms, stop 1@700ms for 200ms, kill 3@800ms")
    outcome = sequencers.play(Round(0, 6, faults, {"order": "total"}), tmp_path, audit_here)
    assert outcome.acknowledged > 0
