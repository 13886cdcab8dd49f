"""Units without backups: who is told what when, and how a process that knows nothing goes on."""

from __future__ import annotations

import pytest

from quire.model.errors import ProtocolViolation
from quire.model.messages import Run, pack
from quire.protocols.node import Effects
from quire.protocols.sequencing import packets as inner
from quire.protocols.sequencing.errors import GroupLost
from quire.protocols.sequencing.events import BLANK, JOIN, Event, Remembered
from quire.protocols.sequencing.failover import Register, SequencerProcess
from quire.protocols.sequencing.failover import packets as wire
from quire.protocols.sequencing.failover.configurations import CLIENT, REGISTER, Configuration, Name
from quire.protocols.sequencing.notices import Failed
from quire.protocols.sequencing.sequencer import Sequencer
from quire.protocols.sequencing.state import GroupState
from tests.sequencing.failover.testimonies import (
    LIFE,
    OPTIONS,
    OTHER,
    REG,
    UNIT,
    A,
    B,
    leave,
    member,
    message,
    said,
    sends,
    told_by,
)

# Sequencers: who is told what when.


def sequencer(members: tuple[int, ...] = (0, 1)) -> Sequencer:
    made = Sequencer(UNIT, (UNIT, OTHER), REGISTER, OPTIONS)
    made.groups["G"] = GroupState("G", members=dict.fromkeys(members, 0), reached=dict.fromkeys(members, 0))
    return made


def from_client(counter: int, client: int) -> inner.DoMulticast:
    return inner.DoMulticast("G", client, counter, counter, Run(client, counter, 1, pack([b"m"])))


def test_a_sender_outside_is_told_a_number_only_when_a_member_has_the_message() -> None:
    made = sequencer()
    for _ in range(2):
        assert not sends(made.receive(0, 9, from_client(0, 9)), inner.Ack)
    made.receive(0, 2, inner.Join("G", 2, 1))
    made.receive(0, REGISTER, inner.JoinAnswer("G", 2, 1, granted=True))
    # Who joined after it did not get it.
    assert not sends(made.receive(0, 9, from_client(0, 9)), inner.Ack)
    [ack] = sends(made.receive(0, 1, inner.Fetch(1, {"G": 1})), inner.Ack)
    assert (ack.counter, ack.seq, ack.members) == (0, 1, (0, 1))
    assert sends(made.receive(0, 9, from_client(0, 9)), inner.Ack) == [ack]


def test_a_sender_in_the_group_gets_its_message_again_instead_of_a_number() -> None:
    made = sequencer()
    made.receive(0, 0, from_client(0, 0))
    again = made.receive(0, 0, from_client(0, 0))
    assert [event.seq for event in sends(again, Event)] == [1]
    assert not sends(again, inner.Ack)


def test_without_members_a_number_is_told_at_once() -> None:
    assert sends(sequencer(()).receive(0, 9, from_client(0, 9)), inner.Ack)


def test_a_leaver_counts_until_everybody_has_its_leave() -> None:
    made = sequencer()
    made.receive(0, 0, from_client(0, 0))
    made.receive(0, 1, inner.Leave("G", 1, 1))
    assert not sends(made.receive(0, 1, inner.LeftAck("G", 1, 2)), inner.Forget)
    assert not sends(made.receive(0, 1, inner.Join("G", 1, 2)), inner.JoinRequest)
    assert made.groups["G"].is_sound()
    assert sends(made.receive(0, 0, inner.Fetch(0, {"G": 2})), inner.Forget) == [inner.Forget("G", 1, 1)]
    assert sends(made.receive(0, 1, inner.Join("G", 1, 2)), inner.JoinRequest)


def test_an_evicted_client_counts_until_everybody_has_its_leave() -> None:
    made = sequencer()
    assert not sends(made.receive(0, REGISTER, inner.Evict((1,))), inner.Forget)
    assert sends(made.receive(0, 0, inner.Fetch(0, {"G": 1})), inner.Forget)


# Processes, and the register.


def rebuilding() -> SequencerProcess:
    """The second process is to go on with a unit that the first had, and has asked for its witnesses."""
    made = SequencerProcess(B, (10, 11), (UNIT, OTHER), REG, OPTIONS)
    found = Configuration(UNIT, 1, B, (), rebuilt=True, life=LIFE)
    [asked] = sends(made.receive(0, REG, wire.Configured(3, (found,))), wire.AskWitnesses)
    assert asked == wire.AskWitnesses(UNIT, 1)
    return made


def witnesses(process: SequencerProcess, groups: dict[str, tuple[int, ...]], evicted: tuple[int, ...] = ()) -> Effects:
    return process.receive(0, REG, wire.Witnesses(UNIT, 1, groups, evicted, 4))


