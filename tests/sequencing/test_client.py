"""What a client refuses, and how it says so; what it does with answers that come late."""

from __future__ import annotations

import pytest

from quire.model.errors import BadInput, ProtocolViolation, WindowFull
from quire.model.messages import Run, pack
from quire.protocols.node import Effects, Send
from quire.protocols.sequencing import packets as wire
from quire.protocols.sequencing.client import Client
from quire.protocols.sequencing.errors import AlreadyMember, Busy, GapUnrecoverable, NoSuchGroup, NotMember, Overload
from quire.protocols.sequencing.events import JOIN, MESSAGES, Event
from quire.protocols.sequencing.notices import Failed, Found, Numbered
from quire.protocols.sequencing.options import SequencingOptions
from quire.protocols.sequencing.sequencer import Sequencer
from quire.protocols.sequencing.state import GroupState

ME, OTHER, SEQUENCER, DIRECTORY = 0, 1, 8, 9
BODY = pack([b"x"])


def client(member_of: tuple[str, ...] = ("G",), **options: object) -> Client:
    made = Client(ME, (SEQUENCER, 7), DIRECTORY, SequencingOptions(**options))  # type: ignore[arg-type]
    for group in ("G", "H"):
        made.locations[group] = SEQUENCER
    for group in member_of:
        made.hold.delivered[group] = 0
        made.views[group] = (ME, OTHER)
    return made


def packets(effects: Effects) -> list[object]:
    return [effect.packet for effect in effects if isinstance(effect, Send)]


def test_a_group_that_nobody_created_does_not_exist() -> None:
    made = client()
    for ask in (made.join, made.leave):
        with pytest.raises(NoSuchGroup, match="no group 'K'"):
            ask(0, "K")
    with pytest.raises(NoSuchGroup):
        made.multicast(0, "K", BODY, 1)
    assert packets(made.find(0, "K")) == [wire.Lookup("K")]
    [failed] = made.receive(1, DIRECTORY, wire.Located("K", -1))
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, NoSuchGroup)


def test_a_group_that_is_found_can_be_sent_to() -> None:
    made = client()
    made.create(0, "K")
    assert made.receive(1, DIRECTORY, wire.Located("K", SEQUENCER)) == (Found("K"),)
    assert packets(made.multicast(1, "K", BODY, 1))


def test_nobody_joins_twice_or_leaves_what_it_is_not_in() -> None:
    made = client()
    with pytest.raises(AlreadyMember):
        made.join(0, "G")
    with pytest.raises(NotMember):
        made.leave(0, "H")


def test_one_join_or_leave_at_a_time() -> None:
    made = client()
    made.join(0, "H")
    with pytest.raises(Busy, match="joining or leaving 'H'"):
        made.leave(0, "G")


def test_a_full_window_is_an_overload_and_empties_with_the_next_number() -> None:
    made = client(window=2)
    made.multicast(0, "G", BODY, 1)
    made.multicast(0, "G", BODY, 1)
    with pytest.raises(Overload) as caught:
        made.multicast(0, "G", BODY, 1)
    assert isinstance(caught.value, WindowFull)
    [numbered] = [e for e in made.receive(1, SEQUENCER, wire.Ack("G", 0, 1, None, 0)) if isinstance(e, Numbered)]
    assert numbered.seq == 1
    made.multicast(1, "G", BODY, 1)


def test_what_would_exceed_a_history_waits_for_its_number_and_what_is_too_much_to_wait_is_refused() -> None:
    sequencer = Sequencer(SEQUENCER, (SEQUENCER,), DIRECTORY, SequencingOptions(history=2, window=2))
    sequencer.groups["G"] = GroupState("G", members={ME: 0}, reached={ME: 0})
    runs = [wire.DoMulticast("G", ME, counter, 0, Run(ME, counter, 2, pack([b"a", b"b"]))) for counter in (0, 2, 4)]
    sequencer.receive(0, ME, runs[0])
    assert not packets(sequencer.receive(1, ME, runs[1]))
    assert packets(sequencer.receive(1, ME, runs[2])) == [wire.Overloaded("G", 4)]
    assert (sequencer.groups["G"].seq, sequencer.queue()) == (2, 4)
    [event] = packets(sequencer.receive(2, ME, wire.Fetch(ME, {"G": 2})))
    assert isinstance(event, Event)
    assert event.seq == 3
    assert sequencer.groups["G"].kept == 2


def test_a_client_that_was_refused_waits_longer() -> None:
    made = client()
    made.multicast(0, "G", BODY, 1)
    made.receive(1, SEQUENCER, wire.Overloaded("G", 0))
    assert not [each for each in packets(made.wake(60_000_000)) if isinstance(each, wire.DoMulticast)]
    assert [each for each in packets(made.wake(500_000_000)) if isinstance(each, wire.DoMulticast)]


def test_what_everybody_is_said_to_have_and_is_missing_here_is_an_unrecoverable_gap() -> None:
    made = client()
    failures = [e for e in made.receive(0, SEQUENCER, wire.Stable({"G": 5, "H": 5})) if isinstance(e, Failed)]
    assert [(failed.group, type(failed.error)) for failed in failures] == [("G", GapUnrecoverable)]
    assert not made.receive(0, SEQUENCER, wire.Stable({"G": 6}))


