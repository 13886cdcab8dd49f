"""Replicas with disks: nothing is said before it is durable, and a new store is founded by all of its replicas together."""

from __future__ import annotations

import msgspec
import pytest

from quire.model.packets import Packet
from quire.protocols.gate import Gate
from quire.protocols.node import Effect, Notice, Save, Send
from quire.protocols.transactions import records
from quire.protocols.transactions.cells import Cell
from quire.protocols.transactions.durable import Durable, restored
from quire.protocols.transactions.quorum_packets import (
    Accepted,
    Decide,
    Fetch,
    Granted,
    Prepare,
    Prewrite,
    Promised,
    Propose,
    Recover,
    Snapshot,
)
from quire.protocols.transactions.quorum_replica import QuorumReplica
from quire.protocols.transactions.timestamps import Version
from quire.protocols.transactions.votes import FIRST, Ballot, Stage
from tests.transactions.by_hand import CLIENT, KEY, Replicas, at, written


def one() -> QuorumReplica:
    """A replica that has begun, and writes down what it must not forget."""
    return Replicas(kept=True).nodes[0]


def saved(effects: object) -> list[object]:
    return [effect.record for effect in effects if isinstance(effect, Save)]  # type: ignore[attr-defined]


BALLOT = Ballot(1, 0, 1)

SAID: dict[str, tuple[int, Packet, records.Record, type[Packet]]] = {
    "a write": (
        CLIENT,
        Prewrite(at(1), 1, KEY, Version(1, CLIENT, 1), b"1"),
        records.Prewrote(at(1), KEY, Version(1, CLIENT, 1), b"1"),
        Granted,
    ),
    "a read": (CLIENT, Fetch(at(1), 1, KEY), records.Capped(65), Granted),
    "a promise": (1, Prepare(at(1), BALLOT), records.Promises(at(1), BALLOT), Promised),
    "what was accepted": (CLIENT, Propose(at(1), FIRST, written(1)), records.Accepts(at(1), FIRST, written(1)), Accepted),
    "who lost its disk": (1, Recover(5), records.Known(1, 5), Snapshot),
}


@pytest.mark.parametrize("what", SAID)
def test_what_an_answer_stands_for_is_written_before_it_leaves(what: str) -> None:
    source, packet, record, answer = SAID[what]
    effects = list(one().receive(0, source, packet))
    assert effects[0] == Save(record)
    assert isinstance(effects[-1], Send)
    assert isinstance(effects[-1].packet, answer)


def test_reads_below_what_is_written_already_need_no_disk() -> None:
    replica = one()
    replica.receive(0, CLIENT, Fetch(at(1), 1, KEY))
    assert saved(replica.receive(0, CLIENT, Fetch(at(2), 1, KEY))) == []


@pytest.mark.parametrize("what", SAID)
def test_what_comes_again_is_not_written_again(what: str) -> None:
    source, packet, _, _ = SAID[what]
    replica = one()
    assert len(saved(replica.receive(0, source, packet))) == 1
    assert saved(replica.receive(0, source, packet)) == []


def test_a_ballot_of_its_own_is_written_before_it_is_used() -> None:
    replica = one()
    replica.receive(0, CLIENT, Prewrite(at(1), 1, KEY, Version(1, CLIENT, 1), b"1"))
    due = replica.due()
    assert due is not None
    effects = list(replica.wake(due))
    assert records.Tries(at(1), Ballot(1, 0, 0)) in saved(effects)
    assert isinstance(effects[0], Save)


def test_without_a_disk_nothing_is_to_be_written() -> None:
    replica = Replicas().nodes[0]
    assert saved(replica.receive(0, CLIENT, Prewrite(at(1), 1, KEY, Version(1, CLIENT, 1), b"1"))) == []


class Said(Notice, frozen=True):
    word: str


def test_effects_leave_in_order_each_when_all_records_before_it_are_durable() -> None:
    gate = Gate()
    record = records.Capped(1)
    before, between, after = Said("before"), Said("between"), Said("after")
    effects: list[Effect] = [before, Save(record), between, Save(record), after]
    assert gate.admit(effects) == [before, Save(record), Save(record)]
    assert gate.admit([Said("later")]) == []
    assert gate.synced(1) == [between]
    assert gate.synced(2) == [after, Said("later")]
    assert gate.admit([before]) == [before]