def test_a_unit_is_rebuilt_when_every_witness_has_testified() -> None:
    process = rebuilding()
    asked = witnesses(process, {"G": (0, 1)})
    assert sends(asked, wire.Rebuild) == [wire.Rebuild(UNIT, 1, LIFE, ("G",))] * 2
    assert not sends(process.receive(0, 0, told_by(0, 1, (message(1),))), wire.InSync)
    assert not process.receive(0, 0, wire.Letter(UNIT, CLIENT, 1, inner.Fetch(0, {"G": 1})))
    [synced] = sends(process.receive(0, 1, told_by(1, 0)), wire.InSync)
    assert synced == wire.InSync(UNIT, 1)
    process.receive(0, REG, wire.Live(UNIT, 1))
    made = process.replicas[UNIT].sequencer
    assert made is not None
    assert (made.groups["G"].seq, made.groups["G"].life, made.moves.settled) == (2, LIFE, 4)
    [event] = said(process.receive(0, 0, wire.Letter(UNIT, CLIENT, 1, from_client(1, 0))), Event)
    assert (event.seq, event.remembered.life) == (3, LIFE)


def test_a_group_is_lost_with_a_client_that_was_evicted_and_the_others_are_not() -> None:
    process = rebuilding()
    witnesses(process, {"G": (0, 1), "H": (0,)}, evicted=(1,))
    told = wire.Testimony(UNIT, 1, "H", 0, (0,))
    [synced] = sends(process.receive(0, 0, told), wire.InSync)
    assert synced == wire.InSync(UNIT, 1, ("G",))
    made = process.replicas[UNIT].sequencer
    assert made is not None
    assert ([*made.groups], made.evicted) == (["H"], {1})


def test_a_number_of_which_only_members_of_another_group_have_heard_is_not_given_again() -> None:
    process = rebuilding()
    witnesses(process, {"G": (0,), "H": (1,)})
    process.receive(0, 0, told_by(0, 0, (), (0,)))
    process.receive(0, 1, wire.Testimony(UNIT, 1, "H", 0, (1,), mentioned={"G": 5}))
    made = process.replicas[UNIT].sequencer
    assert made is not None
    assert [(event.seq, event.last, event.kind) for event in made.groups["G"].history.values()] == [
        (1, 5, BLANK),
        (6, 6, BLANK),
    ]


def test_who_has_left_and_is_known_to_everybody_to_have_does_not_count_when_a_group_is_rebuilt() -> None:
    process = rebuilding()
    witnesses(process, {"G": (0, 1)})
    process.receive(0, 0, told_by(0, 1, (leave(1, 1, 3, (0,)),), (0,)))
    process.receive(0, 1, told_by(1, -1, (leave(1, 1, 3, (0,)),), (), requests=3))
    made = process.replicas[UNIT].sequencer
    assert made is not None
    assert (made.groups["G"].departing, made.forgetting) == ({}, {("G", 1): 3})
    assert made.groups["G"].is_sound()


def test_who_is_silent_for_too_long_is_reported() -> None:
    process = rebuilding()
    witnesses(process, {"G": (0, 1)})
    process.receive(0, 0, told_by(0, 0))
    reported = [said(process.wake(tick * OPTIONS.tick_ns), inner.Suspect) for tick in range(4)]
    assert reported[-1] == [inner.Suspect(1)]
    assert not reported[0]
    assert said(process.suspect(1), inner.Suspect) == [inner.Suspect(1)]


def test_what_cannot_have_been_numbered_is_not_taken() -> None:
    process = rebuilding()
    witnesses(process, {"G": (0, 1)})
    for kept in ((Event("H", 1, JOIN, 0, remembered=Remembered(0)),), (message(0),), (Event("G", 1, JOIN, 0),)):
        with pytest.raises(ProtocolViolation, match="cannot have been numbered"):
            process.receive(0, 0, wire.Testimony(UNIT, 1, "G", 0, (0,), kept=kept))
    with pytest.raises(ProtocolViolation):
        process.receive(0, 11, told_by(0, 0))


def test_whoever_knows_of_no_or_another_epoch_is_told_or_ignored() -> None:
    process = rebuilding()
    witnesses(process, {"G": (0,)})
    process.receive(0, 0, told_by(0, 0, (), (0,)))
    process.receive(0, REG, wire.Live(UNIT, 1))
    fetch = inner.Fetch(0, {"G": 0})
    assert sends(process.receive(0, 0, wire.Letter(UNIT, CLIENT, 0, fetch)), wire.Configured)
    assert not process.receive(0, 0, wire.Letter(UNIT, CLIENT, 2, fetch))
    # What another unit passes on does not say what its client believes; what the register said in another epoch is over.
    assert not process.receive(0, 10, wire.Letter(UNIT, OTHER, 0, from_client(0, 0)))
    assert not process.receive(0, REG, wire.Letter(UNIT, REGISTER, 0, inner.Host("N")))
    assert said(process.receive(0, REG, wire.Letter(UNIT, REGISTER, 1, inner.Host("N"))), inner.Hosted)


