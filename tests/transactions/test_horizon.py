"""What replicas forget, by hand: never what somebody may still need, and in the long run everything else."""

from __future__ import annotations

from random import Random

import pytest

from quire.protocols.transactions.gossip import SILENT_ROUNDS
from quire.protocols.transactions.notices import BeginAnew, GaveUp
from quire.protocols.transactions.placement import Placement
from quire.protocols.transactions.quorum_packets import (
    Accepted,
    Compared,
    Decide,
    Denied,
    Ended,
    Have,
    Outdated,
    Prepare,
    Prewrite,
    Promised,
    Propose,
    Reach,
)
from quire.protocols.transactions.quorum_replica import QuorumReplica
from quire.protocols.transactions.timestamps import ZERO, Version
from quire.protocols.transactions.votes import ABORT, FIRST, Ballot
from tests.transactions import faults
from tests.transactions.by_hand import CLIENT, KEY, Replicas, at, written
from tests.transactions.plans import FORGETFUL, random_program
from tests.transactions.stores import Plan, Store

BALLOTS = (Prepare, Promised, Propose, Accepted)


def test_what_all_know_is_forgotten_but_for_the_latest() -> None:
    three = Replicas(remembered=2)
    for number in range(1, 10):
        three.decide(number)
    three.talk(Reach, Have, Compared)
    assert three.horizons() == [8, 8, 8]
    assert [sorted(t.tid for t in node.state.decided) for node in three.nodes] == [[8, 9]] * 3
    assert [node.state.cells[KEY].value for node in three.nodes] == [b"9"] * 3
    assert all(node.idle() and node.due() is None for node in three.nodes)


