"""Clients that send what no correct one sends: refused before anything is done, and nobody else is blamed or pays for it."""

from __future__ import annotations

import pytest

from quire.model.errors import ProtocolViolation
from quire.model.messages import Body, Run, pack
from quire.model.packets import Packet
from quire.protocols.node import Effects, Send
from quire.protocols.sequencing import Client, Directory, Sequencer, SequencingOptions
from quire.protocols.sequencing import packets as wire
from quire.protocols.sequencing.errors import GROUPS_MAX, TooManyGroups
from quire.protocols.sequencing.events import LEAVE, MESSAGES, Event
from quire.protocols.sequencing.notices import Failed
from quire.protocols.sequencing.state import GroupState

ME, OTHER, SEQUENCER, ELSEWHERE, DIRECTORY = 0, 1, 8, 7, 9
UNITS = (ELSEWHERE, SEQUENCER)
BODY = pack([b"x"])


def sequencer(**options: object) -> Sequencer:
    made = Sequencer(SEQUENCER, UNITS, DIRECTORY, SequencingOptions(**options))  # type: ignore[arg-type]
    for group in ("G", "H"):
        made.groups[group] = GroupState(group, members={ME: 0, OTHER: 0}, reached={ME: 0, OTHER: 0})
    return made


def sent(counter: int, acked: int = 0, group: str = "G", **more: object) -> wire.DoMulticast:
    return wire.DoMulticast(group, ME, counter, acked, Run(ME, counter, 1, BODY), **more)  # type: ignore[arg-type]


def packets(effects: Effects) -> list[Packet]:
    return [effect.packet for effect in effects if isinstance(effect, Send)]


@pytest.mark.parametrize(
    "packet",
    [
        wire.Host("K"), wire.JoinAnswer("G", ME, 1, True), wire.Forgotten("G", ME, 1), wire.Open(0, ("G",), ELSEWHERE),
        wire.Transfer(0, ("K",), GroupState("K")), wire.Outcome(0, True), wire.Stable({"G": 5}), wire.Evict((OTHER,)),
        wire.DoMulticast("G", OTHER, 0, 0, Run(OTHER, 0, 1, BODY)), wire.Join("K", OTHER, 1), wire.Leave("G", OTHER, 1),
        wire.LeftAck("G", OTHER, 1), wire.Fetch(OTHER, {}),
    ],
    ids=lambda packet: packet.name,
)  # fmt: skip
def test_a_client_cannot_play_the_directory_another_sequencer_or_another_client(packet: Packet) -> None:
    with pytest.raises(ProtocolViolation, match=r"may not be sent by it|in the name of client"):
        sequencer().receive(0, ME, packet)


@pytest.mark.parametrize(
    "packet",
    [
        wire.Hosted("G"), wire.JoinRequest("G", ME, 1), wire.Forget("G", OTHER, 1), wire.Done(0), wire.Query(0),
        wire.Load({"G": 9}), wire.Suspect(OTHER), wire.EvictDone((OTHER,)),
    ],
    ids=lambda packet: packet.name,
)  # fmt: skip
def test_a_client_cannot_play_a_sequencer_before_the_directory(packet: Packet) -> None:
    directory = Directory(DIRECTORY, UNITS, SequencingOptions())
    with pytest.raises(ProtocolViolation, match="may not be sent by it"):
        directory.receive(0, ME, packet)
    assert not directory.evicted


@pytest.mark.parametrize(
    "packet",
    [
        Event("G", 1, MESSAGES, OTHER, run=Run(OTHER, 0, 1, BODY)), wire.Ack("G", 0, 1, None, 0), wire.Nak("G", 1),
        wire.NewLocation("G", SEQUENCER), wire.Stable({"G": 9}), wire.Poll(), wire.Overloaded("G", 0),
        wire.Located("G", SEQUENCER), wire.Ready("G", 1, SEQUENCER), wire.Expelled(),
    ],
    ids=lambda packet: packet.name,
)  # fmt: skip
def test_a_client_cannot_play_the_service_before_another(packet: Packet) -> None:
    client = Client(ME, UNITS, DIRECTORY, SequencingOptions())
    with pytest.raises(ProtocolViolation, match="may not be sent by it"):
        client.receive(0, OTHER, packet)
    assert not client.evicted


@pytest.mark.parametrize(
    "packet",
    [
        sent(-1), sent(2**63), sent(0, acked=-1), sent(0, acked=1), sent(0, ctx={"H": 1}), sent(0, ctx={"K": -1}),
        sent(0, ctx={"K" * 300: 1}), sent(0, ids={"H": -1}), sent(0, view=0), sent(0, view=-2),
        wire.DoMulticast("G", ME, 0, 0, Run(OTHER, 0, 1, BODY)),
        wire.DoMulticast("G", ME, 0, 0, Run(ME, 0, 5, Body(b"x", 1))),
        wire.Join("G", ME, -1), wire.Leave("G", ME, 2**63), wire.Fetch(ME, {"G": 1}),
    ],
)  # fmt: skip
def test_numbers_that_cannot_be_are_refused(packet: Packet) -> None:
    with pytest.raises(ProtocolViolation):
        sequencer().receive(0, ME, packet)


