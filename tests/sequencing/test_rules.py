"""The service by hand, rule by rule: what a client holds back, what a sequencer keeps, and what the directory enters."""

from __future__ import annotations

from quire.model.messages import Run, pack
from quire.protocols.node import Effects, Send
from quire.protocols.sequencing import Directory, Sequencer, SequencingOptions
from quire.protocols.sequencing import packets as wire
from quire.protocols.sequencing.delivery import HoldBack
from quire.protocols.sequencing.events import JOIN, MESSAGES, Event
from quire.protocols.sequencing.state import GroupState

ME, OTHER, SEQUENCER, ELSEWHERE, DIRECTORY = 0, 1, 8, 7, 9
UNITS = (ELSEWHERE, SEQUENCER)
TICK_NS = SequencingOptions().tick_ns


def message(group: str, seq: int, tot: dict[str, int] | None = None, count: int = 1) -> Event:
    return Event(group, seq, MESSAGES, OTHER, run=Run(OTHER, seq, count, pack([b"x"] * count)), tot=tot or {})


def join(group: str, seq: int, tot: dict[str, int] | None = None) -> Event:
    return Event(group, seq, JOIN, ME, req=1, tot=tot or {}, members=(ME, OTHER))


def hold_back(*groups: str, limit: int = 100) -> HoldBack:
    """Of a client that is in these groups, and is joining H."""
    hold = HoldBack(ME, limit)
    hold.delivered.update(dict.fromkeys(groups, 0))
    hold.join("H", 1)
    return hold


# What a client holds back.


def test_what_was_numbered_right_after_the_own_join_waits_for_it() -> None:
    hold = hold_back("G", "K")
    last, first, own = message("G", 1, {"H": 5}), message("K", 1), join("H", 5, {"K": 1})
    assert hold.take(own) == [], "something of K comes before it"
    assert hold.take(last) == [], "it comes after the join"
    assert hold.take(first) == [first, own, last]


def test_what_was_numbered_before_the_own_join_is_not_waited_for() -> None:
    hold = hold_back("G", "K")
    assert hold.take(join("H", 5, {"K": 1})) == []
    early = message("G", 1, {"H": 4})
    assert hold.take(early) == [early]


def test_before_the_own_join_has_a_number_everything_that_names_its_group_waits() -> None:
    hold = hold_back("G")
    early = message("G", 1, {"H": 4})
    assert hold.take(early) == []
    own = join("H", 5)
    assert hold.take(own) == [early, own]


def test_no_more_is_held_back_than_the_limit_but_what_is_next_always_finds_room() -> None:
    hold = hold_back("G", limit=2)
    for seq in (2, 3, 4):
        assert hold.take(message("G", seq)) == []
    assert hold.held_events == 2
    assert [event.seq for event in hold.take(message("G", 1))] == [1, 2, 3]


# What a sequencer keeps.


def sequencer() -> Sequencer:
    made = Sequencer(SEQUENCER, UNITS, DIRECTORY, SequencingOptions())
    made.groups["G"] = GroupState("G", members={ME: 0, OTHER: 0}, reached={ME: 0, OTHER: 0})
    return made


def events(effects: Effects) -> list[Event]:
    return [effect.packet for effect in effects if isinstance(effect, Send) and isinstance(effect.packet, Event)]


def acknowledgements(effects: Effects) -> list[wire.Ack]:
    return [effect.packet for effect in effects if isinstance(effect, Send) and isinstance(effect.packet, wire.Ack)]


def numbered(made: Sequencer, count: int) -> Event:
    """The next messages of the other client, all in one run."""
    next_ = made.groups["G"].senders[OTHER].next if OTHER in made.groups["G"].senders else 0
    run = Run(OTHER, next_, count, pack([b"x"] * count))
    [event] = events(made.receive(0, OTHER, wire.DoMulticast("G", OTHER, next_, next_, run)))
    return event


def test_a_run_is_kept_until_the_last_of_its_messages_is_delivered_everywhere() -> None:
    made = sequencer()
    run = numbered(made, 3)
    made.receive(TICK_NS, OTHER, wire.Fetch(OTHER, {"G": run.last}))
    made.receive(TICK_NS, ME, wire.Fetch(ME, {"G": run.seq}))
    assert made.groups["G"].history == {run.seq: run}
    assert events(made.receive(2 * TICK_NS, ME, wire.Fetch(ME, {"G": run.seq}))) == [run]
    made.receive(3 * TICK_NS, ME, wire.Fetch(ME, {"G": run.last}))
    assert made.groups["G"].history == {}


def test_a_number_that_its_sender_may_not_know_is_told_again_when_it_asks() -> None:
    """The sender is no member, so that it learns its numbers from acknowledgements alone. The first one was lost."""
    made = sequencer()
    stranger = 5
    requests = [
        wire.DoMulticast("G", stranger, counter, 0, Run(stranger, counter, 2, pack([b"a", b"b"]))) for counter in (0, 2)
    ]
    for request in requests:
        made.receive(0, stranger, request)
    again = [each for request in requests for each in acknowledgements(made.receive(1, stranger, request))]
    assert [(each.counter, each.seq) for each in again] == [(0, 1), (2, 3)]