def test_a_primary_that_is_called_back_before_another_was_live_goes_on_in_a_new_life() -> None:
    process = SequencerProcess(A, (10, 11), (UNIT, OTHER), REG, OPTIONS)
    process.receive(0, REG, wire.Configured(0, (Configuration(UNIT, 0, A, (), fresh=True, life=1),)))
    process.receive(0, REG, wire.Live(UNIT, 0))
    process.receive(0, REG, wire.Letter(UNIT, REGISTER, 0, inner.Host("G")))
    process.receive(0, 9, wire.Letter(UNIT, CLIENT, 0, inner.DoMulticast("G", 9, 0, 0, Run(9, 0, 1, pack([b"m"])))))
    transfer = inner.Transfer(1, ("T",), GroupState("T", members={0: 0}, reached={0: 0}))
    process.receive(0, 11, wire.Letter(UNIT, OTHER, 0, transfer))
    for version, found in enumerate(
        (Configuration(UNIT, 1, B, (), rebuilt=True, life=5), Configuration(UNIT, 2, A, (), life=6))
    ):
        effects = process.receive(0, REG, wire.Configured(4 + version, (found,)))
    assert sends(effects, wire.InSync) == [wire.InSync(UNIT, 2)]
    made = process.replicas[UNIT].sequencer
    assert made is not None
    assert (made.groups["G"].seq, made.groups["G"].life) == (1, 6)
    assert made.moves.taking[1]["T"].life == 6


def register() -> Register:
    made = Register(REG, (10, 11), (UNIT, OTHER), OPTIONS)
    for name in (A, B):
        made.receive(0, name.address, wire.Here(name.life, -1))
    for unit in (UNIT, OTHER):
        made.receive(0, unit, wire.InSync(unit, 0))
    made.directory.locations.update({"G": UNIT, "H": UNIT})
    made.directory.entries.update({"G": {0: 1, 1: 2}, "H": {0: 3}})
    made.directory.over.update({"G": {}, "H": {}})
    return made


def test_a_lost_unit_is_given_to_anybody_and_its_moves_are_called_off() -> None:
    made = register()
    made.directory.receive(0, 0, inner.Move("G", OTHER))
    assert not made.directory.idle()
    made.receive(0, 11, wire.Missing(A))
    found = made.succession.configurations[UNIT]
    assert (found.primary, found.rebuilt, found.epoch) == (B, True, 1)
    assert found.life > made.succession.configurations[OTHER].life
    assert made.directory.idle()
    [told] = sends(made.receive(0, 11, wire.AskWitnesses(UNIT, 1)), wire.Witnesses)
    assert (told.groups, told.settled) == ({"G": (0, 1), "H": (0,)}, 0)
    assert not made.receive(0, 11, wire.AskWitnesses(UNIT, 0))


def test_a_sequencer_that_was_restarted_rebuilds_its_own_unit() -> None:
    made = register()
    made.receive(0, 10, wire.Here(1, -1))
    found = made.succession.configurations[UNIT]
    assert (found.primary, found.rebuilt) == (Name(10, 1), True)


def test_whoever_asks_for_a_lost_group_is_told_that_it_is() -> None:
    made = register()
    made.receive(0, 11, wire.Missing(A))
    made.receive(0, 11, wire.InSync(UNIT, 1, ("G",)))
    assert made.directory.lost == {"G"}
    asks = (inner.Prepare("G", 5), inner.Lookup("G"), inner.Create("G"))
    answers = [said(made.receive(0, 2, wire.Letter(REGISTER, CLIENT, 0, each)), inner.Located) for each in asks]
    assert answers == [[inner.Located("G", inner.LOST)]] * 3
    assert not made.receive(0, 2, wire.Letter(REGISTER, CLIENT, 0, inner.Move("G", OTHER)))
    client = member()
    effects = client.receive(0, REG, wire.Letter(CLIENT, REGISTER, 0, inner.Located("G", inner.LOST)))
    assert [type(each.error) for each in effects if isinstance(each, Failed)] == [GroupLost]
    assert not client.receive(0, REG, wire.Letter(CLIENT, REGISTER, 0, inner.Located("G", inner.LOST)))