def test_who_passes_on_what_a_client_said_is_not_to_blame_for_it() -> None:
    made = sequencer()
    assert not made.receive(0, ELSEWHERE, wire.Fetch(ME, {"G": 10**9}))
    assert not made.receive(0, ELSEWHERE, sent(0, ctx={"H": 10**9}))
    assert not made.groups["G"].seq


def test_a_group_that_is_elsewhere_may_have_been_seen_up_to_any_number() -> None:
    made = sequencer(order="hybrid")
    assert packets(made.receive(0, ME, sent(0, ctx={"K": 10**9})))


def test_a_leaver_that_says_it_has_delivered_its_leave_before_it_confirms_it_is_still_sent_it() -> None:
    made = sequencer()
    made.receive(0, ME, wire.Leave("G", ME, 1))
    made.receive(1, OTHER, wire.Fetch(OTHER, {"G": 1}))
    made.receive(1, ME, wire.Fetch(ME, {"G": 1}))
    assert list(made.groups["G"].history) == [1]
    assert [each.kind for each in packets(made.wake(50_000_000)) if isinstance(each, Event)] == [LEAVE]
    made.receive(2, ME, wire.LeftAck("G", ME, 1))
    assert not made.groups["G"].history


def test_counters_far_ahead_wait_in_little_room() -> None:
    made = sequencer(window=4, history=8, history_bytes=100)
    for counter in range(10, 30):
        made.receive(0, ME, sent(counter))
    assert made.queue() == 4
    big = wire.DoMulticast("G", OTHER, 7, 0, Run(OTHER, 7, 1, pack([bytes(90)])))
    made.receive(0, OTHER, big)
    assert packets(made.receive(0, OTHER, wire.DoMulticast("H", OTHER, 7, 0, big.run))) == [wire.Overloaded("H", 7)]


def test_a_sender_that_never_says_which_numbers_it_knows_gets_no_more() -> None:
    made = sequencer(window=4, history=100)
    for counter in range(4):
        assert [each.name for each in packets(made.receive(0, ME, sent(counter)))] == ["ACCEPT"]
    made.receive(0, ME, sent(4))
    assert made.groups["G"].seq == 4
    assert [each.name for each in packets(made.receive(1, ME, sent(4, acked=4)))] == ["ACCEPT"]


def test_contexts_count_as_what_a_history_keeps() -> None:
    made = sequencer(order="hybrid", history_bytes=1000)
    context = {f"{number:0200}": 1 for number in range(4)}
    assert packets(made.receive(0, ME, sent(0, ctx=context)))
    assert not packets(made.receive(0, ME, sent(1, ctx=context)))
    for client in (ME, OTHER):
        made.receive(1, client, wire.Fetch(client, {"G": 1}))
    assert made.groups["G"].seq == 2
    assert made.groups["G"].kept_bytes < 1000


def test_nobody_founds_more_groups_than_there_is_room_for() -> None:
    directory = Directory(DIRECTORY, UNITS, SequencingOptions())
    directory.locations = dict.fromkeys(map(str, range(GROUPS_MAX)), SEQUENCER)
    [answer] = packets(directory.receive(0, ME, wire.Create("K")))
    assert answer == wire.Located("K", wire.NO_ROOM)
    assert len(directory.locations) == GROUPS_MAX
    client = Client(ME, UNITS, DIRECTORY, SequencingOptions())
    client.create(0, "K")
    [failed] = client.receive(1, DIRECTORY, answer)
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, TooManyGroups)
    with pytest.raises(ProtocolViolation, match="names a group"):
        directory.receive(0, ME, wire.Create("a\nb"))


def test_asking_for_a_new_group_again_and_again_is_answered_once() -> None:
    directory = Directory(DIRECTORY, UNITS, SequencingOptions())
    for _ in range(5):
        directory.receive(0, ME, wire.Create("K"))
    [answer] = directory.receive(1, directory.locations["K"], wire.Hosted("K"))
    assert isinstance(answer, Send)
    assert answer.to == (ME,)


@pytest.mark.parametrize(
    "state",
    [
        GroupState("K", seq=3, members={ME: 0}),
        GroupState("K", seq=3, departing={ME: 2}, reached={ME: 0}, requests={ME: 1}),
        GroupState("K", seq=1, history={1: Event("G", 1, LEAVE, ME)}),
        GroupState("K", seq=-1),
    ],
)
def test_a_group_in_a_state_in_which_none_can_be_is_not_taken(state: GroupState) -> None:
    with pytest.raises(ProtocolViolation, match="in which no group can be"):
        sequencer().receive(0, ELSEWHERE, wire.Transfer(0, ("K",), state))


def test_a_grant_that_was_not_asked_for_does_not_let_a_leaver_in_twice() -> None:
    made = sequencer()
    made.receive(0, ME, wire.Leave("G", ME, 1))
    assert packets(made.receive(0, DIRECTORY, wire.JoinAnswer("G", ME, 2, True))) == []
    assert ME not in made.groups["G"].members
    made.receive(0, OTHER, wire.Fetch(OTHER, {"G": 1}))
    assert [packet for packet in packets(made.wake(10**9)) if isinstance(packet, Event)] == [made.groups["G"].history[1]]
