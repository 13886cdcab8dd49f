"""A short round of random faults; `make chaos` has long ones."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from quire.model.faults import Kill, Restart, Stop, check_faults, end_ms, parse_faults
from quire.pipeline.auditing.auditor import audit_here
from tests.faults.chaos import objects, remembered_sequencers, sequencers, stores
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


def test_a_seed_loses_no_more_sequencers_at_a_time_than_there_are_backups() -> None:
    rounds = [sequencers.make_round(seed, 10, True) for seed in range(50)]
    assert rounds == [sequencers.make_round(seed, 10, True) for seed in range(50)]
    kinds = {type(fault).__name__ for each in rounds for fault in each.faults}
    assert kinds == {"Kill", "Restart", "Stop", "Partition", "Cut"}
    for each in rounds:
        killed: set[int] = set()
        for fault in each.faults:
            if isinstance(fault, Kill | Restart) and fault.member in sequencers.sequencers_of(each):
                killed ^= {fault.member}
                assert len(killed) <= sequencers.backups_of(each)
        assert {*each.asked} <= {*each.faults}
    assert {sequencers.backups_of(each) for each in rounds} == {1, 2}
    assert max(map(together, rounds)) == 2
    assert any(each.asked for each in rounds)


def test_clients_of_sequencers_lose_nothing_when_one_is_killed_another_restarted_and_others_are_stopped(tmp_path: Path) -> None:
    faults = parse_faults(
        "kill 0@200ms, stop 4@250ms for 100ms, restart 0@500ms, stop 1@700ms for 200ms, kill 3@800ms, kill 2@900ms, "
        "restart 2@1s"
    )
    round = Round(0, 6, faults, {"order": "total", "bodies": "direct"}, asked=(Kill(2, 900),))
    outcome = sequencers.play(round, tmp_path, audit_here)
    assert outcome.acknowledged > 0


def test_a_seed_kills_all_sequencers_at_once_only_where_they_have_journals() -> None:
    rounds = [remembered_sequencers.make_round(seed, 10, True) for seed in range(50)]
    assert rounds == [remembered_sequencers.make_round(seed, 10, True) for seed in range(50)]
    assert {sequencers.backups_of(each) for each in rounds} == {0, 1}
    at_once = [(each, together(each) == len(sequencers.sequencers_of(each))) for each in rounds]
    assert {each.options["journal"] for each, all_killed in at_once if all_killed} == {True}
    assert {each.options["journal"] for each, all_killed in at_once if not all_killed} == {True, False}
    spared = [each for each in rounds if not sequencers.loses_groups(each, evicted=0)]
    assert any(together(each) > 1 for each in spared), "what is killed at once without a client must not lose a group"


def test_groups_without_backups_outlive_all_sequencers_whose_registers_are_in_journals(tmp_path: Path) -> None:
    faults = parse_faults(
        "kill 0@200ms, restart 0@300ms, stop 3@400ms for 100ms, kill 0@600ms, kill 1@600ms, kill 2@600ms, restart 0@700ms, "
        "restart 1@800ms, restart 2@900ms"
    )
    round = Round(0, 6, faults, {"backups": 0, "journal": True, "order": "hybrid", "bodies": "relay"})
    outcome = sequencers.play(round, tmp_path, audit_here)
    assert outcome.acknowledged > 0
    assert "3 clients came, 0 groups lost" in outcome.what


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
    returned = [{fault.member for fault in each.faults if isinstance(fault, Restart)} for each in rounds]
    assert any(returned)
    lost = [
        [fault for fault in each.faults if (who := objects.loses(fault)) is not None and who not in again]
        for each, again in zip(rounds, returned, strict=True)
    ]
    assert {type(fault).__name__ for each in lost for fault in each} == {"Kill", "Stop", "Partition"}
    assert max(map(len, lost)) == objects.LOST_MAX
    for first, second in (each for each in lost if len(each) == objects.LOST_MAX):
        assert end_ms([first]) < second.at_ms, "the others must have agreed about one before the next"


def test_hosts_of_objects_go_on_when_one_is_killed_and_another_stopped(tmp_path: Path) -> None:
    outcome = objects.play(Round(0, 5, parse_faults("stop 1@100ms for 200ms, kill 2@300ms")), tmp_path, audit_here)
    assert outcome.acknowledged > 0


CAME = [["came", 7], ["changed", "tea", 1, "join", 7]]
SENT = [["accepted", "tea", number] for number in range(3)]


@pytest.mark.parametrize(
    ("told", "wrong"),
    [
        ([[2, [[7, 0], [7, 1], [7, 2]]]], ""),
        ([[2, [[7, 0]]], [3, [[7, 2]]], [4, [[8, 0]]]], "accepted and is lost"),
        ([[2, [[7, 0], [7, 2]]], [4, [[7, 1]]]], "tea has"),
        ([[2, [[7, 0], [7, 1], [7, 1], [7, 2]]]], "twice"),
        ([[2, [[7, 0], [7, 1]]], [5, [[7, 2]]]], "has 5 after 3"),
    ],
)
def test_what_is_wrong_with_what_a_client_was_told_is_found(told: list[list[Any]], wrong: str) -> None:
    def judge() -> None:
        log, notes = sequencers.Log(), [*CAME, *SENT, *(["delivered", "tea", *each] for each in told)]
        log.take(notes)
        log.has_all_of(notes)

    if not wrong:
        judge()
        return
    with pytest.raises(AssertionError, match=wrong):
        judge()


def test_a_number_that_is_blank_to_one_client_is_blank_to_all() -> None:
    log = sequencers.Log()
    log.take([*CAME, ["blank", "tea", 2, 3], ["delivered", "tea", 4, [[7, 0]]]])
    with pytest.raises(AssertionError, match="two entries 3 of tea"):
        log.take([["came", 8], ["delivered", "tea", 3, [[7, 1]]]])


def test_what_was_sent_to_a_group_that_was_lost_is_not_missed() -> None:
    notes: list[list[Any]] = [*CAME, *SENT, ["lost", "tea"]]
    log = sequencers.Log()
    log.take(notes)
    log.has_all_of(notes)
    assert log.lost == {"tea"}


def test_two_clients_that_were_told_different_things_under_one_number_are_found() -> None:
    log = sequencers.Log()
    log.take([*CAME, ["delivered", "tea", 2, [[7, 0]]]])
    with pytest.raises(AssertionError, match="two entries 2 of tea"):
        log.take([["came", 8], ["delivered", "tea", 2, [[7, 1]]]])


def test_a_message_to_a_group_of_nobody_has_a_number_of_which_nobody_knows() -> None:
    log, away = sequencers.Log(), ["changed", "tea", 3, "leave", 7]
    notes = [*CAME, *SENT, ["delivered", "tea", 2, [[7, 0]]], away, ["changed", "tea", 5, "join", 7]]
    notes.append(["delivered", "tea", 6, [[7, 2]]])
    log.take(notes)
    log.has_all_of(notes)


@pytest.mark.parametrize(("found", "right"), [((2, 1), True), ((3, 2), True), ((1, 1), False), ((3, 1), False), (None, False)])
def test_a_store_that_counts_too_few_or_too_many_transfers_is_found(*, found: list[int] | None, right: bool) -> None:
    notes = [["began", 0], ["committed", 0], ["began", 1], ["committed", 1], ["began", 2]]
    if right:
        assert stores.check_counts(notes, found) == 2
        return
    with pytest.raises(AssertionError, match="the store counts"):
        stores.check_counts(notes, found)


@pytest.mark.parametrize(("times", "wrong"), [(1, ""), (0, "0 times"), (2, "2 times")])
def test_a_call_that_a_replica_ran_twice_or_not_at_all_is_found(times: int, wrong: str) -> None:
    called, ran = [["began", "shared-0", 0], ["answered", "shared-0", 0]], ["ran", "shared-0", 0, 0]
    noted = {
        0: objects.Noted([[*called, ["state", "shared-0", [ran]]]]),
        1: objects.Noted([[["state", "shared-0", [ran] * times]]]),
    }
    if not wrong:
        assert objects.check_calls(noted, (0, 1)) == 1
        return
    with pytest.raises(AssertionError, match=wrong):
        objects.check_calls(noted, (0, 1))


def test_replicas_that_ran_calls_in_different_orders_are_found() -> None:
    calls = [["ran", "shared-0", 0, 0], ["ran", "shared-0", 1, 0]]

    def noted(state: list[list[Any]]) -> objects.Noted:
        return objects.Noted([[["state", "shared-0", state], ["state", "shared-1", []]]])

    objects.check_replicas({0: noted(calls), 1: noted(calls)}, (0, 1))
    with pytest.raises(AssertionError, match="shared-0 ran different calls, or in different orders"):
        objects.check_replicas({0: noted(calls), 1: noted(calls[::-1])}, (0, 1))
