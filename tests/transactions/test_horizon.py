"""What replicas forget, by hand: never what somebody may still need, and in the long run everything else."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import pytest

from quire.model.packets import Packet
from quire.protocols.node import Send
from quire.protocols.transactions.placement import Placement
from quire.protocols.transactions.quorum_packets import Compared, Decide, Denied, Ended, Have, Prepare, Prewrite, Propose, Reach
from quire.protocols.transactions.quorum_replica import QuorumReplica
from quire.protocols.transactions.settings import Settings
from quire.protocols.transactions.timestamps import ZERO, Timestamp, Version
from quire.protocols.transactions.votes import ABORT, FIRST, Ballot, Decision
from tests.transactions import faults
from tests.transactions.plans import FORGETFUL, random_program
from tests.transactions.stores import Plan, Store

CLIENT = 3


def at(number: int) -> Timestamp:
    return Timestamp(number, CLIENT)


def written(number: int) -> Decision:
    return Decision(True, {"k": (Version(number, CLIENT, 1), b"%d" % number)})


class Three:
    """Three replicas, between which only those packets pass that a test lets through."""

    def __init__(self, remembered: int = 1) -> None:
        settings = Settings(remembered=remembered)
        self.replicas = [QuorumReplica(address, Placement(3), settings, Random(1).random) for address in range(3)]
        self.now = 0

    def tell(self, to: int, packet: Packet, source: int = CLIENT) -> list[Packet]:
        """What it answers to the source."""
        effects = self.replicas[to].receive(self.now, source, packet)
        return [effect.packet for effect in effects if isinstance(effect, Send) and effect.to == (source,)]

    def decide(self, number: int, replicas: Iterable[int] = range(3)) -> None:
        for replica in replicas:
            self.tell(replica, Decide(at(number), written(number)))

    def talk(self, *kinds: type[Packet], rounds: int = 6) -> None:
        """Let time pass; what is not of these kinds is lost."""
        for _ in range(rounds):
            self.now += 1_000_000_000
            waiting = [(node.address, effect) for node in self.replicas for effect in node.wake(self.now)]
            while waiting:
                source, effect = waiting.pop(0)
                if isinstance(effect, Send) and isinstance(effect.packet, kinds):
                    for to in effect.to:
                        waiting += [(to, each) for each in self.replicas[to].receive(self.now, source, effect.packet)]

    def horizons(self) -> list[int]:
        return [node.state.horizon.tid for node in self.replicas]


def test_what_all_know_is_forgotten_but_for_the_latest() -> None:
    three = Three(remembered=2)
    for number in range(1, 10):
        three.decide(number)
    three.talk(Reach, Have, Compared)
    assert three.horizons() == [8, 8, 8]
    assert [sorted(t.tid for t in node.state.decided) for node in three.replicas] == [[8, 9]] * 3
    assert [node.state.cells["k"].value for node in three.replicas] == [b"9"] * 3
    assert all(node.idle() and node.due() is None for node in three.replicas)


@pytest.mark.parametrize("wrong", [False, True])
def test_what_one_of_them_lacks_is_kept_until_it_has_it(wrong: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if wrong:
        faults.decisions_are_forgotten_before_all_know(monkeypatch)
    three = Three()
    three.decide(1, replicas=(0, 1))
    for number in range(2, 8):
        three.decide(number)
    three.talk(Reach)
    assert (max(three.horizons()) > 1) is wrong
    if not wrong:
        three.talk(Reach, Have, Compared, Decide)
        assert three.horizons() == [7, 7, 7]
        assert all(at(1) not in node.state.decided for node in three.replicas)


def test_nothing_is_forgotten_from_where_something_is_undecided() -> None:
    three = Three()
    three.tell(2, Prewrite(at(3), 1, "k", Version(3, CLIENT, 1), b"3"))
    for number in (1, 2, 4, 5, 6, 7):
        three.decide(number)
    three.talk(Reach, Have, Compared)
    assert three.horizons() == [3, 3, 3]
    three.decide(3)
    three.talk(Reach, Have, Compared)
    assert three.horizons() == [7, 7, 7]


def test_what_comes_late_of_forgotten_transactions_changes_nothing() -> None:
    three = Three()
    for number in range(1, 8):
        three.decide(number)
    three.talk(Reach, Have, Compared)
    state = three.replicas[0].state
    [answer] = three.tell(0, Prewrite(at(3), 1, "k", Version(3, CLIENT, 1), b"3"))
    assert isinstance(answer, Denied)
    assert answer.hint == state.closed
    assert three.tell(0, Propose(at(3), FIRST, written(3))) == []
    assert three.tell(0, Decide(at(3), ABORT)) == []
    assert three.tell(0, Have((at(3), at(7))), 1) == [Compared((at(3), at(7)), ())]
    # Of another replica it can only be a copy that is late, or it was never decided.
    [ended] = three.tell(0, Prepare(at(3), Ballot(1, 0, 1)), 1)
    assert isinstance(ended, Ended)
    assert ended.decision == ABORT
    assert (state.undecided(), sorted(state.decided), state.cells["k"].value) == ([], [at(7)], b"7")


def test_a_replica_closes_to_what_it_does_not_know_before_anything_is_forgotten() -> None:
    three = Three()
    for number in range(2, 8):
        three.decide(number, replicas=(0, 1))
    three.talk(Reach)
    assert three.horizons() == [0, 0, 0]
    assert three.replicas[0].state.closed == at(7)
    [answer] = three.tell(0, Prewrite(at(1), 1, "k", Version(1, CLIENT, 1), b"1"))
    assert isinstance(answer, Denied)
    # A replica that is ending it may still be answered: it holds the transaction, so nobody can have forgotten it.
    assert three.tell(0, Prepare(at(1), Ballot(1, 0, 2)), 2)
    assert at(1) in three.replicas[0].state.promised


def test_one_that_never_comes_back_is_not_waited_for() -> None:
    three = Three()
    for number in range(1, 8):
        three.decide(number, replicas=(0, 1))
    three.talk(Reach, Have, Compared)
    assert three.horizons() == [0, 0, 0]
    for replica in (0, 1):
        three.replicas[replica].gone(2)
    three.decide(8, replicas=(0, 1))
    three.talk(Reach, Have, Compared)
    assert three.horizons()[:2] == [8, 8]
    assert not three.replicas[0].owes(2)


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
    for place in store.world.places[:3]:
        assert isinstance(place.node, QuorumReplica)
        assert place.node.state.horizon > ZERO
        assert len(place.node.state.decided) < 20