class Founding:
    """Three replicas that have nothing, and the packets between them."""

    def __init__(self, count: int = 3) -> None:
        self.three = Replicas(count, lost=1, kept=True)
        self.written: dict[int, list[object]] = {address: [] for address in range(count)}

    def ask(self, asker: int, *others: int) -> None:
        """One asks others, who answer."""
        nodes, now = self.three.nodes, self.three.now
        for other in others:
            stage = nodes[asker].state.stage
            packet = Recover(nodes[asker].state.incarnation, stage)
            for effect in self.note(other, nodes[other].receive(now, asker, packet)):
                if isinstance(effect, Send) and isinstance(effect.packet, Snapshot):
                    self.note(asker, nodes[asker].receive(now, other, effect.packet))

    def note(self, address: int, effects: object) -> list[Effect]:
        self.written[address] += saved(effects)
        return list(effects)  # type: ignore[call-overload, no-any-return]

    def stages(self) -> list[Stage]:
        return [node.state.stage for node in self.three.nodes]

    def restart(self, address: int) -> None:
        """With what it had written."""
        state = restored(self.written[address], lambda _key: True)  # type: ignore[arg-type]
        begins = {"lost": 2} if state is None else {"state": state}
        self.three.nodes[address] = self.three._make(address, kept=True, **begins)


def test_nobody_begins_before_all_have_written_that_they_found_the_store() -> None:
    founding = Founding()
    founding.ask(0, 1)
    assert founding.stages() == [Stage.BLANK] * 3, "somebody else may have something"
    founding.ask(0, 2)
    assert founding.stages() == [Stage.FOUNDING, Stage.BLANK, Stage.BLANK]
    founding.ask(1, 0, 2)
    founding.ask(0, 1, 2)
    assert founding.stages() == [Stage.FOUNDING, Stage.FOUNDING, Stage.BLANK]
    founding.ask(2, 0, 1)
    assert founding.stages() == [Stage.FOUNDING] * 2 + [Stage.BEGUN], "all others found it"
    assert founding.written[2] == [records.Emptied(), records.Founds(1), *founding.written[2][2:-1], records.Began(1)]


def test_who_founds_a_store_that_another_has_begun_begins_too_even_after_a_restart() -> None:
    founding = Founding()
    for asker, others in ((0, (1, 2)), (1, (0, 2)), (2, (0, 1))):
        founding.ask(asker, *others)
    assert founding.stages()[2] is Stage.BEGUN
    founding.restart(0)
    assert founding.stages()[0] is Stage.FOUNDING, "it knows from its disk that it never voted"
    founding.ask(0, 2)
    assert founding.stages()[0] is Stage.BEGUN


def test_who_has_nothing_while_another_has_begun_lost_its_disk_and_needs_enough_others() -> None:
    founding = Founding()
    for asker, others in ((0, (1, 2)), (1, (0, 2)), (2, (0, 1)), (0, (2,)), (1, (2,))):
        founding.ask(asker, *others)
    assert founding.stages() == [Stage.BEGUN] * 3
    three = founding.three
    three.decide(4, replicas=(1, 2))
    founding.written[0] = []
    founding.restart(0)
    founding.ask(0, 1)
    assert founding.stages()[0] is Stage.BLANK
    founding.ask(0, 2)
    assert founding.stages()[0] is Stage.BEGUN
    assert three.outcome(4, 0) == written(4)


def test_one_replica_alone_begins_by_itself() -> None:
    replica = Founding(1).three.nodes[0]
    assert [type(record) for record in saved(replica.wake(0))] == [records.Emptied, records.Founds, records.Began]
    assert not replica.recovering


def test_an_incarnation_that_is_not_new_is_given_up_for_a_later_one() -> None:
    """A clock that went back."""
    three = Replicas()
    three.nodes[0].state.know(2, 7)
    three.nodes[1].state.know(2, 7)
    three.nodes[2] = three._make(2, lost=3)
    [answer] = three.tell(0, Recover(3), 2)
    asks = [effect.packet for effect in three.nodes[2].receive(0, 0, answer) if isinstance(effect, Send)]
    assert {packet.incarnation for packet in asks if isinstance(packet, Recover)} == {8}
    for other in (0, 1):
        [answer] = three.tell(other, Recover(8), 2)
        three.tell(2, answer, other)
    assert three.nodes[2].state.incarnation == 8


def test_what_an_attempt_to_recover_had_written_counts_no_more_after_the_next() -> None:
    old = records.Piece(cells={"gone": Cell(Version(1, CLIENT, 1), b"old")})
    written_twice: list[records.AnyRecord] = [records.Emptied(), old, records.Emptied(), records.Began(2)]
    assert restored(written_twice, lambda _key: True) == Durable(incarnation=2).without_read_timestamps()
    assert restored(written_twice[:2], lambda _key: True) is None, "the first was never completed"


def test_whoever_lost_its_disk_writes_all_that_it_was_told() -> None:
    three = Replicas()
    three.decide(3)
    for replica in (0, 1):
        assert three.grants(5, replica)
    three.nodes[2] = three._make(2, lost=1, kept=True)
    told: list[object] = []
    for other in (0, 1):
        [answer] = three.tell(other, Recover(1), 2)
        told += saved(three.nodes[2].receive(0, other, answer))
    known = msgspec.structs.replace(three.nodes[2].state.without_read_timestamps(), changes=None)
    assert restored(told, lambda _key: True) == known  # type: ignore[arg-type]
    assert saved(three.nodes[2].receive(0, CLIENT, Decide(at(6), written(6)))) == [records.Decided(at(6), written(6))]