def transfers(effects: Effects) -> list[tuple[int, int]]:
    """In which moves the group is sent away, and how far it was numbered then."""
    sent = [effect.packet for effect in effects if isinstance(effect, Send)]
    return [(packet.op, packet.state.seq) for packet in sent if isinstance(packet, wire.Transfer)]


def test_a_group_is_not_given_by_another_move_before_the_end_of_the_last_is_known() -> None:
    """The directory has called off the first move and opened the second, and the word of the former comes late. What is
    numbered in between would otherwise be in neither state."""
    made = sequencer()
    first, second = (wire.Open(op, ("G",), ELSEWHERE) for op in (0, 1))
    assert transfers(made.receive(0, DIRECTORY, first)) == [(0, 0)]
    assert transfers(made.receive(1, DIRECTORY, second)) == []
    made.receive(2, DIRECTORY, wire.Outcome(0, False))
    run = numbered(made, 1)
    for client in (ME, OTHER):
        made.receive(TICK_NS, client, wire.Fetch(client, {"G": run.last}))
    assert transfers(made.receive(TICK_NS, DIRECTORY, second)) == [(1, run.last)]


def test_what_comes_late_of_a_move_that_has_ended_brings_no_group_back() -> None:
    made = Sequencer(SEQUENCER, UNITS, DIRECTORY, SequencingOptions())
    transfer = wire.Transfer(0, ("G",), GroupState("G"))
    assert wire.Done(0) in answers(made.receive(0, ELSEWHERE, transfer))
    made.receive(1, DIRECTORY, wire.Outcome(0, False))
    assert answers(made.receive(2, ELSEWHERE, transfer)) == []
    assert made.moves.idle()


def test_a_late_copy_of_the_opening_of_a_move_that_has_ended_takes_no_group_away() -> None:
    """The group has come back since. The directory would say again that the move took place, and the group would be lost."""
    made = sequencer()
    gone = wire.Open(0, ("G",), ELSEWHERE)
    made.receive(0, DIRECTORY, gone)
    made.receive(1, DIRECTORY, wire.Outcome(0, True))
    assert "G" not in made.groups
    made.receive(2, ELSEWHERE, wire.Transfer(1, ("G",), GroupState("G")))
    made.receive(3, DIRECTORY, wire.Outcome(1, True))
    assert "G" in made.groups
    assert transfers(made.receive(4, DIRECTORY, gone)) == []
    assert made.moves.idle()


# What the directory enters.


def directory() -> Directory:
    made = Directory(DIRECTORY, UNITS, SequencingOptions())
    made.locations["G"] = SEQUENCER
    made.entries["G"], made.over["G"] = {}, {}
    return made


def answers(effects: Effects) -> list[object]:
    return [effect.packet for effect in effects if isinstance(effect, Send)]


def test_a_late_copy_of_a_request_that_is_over_makes_no_new_entry() -> None:
    made = directory()
    request = wire.JoinRequest("G", ME, 1)
    assert answers(made.receive(0, SEQUENCER, request)) == [wire.JoinAnswer("G", ME, 1, True)]
    assert made.entries["G"] == {ME: 1}
    # The client left by its second request, and has delivered that.
    made.receive(0, SEQUENCER, wire.Forget("G", ME, 2))
    assert made.entries["G"] == {}
    assert answers(made.receive(0, SEQUENCER, request)) == [wire.JoinAnswer("G", ME, 1, False)]
    assert answers(made.receive(0, ME, wire.Prepare("G", 2))) == []
    assert made.entries["G"] == {}
    assert answers(made.receive(0, ME, wire.Prepare("G", 3))) == [wire.Ready("G", 3, SEQUENCER)]
    assert made.entries["G"] == {ME: 3}


def test_a_leave_that_becomes_known_late_does_not_undo_the_next_join() -> None:
    made = directory()
    made.receive(0, ME, wire.Prepare("G", 3))
    made.receive(0, SEQUENCER, wire.Forget("G", ME, 2))
    assert made.entries["G"] == {ME: 3}


def test_a_late_copy_of_a_join_that_cannot_be_granted_now_does_not_undo_it() -> None:
    """Both clients would be in G and in H, which have different sequencers, and the move that should change that fails."""
    made = directory()
    made.locations["H"], made.over["H"] = ELSEWHERE, {}
    made.entries["G"], made.entries["H"] = {ME: 1}, {ME: 2, OTHER: 1}
    made.receive(0, OTHER, wire.Prepare("G", 2))
    assert made.operation is not None
    now = made.operation.ends_at
    made.wake(now)
    assert made.idle()
    assert answers(made.receive(now, SEQUENCER, wire.JoinRequest("G", ME, 1))) == [wire.JoinAnswer("G", ME, 1, False)]
    assert made.entries["G"] == {ME: 1, OTHER: 2}