def test_a_refused_join_is_prepared_and_tried_again_without_a_word_to_the_application() -> None:
    made = client()
    made.join(0, "H")
    assert packets(made.receive(1, SEQUENCER, wire.Nak("H", 1))) == [wire.Prepare("H", 2)]
    assert packets(made.receive(2, DIRECTORY, wire.Ready("H", 2, 7))) == [wire.Join("H", ME, 3)]
    assert made.locations["H"] == 7
    made.receive(3, 7, Event("H", 4, JOIN, ME, 3, members=(OTHER, ME)))
    assert made.hold.delivered["H"] == 4


def test_a_late_number_of_an_own_message_does_not_lower_the_context() -> None:
    made = client(order="hybrid", pipelined=True)
    made.multicast(0, "H", BODY, 1)
    made.receive(1, SEQUENCER, Event("G", 1, MESSAGES, OTHER, run=Run(OTHER, 0, 1, BODY), dep={"H": 7}))
    made.receive(2, SEQUENCER, wire.Ack("H", 0, 3, (), 0))
    assert made.context["H"] == 7


def test_contexts_lose_what_is_stable() -> None:
    made = client(order="hybrid")
    made.receive(1, SEQUENCER, Event("G", 1, MESSAGES, OTHER, run=Run(OTHER, 0, 1, BODY), dep={"H": 7}))
    assert made.context == {"G": 1, "H": 7}
    made.receive(2, SEQUENCER, wire.Stable({"H": 7}))
    assert made.context == {"G": 1}


def test_nobody_speaks_for_another_client() -> None:
    sequencer = Sequencer(SEQUENCER, (SEQUENCER,), DIRECTORY, SequencingOptions())
    sequencer.groups["G"] = GroupState("G")
    with pytest.raises(ProtocolViolation, match="in the name of client 1"):
        sequencer.receive(0, ME, wire.Join("G", OTHER, 1))
    with pytest.raises(ProtocolViolation, match="of which there are 0"):
        sequencer.receive(0, ME, wire.Fetch(ME, {"G": 1}))
    with pytest.raises(BadInput, match="1 to 256 printable"):
        client().create(0, "x" * 257)
    with pytest.raises(ProtocolViolation, match="not for a sequencer"):
        sequencer.receive(0, ME, wire.Ready("G", 1, 1))
    with pytest.raises(ProtocolViolation, match="not for a client"):
        client().receive(0, ME, wire.Join("G", OTHER, 1))


def test_a_report_of_more_than_there_is_means_nothing_of_a_group_that_is_on_its_way() -> None:
    """The new sequencer may have numbered more before the old one knows that the move has ended."""
    sequencer = Sequencer(SEQUENCER, (SEQUENCER, 7), DIRECTORY, SequencingOptions(order="hybrid"))
    sequencer.groups["G"] = GroupState("G", members={ME: 0}, reached={ME: 0})
    sequencer.receive(0, DIRECTORY, wire.Open(0, ("G",), 7))
    sequencer.receive(1, ME, wire.Fetch(ME, {"G": 3}))
    assert sequencer.groups["G"].reached == {ME: 0}


def test_options_that_make_no_sense_are_refused() -> None:
    with pytest.raises(BadInput, match="acyclic"):
        SequencingOptions(order="hybrid", acyclic=True)
    with pytest.raises(BadInput, match="does not fit"):
        SequencingOptions(window=8, history=4)


def test_a_message_that_was_numbered_before_the_own_join_is_not_taken_for_a_members() -> None:
    """Its sender gets a copy of it by a report that came late, but will never deliver it: it has to be told who did."""
    made = client(member_of=())
    made.multicast(0, "G", BODY, 1)
    made.join(0, "G")
    early = Event("G", 12, MESSAGES, ME, run=Run(ME, 0, 1, BODY))
    assert [e for e in made.receive(1, SEQUENCER, early) if isinstance(e, Numbered)] == []
    made.receive(2, SEQUENCER, Event("G", 13, JOIN, ME, req=1, members=(ME, OTHER)))
    assert [e for e in made.receive(3, SEQUENCER, early) if isinstance(e, Numbered)] == []
    [numbered] = [e for e in made.receive(4, SEQUENCER, wire.Ack("G", 0, 12, (OTHER,), 0)) if isinstance(e, Numbered)]
    assert (numbered.seq, numbered.members) == (12, (OTHER,))


def test_a_message_that_was_numbered_after_the_own_join_is_a_members() -> None:
    made = client(member_of=())
    made.multicast(0, "G", BODY, 1)
    made.join(0, "G")
    # Something of another group comes before the join, which has come, and is not delivered yet.
    made.hold.delivered["H"] = 0
    made.receive(1, SEQUENCER, Event("G", 13, JOIN, ME, req=1, members=(ME, OTHER), tot={"H": 1}))
    own = Event("G", 14, MESSAGES, ME, run=Run(ME, 0, 1, BODY))
    [numbered] = [e for e in made.receive(2, SEQUENCER, own) if isinstance(e, Numbered)]
    assert (numbered.seq, numbered.members) == (14, None)
