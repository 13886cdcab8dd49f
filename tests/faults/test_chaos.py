"""A short round of random faults; `make chaos` has long ones."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from quire.model.faults import Kill, Restart, Stop, check_faults, parse_faults
from quire.report.run_report import audit_here
from tests.faults.chaos import objects, sequencers, stores
from tests.faults.chaos.groups import make_round, play
from tests.faults.chaos.rounds import TIMEOUT_MS, Round
from tests.faults.chaos.store_process import REPLICAS
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


def test_a_seed_has_replicas_killed_at_once_and_restarted_without_their_disks() -> None:
    rounds = [stores.make_round(seed, 10, True) for seed in range(50)]
    assert rounds == [stores.make_round(seed, 10, True) for seed in range(50)]
    kinds = {type(fault).__name__ for each in rounds for fault in each.faults}
    assert kinds == {"Kill", "Restart", "Stop", "Full", "Partition", "Cut"}
    assert max(map(together, rounds)) == REPLICAS
    assert any(each.blank for each in rounds)
    for each in rounds:
        left = {*stores.TELLERS} - {fault.member for fault in each.faults if isinstance(fault, Kill)}
        assert left, "somebody must be there to count"


def test_a_store_loses_nothing_when_a_disk_is_lost_and_then_all_replicas_are_killed_at_once(tmp_path: Path) -> None:
    faults = parse_faults(
        "kill 0@100ms, stop 4@150ms for 100ms, restart 0@200ms, kill 5@1.2s, kill 0@1.3s, kill 1@1.3s, kill 2@1.3s, "
        "restart 0@1.4s, restart 1@1.4s, restart 2@1.5s"
    )
    outcome = stores.play(Round(0, 6, faults, blank=(Restart(0, 200),)), tmp_path, audit_here)
    assert outcome.acknowledged > 0
    assert outcome.what == "1 disks lost"


def test_a_seed_loses_few_enough_hosts_that_the_others_can_agree() -> None:
    rounds = [objects.make_round(seed, 10, True) for seed in range(50)]
    assert rounds == [objects.make_round(seed, 10, True) for seed in range(50)]
    lost = [[fault for fault in each.faults if objects.loses(fault) is not None] for each in rounds]
    assert {type(fault).__name__ for each in lost for fault in each} == {"Kill", "Stop", "Partition"}
    assert max(map(len, lost)) == objects.LOST_MAX


def test_hosts_of_objects_go_on_when_one_is_killed_and_another_stopped(tmp_path: Path) -> None:
    outcome = objects.play(Round(0, 5, parse_faults("stop 1@100ms for 200ms, kill 2@300ms")), tmp_path, audit_here)
    assert outcome.acknowledged > 0
