"""The rules one by one: copies of a unit, who is to run it next, and what of it another process must know to go on."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from quire.model.errors import ProtocolViolation
from quire.model.messages import Run, pack
from quire.protocols.node import Effects, Send
from quire.protocols.sequencing import packets as inner
from quire.protocols.sequencing.directory import Directory
from quire.protocols.sequencing.events import Event
from quire.protocols.sequencing.failover import Register, SequencerProcess
from quire.protocols.sequencing.failover import packets as wire
from quire.protocols.sequencing.failover.configurations import CLIENT, REGISTER, Configuration, Name
from quire.protocols.sequencing.failover.options import SurvivingOptions
from quire.protocols.sequencing.failover.succession import Succession
from quire.protocols.sequencing.failover.unit_state import captured, restore
from quire.protocols.sequencing.senders import Numbers
from quire.protocols.sequencing.sequencer import Sequencer
from quire.protocols.sequencing.state import GroupState

A, B, C = Name(10, 0), Name(11, 0), Name(12, 0)
UNIT, OTHER, REG = 10, 11, 20
OPTIONS = SurvivingOptions(order="total", backups=1, balance_ticks=0)


def process(name: Name, *told: Configuration) -> SequencerProcess:
    made = SequencerProcess(name, (10, 11, 12), (UNIT, OTHER), REG, OPTIONS)
    for version, each in enumerate(told):
        made.receive(0, REG, wire.Configured(version, (each,)))
    return made


def sends(effects: Effects, kind: type[Any]) -> list[Any]:
    return [each.packet for each in effects if isinstance(each, Send) and isinstance(each.packet, kind)]


def message(counter: int, client: int = 0, group: str = "G") -> inner.DoMulticast:
    return inner.DoMulticast(group, client, counter, counter, Run(client, counter, 1, pack([b"m"])))


FIRST = Configuration(UNIT, 0, A, (B,), fresh=True)


def pair() -> tuple[SequencerProcess, SequencerProcess]:
    """A primary and its backup, of a unit that is live and has a group of clients 0 and 1."""
    primary, backup = process(A, FIRST), process(B, FIRST)
    sequencer = primary.replicas[UNIT].sequencer
    assert sequencer is not None
    sequencer.groups["G"] = GroupState("G", members={0: 0, 1: 0}, reached={0: 0, 1: 0})
    primary.replicas[UNIT]._pieces.clear()
    [snapshot] = sends(primary.replicas[UNIT].repeat(), wire.Snapshot)
    [ack] = sends(backup.receive(0, A.address, snapshot), wire.Recorded)
    assert sends(primary.receive(0, B.address, ack), wire.InSync)
    primary.receive(0, REG, wire.Live(UNIT, 0))
    return primary, backup


def ask(process: SequencerProcess, packet: Any) -> Effects:
    return process.receive(0, packet.client, wire.Letter(UNIT, CLIENT, 0, packet))


def test_records_that_come_out_of_order_are_acknowledged_in_order() -> None:
    primary, backup = pair()
    records = [sends(ask(primary, message(counter)), wire.Record)[0] for counter in range(3)]
    acknowledged = [sends(backup.receive(0, A.address, records[number]), wire.Recorded)[0].index for number in (2, 1, 0)]
    assert acknowledged == [0, 0, 3]
    sequencer = backup.replicas[UNIT].sequencer
    assert sequencer is not None
    assert sequencer.groups["G"].seq == 3


def test_a_record_that_is_not_acknowledged_is_sent_again() -> None:
    primary, backup = pair()
    [record] = sends(ask(primary, message(0)), wire.Record)
    assert not primary.replicas[UNIT].repeat()
    assert sends(primary.replicas[UNIT].repeat(), wire.Record) == [record]
    [ack] = sends(backup.receive(0, A.address, record), wire.Recorded)
    assert sends(primary.receive(0, B.address, ack), wire.Letter)
    assert not primary.replicas[UNIT].repeat()


def test_an_acknowledgement_of_an_earlier_life_counts_for_nothing() -> None:
    primary, _ = pair()
    ask(primary, message(0))
    assert not primary.receive(0, B.address, wire.Recorded(UNIT, 0, 1, 1))
    assert primary.receive(0, B.address, wire.Recorded(UNIT, 0, 0, 1))


def test_a_backup_of_the_new_epoch_takes_no_record_before_its_snapshot() -> None:
    primary, backup = pair()
    [old] = sends(ask(primary, message(0)), wire.Record)
    backup.receive(0, REG, wire.Configured(5, (Configuration(UNIT, 1, A, (B,)),)))
    assert not backup.receive(0, A.address, old)
    assert not backup.receive(0, A.address, wire.Record(UNIT, 1, 1, 0, message(0)))


def test_a_long_state_travels_in_pieces_of_which_few_are_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quire.protocols.sequencing.failover.replica.PIECE_BYTES", 16)
    monkeypatch.setattr("quire.protocols.sequencing.failover.replica.PIECES_ON_THE_WAY", 2)
    primary, backup = process(A, FIRST), process(B, FIRST)
    sequencer = primary.replicas[UNIT].sequencer
    assert sequencer is not None
    sequencer.groups["a group with a long name, so that there are many pieces"] = GroupState("G")
    primary.replicas[UNIT]._pieces.clear()
    on_the_way = sends(primary.replicas[UNIT].repeat(), wire.Snapshot)
    lost, most = on_the_way.pop(), 0
    while on_the_way:
        most = max(most, len(on_the_way))
        for answer in backup.receive(0, A.address, on_the_way.pop(0)):
            assert isinstance(answer, Send)
            on_the_way += sends(primary.receive(0, B.address, answer.packet), wire.Snapshot)
        if not on_the_way and lost is not None:
            lost, on_the_way = None, sends(primary.replicas[UNIT].repeat(), wire.Snapshot)
    assert most <= 2
    copy = backup.replicas[UNIT].sequencer
    assert copy is not None
    assert copy.groups == {"G": GroupState("G")}


def test_who_was_excluded_keeps_its_state_until_others_are_known_to_have_it() -> None:
    _, backup = pair()
    replica = backup.replicas[UNIT]
    backup.receive(0, REG, wire.Configured(5, (Configuration(UNIT, 1, A, (C,)),)))
    assert replica.sequencer is not None
    backup.receive(0, REG, wire.Configured(6, (Configuration(UNIT, 1, A, (C,), live=True),)))
    assert replica.sequencer is None


def test_a_primary_whose_backup_does_not_answer_takes_no_more_than_it_can_keep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quire.protocols.sequencing.failover.replica.UNACKNOWLEDGED_MAX", 3)
    primary, _ = pair()
    assert [bool(ask(primary, message(counter))) for counter in range(5)] == [True, True, True, False, False]


def test_letters_are_believed_only_of_who_may_write_them() -> None:
    primary, _ = pair()
    for source, letter in (
        (0, wire.Letter(UNIT, REGISTER, 0, inner.Evict((1,)))),
        (0, wire.Letter(UNIT, OTHER, 0, inner.Stable({}))),
        (11, wire.Letter(UNIT, CLIENT, 0, message(0, client=11))),
        (0, wire.Letter(UNIT, CLIENT, 0, message(0, client=1))),
        (0, wire.Letter(UNIT, CLIENT, 0, inner.Lookup("G"))),
    ):
        with pytest.raises(ProtocolViolation):
            primary.receive(0, source, letter)
    for packet in (wire.Record(UNIT, 0, 1, 0, message(0)), wire.Live(UNIT, 0), wire.Configured(9, ())):
        with pytest.raises(ProtocolViolation):
            primary.receive(0, 0, packet)


# Who is next.


def live(succession: Succession, unit: int = UNIT) -> Configuration:
    found = succession.configurations[unit]
    assert succession.in_sync(unit, found.epoch)
    return succession.configurations[unit]


def service(*names: Name, backups: int = 1) -> Succession:
    succession = Succession((UNIT,), backups, len(names))
    for name in names:
        succession.arrived(name)
    return succession


def test_only_a_copy_of_the_last_live_epoch_becomes_primary() -> None:
    succession = service(A, B, C)
    assert live(succession).names == (A, B)
    succession.missed(B)
    assert succession.configurations[UNIT].names == (A, C)
    # A is lost before C has the state: C may not go on, although it is the only one who is there.
    succession.missed(A)
    assert succession.waiting == {UNIT}
    succession.arrived(B)
    assert succession.configurations[UNIT].names == (B, C)
    assert not succession.waiting


def test_an_epoch_that_is_over_does_not_become_live() -> None:
    succession = service(A, B, C)
    assert live(succession).epoch == 0
    succession.missed(B)
    assert not succession.in_sync(UNIT, 0)
    assert succession.live[UNIT] == (A, B)
    assert succession.in_sync(UNIT, 1)
    assert succession.live[UNIT] == (A, C)


def test_a_unit_waits_rather_than_go_on_without_a_backup() -> None:
    succession = service(A, B)
    live(succession)
    succession.missed(B)
    assert succession.waiting == {UNIT}
    assert succession.configurations[UNIT].names == (A, B)


def test_whoever_comes_back_in_another_life_has_no_state() -> None:
    succession = service(A, B, C)
    live(succession)
    succession.arrived(Name(10, 1))
    assert succession.configurations[UNIT].primary == B
    assert not succession.gone()
    succession.arrived(Name(11, 1))
    assert succession.gone() == [UNIT]
    succession.begin_anew(UNIT, 7)
    assert succession.configurations[UNIT].fresh
    assert succession.configurations[UNIT].settled == 7


def test_a_unit_begins_anew_when_its_last_copy_comes_back_without_its_state() -> None:
    register = Register(REG, (10, 11, 12), (UNIT,), OPTIONS)
    for name in (A, B, C):
        register.receive(0, name.address, wire.Here(name.life, -1))
    assert live(register.succession).names == (A, B)
    register.directory.receive(0, 0, inner.Create("tea"))
    register.directory.receive(0, UNIT, inner.Hosted("tea"))
    # A is taken for gone while it is on its way back: then nobody can be chosen, neither before it is heard of nor at once.
    register.receive(0, C.address, wire.Missing(A))
    for address in (B.address, A.address):
        register.receive(0, address, wire.Here(1, -1))
    assert register.directory.lost == {"tea"}
    found = register.succession.configurations[UNIT]
    assert found.fresh
    assert register.succession.there.issuperset(found.names)


def test_a_unit_waits_for_a_copy_that_may_come_back() -> None:
    succession = service(A, B, C)
    live(succession)
    succession.missed(A)
    succession.arrived(Name(11, 1))
    # Whoever was taken for gone may only have been cut off.
    assert not succession.gone()
    succession.arrived(A)
    assert succession.configurations[UNIT].primary == A


def test_a_late_word_of_an_earlier_life_changes_nothing() -> None:
    succession = service(Name(10, 3), B)
    version = succession.version
    assert not succession.arrived(A)
    assert not succession.missed(A)
    assert succession.version == version


# What of a unit another process must know.


def known() -> Sequencer:
    """A sequencer with something of everything."""
    sequencer = Sequencer(UNIT, (UNIT, OTHER), REGISTER, OPTIONS)
    for group, members in (("G", {0: 0, 1: 2}), ("H", {0: 0}), ("K", {0: 0})):
        sequencer.groups[group] = GroupState(group, members=members, reached=dict.fromkeys(members, 0), seq=2)
    state = sequencer.groups["G"]
    state.departing[2], state.reached[2] = 2, 1
    state.senders[0] = Numbers(3, {2: (1, 2, None)})
    state.requests.update({1: 4, 2: 5})
    state.history[2] = Event("G", 2, 2, 2, 5)
    sequencer.forward["X"] = OTHER
    sequencer.receive(0, OTHER, inner.Transfer(6, ("T", "U"), GroupState("T")))
    sequencer.receive(0, REGISTER, inner.Open(7, ("H",), OTHER))
    sequencer.receive(0, 0, message(9, client=0))
    sequencer.moves.settled = 5
    sequencer.evicted.add(9)
    sequencer.forgetting["G", 8] = 3
    sequencer.founded.update({"G", "H", "K"})
    return sequencer


def copied(sequencer: Sequencer) -> Sequencer:
    other = Sequencer(UNIT, (UNIT, OTHER), REGISTER, OPTIONS)
    restore(other, captured(sequencer))
    return other


def test_another_process_gets_to_know_everything_that_decides_anything() -> None:
    one = known()
    other = copied(one)
    assert other.groups == one.groups
    assert (other.forward, other.evicted, other.founded) == (one.forward, one.evicted, one.founded)
    assert (other.forgetting, other.held) == (one.forgetting, one.held)
    assert one.held
    assert (other.moves.giving, other.moves.taking, other.moves.settled) == (one.moves.giving, one.moves.taking, 5)
    assert one.moves.giving
    assert one.moves.taking
    assert other.moves.suspended("H")
    assert not other.moves.on_the_way("H")


def test_what_the_copy_knows_is_its_own() -> None:
    one = known()
    other = copied(one)
    other.groups["G"].members[7] = 3
    assert 7 not in one.groups["G"].members


# Clients that are gone, and groups that are on their way.


@pytest.mark.parametrize("committed", [False, True])
def test_who_was_evicted_while_a_group_was_on_its_way_leaves_it_however_that_ended(committed: bool) -> None:
    options = msgspec.structs.replace(OPTIONS, order="hybrid")
    giver, taker = (Sequencer(each, (UNIT, OTHER), REGISTER, options) for each in (UNIT, OTHER))
    giver.groups["G"] = GroupState("G", members={0: 0, 1: 0}, reached={0: 0, 1: 0})
    [transfer] = sends(giver.receive(0, REGISTER, inner.Open(1, ("G",), OTHER)), inner.Transfer)
    taker.receive(0, UNIT, transfer)
    for each in (giver, taker):
        each.receive(0, REGISTER, inner.Evict((0,)))
    assert giver.groups["G"].members == {0: 0, 1: 0}
    for each in (giver, taker):
        each.receive(0, REGISTER, inner.Outcome(1, committed))
    [state] = [*giver.groups.values(), *taker.groups.values()]
    assert (state.members, state.departing) == ({1: 0}, {})


def test_what_another_sequencer_passes_on_of_an_evicted_client_is_not_carried_out() -> None:
    sequencer = Sequencer(UNIT, (UNIT, OTHER), REGISTER, OPTIONS)
    sequencer.groups["G"] = GroupState("G", members={1: 0}, reached={1: 0})
    sequencer.receive(0, REGISTER, inner.Evict((0,)))
    assert sequencer.receive(0, OTHER, message(0)) == (Send(inner.Expelled(), (0,)),)
    assert sequencer.groups["G"].seq == 0


def test_a_join_that_was_granted_before_its_client_was_evicted_is_not_carried_out() -> None:
    sequencer = Sequencer(UNIT, (UNIT, OTHER), REGISTER, OPTIONS)
    sequencer.groups["G"] = GroupState("G", members={1: 0}, reached={1: 0})
    sequencer.receive(0, 0, inner.Join("G", 0, 1))
    sequencer.receive(0, REGISTER, inner.Evict((0,)))
    assert not sequencer.receive(0, REGISTER, inner.JoinAnswer("G", 0, 1, granted=True))
    assert sequencer.groups["G"].members == {1: 0}


def test_a_client_that_was_evicted_while_it_was_about_to_join_does_not_stay_entered() -> None:
    directory = Directory(REGISTER, (UNIT, OTHER), OPTIONS)
    directory.receive(0, 0, inner.Create("G"))
    place = directory.locations["G"]
    sequencer = Sequencer(place, (UNIT, OTHER), REGISTER, OPTIONS)
    [hosted] = sends(sequencer.receive(0, REGISTER, inner.Host("G")), inner.Hosted)
    directory.receive(0, place, hosted)
    directory.receive(0, 0, inner.Prepare("G", 1))
    assert directory.entries["G"] == {0: 1}
    [evict] = [each.packet for each in directory.receive(0, place, inner.Suspect(0)) if each.to == (place,)]  # type: ignore[union-attr]
    sequencer.receive(0, REGISTER, evict)
    for forget in sends(sequencer.wake(1), inner.Forget):
        directory.receive(0, place, forget)
    assert directory.entries["G"] == {}


def test_a_late_word_that_a_client_has_left_does_not_undo_that_it_joined_again() -> None:
    directory = Directory(REGISTER, (UNIT, OTHER), OPTIONS)
    directory.receive(0, 5, inner.Create("G"))
    place = directory.locations["G"]
    directory.receive(0, place, inner.JoinRequest("G", 0, 3))
    directory.receive(0, place, inner.Forget("G", 0, 2))
    assert directory.entries["G"] == {0: 3}
    directory.receive(0, place, inner.Forget("G", 0, 4))
    assert directory.entries["G"] == {}