@pytest.mark.parametrize("wrong", [False, True])
def test_what_one_of_them_lacks_is_kept_until_it_has_it(wrong: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if wrong:
        faults.decisions_are_forgotten_before_all_know(monkeypatch)
    three = Replicas()
    three.decide(1, replicas=(0, 1))
    for number in range(2, 8):
        three.decide(number)
    three.talk(Reach)
    assert (max(three.horizons()) > 1) is wrong
    if not wrong:
        three.talk(Reach, Have, Compared, Decide)
        assert three.horizons() == [7, 7, 7]
        assert all(at(1) not in node.state.decided for node in three.nodes)


def test_nothing_is_forgotten_from_where_something_is_undecided() -> None:
    three = Replicas()
    three.tell(2, Prewrite(at(3), 1, KEY, Version(3, CLIENT, 1), b"3"))
    for number in (1, 2, 4, 5, 6, 7):
        three.decide(number)
    three.talk(Reach, Have, Compared)
    assert three.horizons() == [3, 3, 3]
    three.decide(3)
    three.talk(Reach, Have, Compared)
    assert three.horizons() == [7, 7, 7]


def test_a_replica_does_not_close_above_what_it_holds_undecided() -> None:
    """Otherwise the others settle above it, and when the replica is given up, they forget what it has decided with one."""
    three = Replicas()
    assert three.grants(3, 0)
    three.ask_to_commit(3, 0)
    for number in (1, 2, 4, 5, 6, 7):
        three.decide(number)
    three.talk(Reach, Have, Compared)
    # Replica 0 ends the transaction with 1 before it is gone for good. Only 1 can tell 2 that it has committed.
    three.end(3, ender=0, helper=1)
    assert three.outcome(3, 0) == written(3)
    for replica in (1, 2):
        three.nodes[replica].gone(0)
    three.talk(Reach, Have, Compared)
    three.talk(*BALLOTS, Have, Compared, Decide)
    assert [three.outcome(3, replica) for replica in (1, 2)] == [written(3)] * 2


def test_what_comes_late_of_forgotten_transactions_changes_nothing() -> None:
    three = Replicas()
    for number in range(1, 8):
        three.decide(number)
    three.talk(Reach, Have, Compared)
    state = three.nodes[0].state
    [answer] = three.tell(0, Prewrite(at(3), 1, KEY, Version(3, CLIENT, 1), b"3"))
    assert isinstance(answer, Denied)
    assert answer.hint == state.closed
    assert three.tell(0, Propose(at(3), FIRST, written(3))) == []
    assert three.tell(0, Decide(at(3), ABORT)) == []
    assert three.tell(0, Have((at(3), at(7))), 1) == [Compared((at(3), at(7)), ())]
    # Of another replica it can only be a copy that is late, or it was never decided.
    [ended] = three.tell(0, Prepare(at(3), Ballot(1, 0, 1)), 1)
    assert isinstance(ended, Ended)
    assert ended.decision == ABORT
    assert (state.undecided(), sorted(state.decided), state.cells[KEY].value) == ([], [at(7)], b"7")


def test_a_replica_closes_to_what_it_does_not_know_before_anything_is_forgotten() -> None:
    three = Replicas()
    for number in range(2, 8):
        three.decide(number, replicas=(0, 1))
    three.talk(Reach)
    assert three.horizons() == [0, 0, 0]
    assert three.nodes[0].state.closed == at(7)
    [answer] = three.tell(0, Prewrite(at(1), 1, KEY, Version(1, CLIENT, 1), b"1"))
    assert isinstance(answer, Denied)
    # A replica that is ending it may still be answered: it holds the transaction, so nobody can have forgotten it.
    assert three.tell(0, Prepare(at(1), Ballot(1, 0, 2)), 2)
    assert at(1) in three.nodes[0].state.promised


def test_one_that_never_comes_back_is_not_waited_for() -> None:
    three = Replicas()
    for number in range(1, 8):
        three.decide(number, replicas=(0, 1))
    three.talk(Reach, Have, Compared)
    assert three.horizons() == [0, 0, 0]
    for replica in (0, 1):
        three.nodes[replica].gone(2)
    three.decide(8, replicas=(0, 1))
    three.talk(Reach, Have, Compared)
    assert three.horizons()[:2] == [8, 8]
    assert not three.nodes[0].owes(2)


def test_one_that_is_silent_while_too_much_happens_is_given_up_and_can_do_nothing_more() -> None:
    three = Replicas(owed_max=10)
    for number in range(1, 12):
        three.decide(number, replicas=(0, 1))
    three.talk(Reach, Have, Compared, Decide)
    assert three.horizons() == [11, 11, 11], "while it answers it gets what it lacks, however much"
    late = [at(number) for number in range(12, 24)]
    for t in late:
        three.decide(t.tid, replicas=(0, 1))
    three.talk(rounds=SILENT_ROUNDS + 1)
    three.tell(0, Compared(tuple(late), ()), 1)
    told = three.nodes[0].receive(three.now, CLIENT, Decide(at(24), written(24)))
    assert [notice for notice in told if isinstance(notice, GaveUp)] == [GaveUp(2)]
    assert not three.nodes[0].owes(2)
    [answer] = three.tell(0, Have((at(1),)), 2)
    assert answer == Outdated(0)
    assert list(three.nodes[2].receive(three.now, 0, answer)) == [BeginAnew()]


def test_one_that_was_given_up_comes_back_without_its_disk() -> None:
    three = Replicas()
    for number in range(1, 4):
        three.decide(number)
    for replica in (0, 1):
        three.nodes[replica].gone(2)
    three.lose_disk(2, asks=(0, 1))
    assert three.nodes[2].state.decided == three.nodes[0].state.decided
    assert three.nodes[0].state.gone == set()
    assert three.nodes[0].owes(2), "whether it has got everything, it must say"
    assert three.grants(9, 2)
    assert not isinstance(three.tell(0, Have((at(1),)), 2)[0], Outdated)


@pytest.mark.parametrize("seed", range(3))
def test_a_long_run_keeps_little(seed: int) -> None:
    random = Random(seed)
    programs = [[random_program(random, 4) for _ in range(60)] for _ in range(3)]
    plan = Plan(
        replication="majority", replicas=3, clients=3, placement=Placement(3), programs=programs, tries=20,
        loss=0.05, duplicate=0.1, settings=FORGETFUL,
    )  # fmt: skip
    store = Store(plan, seed)
    assert store.run() is None
    assert len(store.decisions) > 100
    for host in store.world.hosts[:3]:
        assert isinstance(host.node, QuorumReplica)
        assert host.node.state.horizon > ZERO
        assert len(host.node.state.decided) < 20
