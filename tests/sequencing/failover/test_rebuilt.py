"""What clients remember of their groups, and what a group is rebuilt from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from quire.model.errors import BadInput
from quire.model.messages import Run, pack
from quire.protocols.node import Effects, Send
from quire.protocols.sequencing import packets as inner
from quire.protocols.sequencing.events import BLANK, KINDS, LEAVE, MESSAGES, Event, Remembered
from quire.protocols.sequencing.failover import SurvivingClient, SurvivingOptions
from quire.protocols.sequencing.failover import packets as wire
from quire.protocols.sequencing.failover.configurations import CLIENT
from quire.protocols.sequencing.failover.rebuilt import over, rebuild
from quire.protocols.sequencing.notices import Skipped
from quire.protocols.sequencing.senders import Numbers
from tests.sequencing.failover.testimonies import (
    LIFE,
    OTHER,
    UNIT,
    join,
    leave,
    member,
    message,
    said,
    sends,
    told_by,
)

GOLDEN = Path(__file__).parents[2] / "golden" / "k0_rebuild.json"
CASES = {case["name"]: case for case in json.loads(GOLDEN.read_text())}
# The specification's vectors.


def _golden(case: Any, group: str) -> dict[int, wire.Testimony]:
    inside = tuple(int(name[1:]) for name, answer in case["answers"].items() if group in answer.get("D", {}))
    return {
        int(name[1:]): told_by(
            int(name[1:]),
            answer.get("D", {}).get(group, -1),
            tuple(message(each["seq"], int(each["who"][1:]), each["id"][2]) for each in answer.get("kept", {}).get(group, ())),
            inside,
            mentioned=answer.get("C", {}),
            requests=answer.get("nreq", 0),
            pending={**answer.get("pj", {}), **answer.get("pl", {})}.get(group, -1),
        )
        for name, answer in case["answers"].items()
    }


@pytest.mark.parametrize("name", CASES)
def test_a_group_is_rebuilt_from_the_answers_as_the_specification_says(name: str) -> None:
    case = CASES[name]
    for group, clients in case["directory"].items():
        testimonies = _golden(case, group)
        mentioned = max(each.mentioned.get(group, 0) for each in testimonies.values())
        state = rebuild(group, LIFE, [int(each[1:]) for each in clients], testimonies, mentioned)
        assert (state is None) == (group in case["lost"])
        if state is None:
            continue
        expected = case["groups"][group]
        numbers = [(seq, KINDS[each.kind]) for each in state.history.values() for seq in range(each.seq, each.last + 1)]
        known = {
            (client, counter, seq) for client, each in state.senders.items() for counter, (_, seq, _) in each.window.items()
        }
        assert state.seq == expected["seq"]
        assert [f"p{client}" for client in state.members] == expected["members"]
        assert {f"p{client}": number for client, number in state.reached.items()} == expected["hi"]
        assert numbers == [tuple(each) for each in expected["events"]]
        assert {f"p{client}": req for client, req in state.requests.items()} == expected["req"]
        assert known == {(int(sender[1:]), counter, seq) for (sender, _, counter), seq in expected["dedup"]}


# What a group is rebuilt from.


def test_a_member_is_who_says_so_or_whose_join_somebody_received() -> None:
    joined = join(1, 2, 4, (0, 2))
    told = {0: told_by(0, 1, (joined,), (0, 2)), 2: told_by(2, -1, (), (), requests=4, pending=4)}
    state = rebuild("G", LIFE, (0, 2), told)
    assert state is not None
    assert (state.members, state.reached, state.requests[2]) == ({0: 0, 2: 1}, {0: 1, 2: 0}, 4)


def test_who_has_left_since_is_no_member_because_somebody_kept_its_join() -> None:
    told = {0: told_by(0, 1, (join(1, 2, 4, (0, 2)),), (0, 2)), 2: told_by(2, -1, (), (), requests=5)}
    assert rebuild("G", LIFE, (0, 2), told) is None  # What the others were told of it is missing.
    told[0] = told_by(0, 2, (join(1, 2, 4, (0, 2)), leave(2, 2, 5, (0,))), (0,))
    state = rebuild("G", LIFE, (0, 2), told)
    assert state is not None
    assert (state.members, state.departing, state.reached) == ({0: 0}, {}, {0: 2})
    told[0] = told_by(0, 2, (), (0,))
    state = rebuild("G", LIFE, (0, 2), told)
    assert state is not None
    assert over(state, told, (0, 2)) == {2: 5}


def test_what_everybody_delivered_and_forgot_is_not_blank_because_somebody_left_before_it() -> None:
    """Client 0 has forgotten numbers 1 to 3, which all who are left have delivered; 1 left by number 1."""
    senders = {9: Numbers(2, {0: (2, 2, (0,))})}
    told = {
        0: wire.Testimony(UNIT, 1, "G", 3, (0,), since=0, senders=senders),
        1: told_by(1, -1, (leave(1, 1, 3, (0,)),), (), requests=3),
    }
    state = rebuild("G", LIFE, (0, 1), told)
    assert state is not None
    assert (state.seq, state.senders, [event.kind for event in state.history.values()]) == (3, senders, [LEAVE])
    assert over(state, told, (0, 1)) == {1: 3}


def test_a_leaver_that_lacks_its_leave_gets_it_and_whoever_was_before_it() -> None:
    told = {0: told_by(0, 2, (message(1), leave(2, 1, 3, (0,))), (0,)), 1: told_by(1, 0, (), requests=3, pending=3)}
    state = rebuild("G", LIFE, (0, 1), told)
    assert state is not None
    assert (state.members, state.departing, state.reached) == ({0: 0}, {1: 2}, {0: 2, 1: 0})
    assert state.is_sound()


def test_a_join_that_presupposes_one_that_nobody_received_is_not_guessed_at() -> None:
    """The join of 3 got number 1."""
    joined, left = join(2, 2, 1, (0, 1, 3, 2)), leave(3, 3, 2, (0, 1, 2))
    told = {0: told_by(0, 0), 1: told_by(1, 0), 2: told_by(2, 2, (joined,), (0, 1, 3, 2))}
    told[3] = told_by(3, -1, (), (), requests=1, pending=1)
    assert rebuild("G", LIFE, (0, 1, 2, 3), told) is None
    told |= {2: told_by(2, 3, (joined, left), (0, 1, 2)), 3: told_by(3, -1, (left,), (), requests=2)}
    assert rebuild("G", LIFE, (0, 1, 2, 3), told) is None


def test_a_group_that_only_has_somebody_who_leaves_is_lost() -> None:
    told = {0: told_by(0, 0, (leave(1, 0, 1, ()),), (0,), requests=1, pending=1)}
    assert rebuild("G", LIFE, (0,), told) is None


def test_what_nobody_received_has_no_number_though_a_join_told_of_it() -> None:
    """Client 9 is no member: its message got number 1, which nobody received, before 2 joined."""
    told_of = {9: Numbers(1, {0: (1, 1, (0, 1))})}
    told = {
        0: told_by(0, 0, ()),
        1: told_by(1, 0, ()),
        2: told_by(2, 2, (join(2, 2, 1, (0, 1, 2), told_of),), (0, 1, 2)),
    }
    state = rebuild("G", LIFE, (0, 1, 2), told)
    assert state is not None
    assert [KINDS[event.kind] for event in state.history.values()] == ["NOP", "JOIN"]
    assert (state.senders[9].next, state.senders[9].window) == (0, {})


def test_two_clients_that_contradict_each_other_lose_the_group() -> None:
    told = {0: told_by(0, 1, (message(1, 0),)), 1: told_by(1, 1, (message(1, 1, 0),))}
    assert rebuild("G", LIFE, (0, 1), told) is None


# Clients.


def tell(client: SurvivingClient, packet: Any, unit: int = UNIT, epoch: int = 0) -> Effects:
    return client.receive(0, unit, wire.Letter(CLIENT, unit, epoch, packet))


def ask(client: SurvivingClient, *groups: str) -> list[wire.Testimony]:
    return sends(client.receive(0, OTHER, wire.Rebuild(UNIT, 1, LIFE, groups or ("G",))), wire.Testimony)


def test_a_client_testifies_of_what_it_has_delivered_and_holds_back() -> None:
    client = member()
    tell(client, message(1, 1))
    tell(client, message(3, 1))
    client.leave(0, "G")
    [told] = ask(client)
    assert (told.delivered, [event.seq for event in told.kept], told.view) == (1, [1, 3], (0, 1))
    assert (told.requests, told.pending) == (1, 1)
    assert told.senders[1].next == 1


def test_a_client_testifies_of_every_number_that_it_has_heard_of() -> None:
    client = member()
    client.hold.delivered["H"] = 0
    client.locations["H"] = UNIT
    other = Event("H", 1, MESSAGES, 1, run=Run(1, 0, 1, pack([b"m"])), tot={"G": 4}, remembered=Remembered(0, 0))
    tell(client, other)
    assert [(told.mentioned, told.kept) for told in ask(client)] == [({"G": 4}, ())]
    client.context["G"] = 6
    assert [told.mentioned for told in ask(client)] == [{"G": 6}]


def test_who_has_testified_believes_nothing_of_an_earlier_life_wherever_it_comes_from() -> None:
    client = member()
    ask(client)
    tell(client, message(1, 1), OTHER, epoch=5)
    assert client.hold.delivered == {"G": 0}
    assert not tell(client, message(1, 1, life=LIFE), UNIT, epoch=0)
    assert tell(client, message(1, 1, life=LIFE), UNIT, epoch=1)
    assert client.hold.delivered == {"G": 1}


def test_a_client_forgets_what_everybody_has_and_keeps_what_it_left_until_then() -> None:
    client = member()
    tell(client, message(1, 1))
    tell(client, message(2, 1))
    tell(client, inner.Stable({"G": 1}))
    assert [event.seq for event in ask(client)[0].kept] == [2]
    client.leave(0, "G")
    tell(client, Event("G", 3, LEAVE, 0, 1, members=(1,), remembered=Remembered(LIFE)), epoch=1)
    assert client.unstable == {"G": 3}
    assert [(told.delivered, [event.seq for event in told.kept]) for told in ask(client)] == [(-1, [2, 3])]
    tell(client, inner.Stable({"G": 2}), epoch=1)
    assert [[event.seq for event in told.kept] for told in ask(client)] == [[3]]
    tell(client, inner.Stable({"G": 3}), epoch=1)
    assert [told.kept for told in ask(client)] == [()]


def test_a_sender_takes_its_message_for_numbered_only_if_it_keeps_it() -> None:
    client = member()
    client.hold._limit = 0
    client.multicast(0, "G", pack([b"m"]), 1)
    tell(client, message(2, 0, 0))
    assert not client.outbox.idle()
    tell(client, message(1, 0, 0))
    assert client.outbox.idle()


def test_a_client_waits_for_a_number_before_it_sends_more() -> None:
    client = member()
    assert said(client.multicast(0, "G", pack([b"m"]), 1), inner.DoMulticast)
    assert not client.multicast(0, "G", pack([b"m"]), 1)
    assert said(tell(client, message(1, 0, 0)), inner.DoMulticast)


def test_a_refusal_of_a_unit_that_was_not_asked_last_is_not_believed() -> None:
    client = member()
    client.locations["H"] = OTHER
    client.join(0, "H")
    assert not tell(client, inner.Nak("H", 1), UNIT)
    assert tell(client, inner.Nak("H", 1), OTHER)


def test_pipelining_is_refused_and_blank_numbers_are_not_shown() -> None:
    with pytest.raises(BadInput, match="pipelined needs a backup"):
        SurvivingOptions(order="hybrid", backups=0, pipelined=True)
    client = member()
    blank = Event("G", 1, BLANK, -1, run=Run(0, 0, 3), remembered=Remembered(0))
    assert [each for each in tell(client, blank) if not isinstance(each, Send)] == [Skipped("G", 1, 3)]
    assert client.hold.delivered == {"G": 3}
