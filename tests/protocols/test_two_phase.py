"""Agreement on numbers: who proposes what, when a run may be delivered, what it costs, and what is refused."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy

import pytest

from quire.model.errors import BadInput, HoldBackFull, ProtocolViolation, WindowFull
from quire.model.messages import NUMBER_MAX, Body, MessageId, Run, make_run
from quire.model.packets import Packet
from quire.protocols.contract import NOTHING, Deliver, Send
from quire.protocols.two_phase import WINDOWS_HELD, Final, Propose, Request, TwoPhase, TwoPhaseOptions
from tests.kit.world import World


def member(me: int = 0, members: int = 3, outstanding: int = 8, lead: int = 1000) -> TwoPhase:
    return TwoPhase(me, members, TwoPhaseOptions(outstanding=outstanding, lead=lead))


def request(origin: int, first: int = 0, count: int = 1) -> Request:
    return Request(make_run(origin, first, [b"x"] * count))


def test_a_request_is_answered_to_its_origin_alone_with_a_growing_timestamp() -> None:
    two_phase = member()
    assert two_phase.receive(1, request(1)) == (Send(Propose(0, 1), (1,)),)
    assert two_phase.receive(2, request(2)) == (Send(Propose(0, 2), (2,)),)


def test_the_largest_proposal_is_final_and_the_larger_id_breaks_a_tie() -> None:
    two_phase = member()
    run = make_run(0, 0, [b"a", b"b"])
    assert two_phase.submit(run) == (Send(Request(run)),)
    assert two_phase.receive(2, Propose(0, 5)) == NOTHING
    assert two_phase.receive(1, Propose(0, 5)) == [Send(Final(0, 5, 2)), Deliver(run, (5, 2))]


def test_the_origins_own_proposal_counts() -> None:
    two_phase = member(me=2)
    for first in range(3):
        two_phase.receive(1, request(1, first))
    two_phase.submit(make_run(2, 0, [b"a"]))
    two_phase.receive(0, Propose(0, 1))
    assert two_phase.receive(1, Propose(0, 2))[0] == Send(Final(0, 4, 2))


def test_a_final_timestamp_advances_the_clock() -> None:
    two_phase = member()
    two_phase.receive(1, request(1))
    two_phase.receive(1, Final(0, 70, 2))
    assert two_phase.receive(2, request(2)) == (Send(Propose(0, 71), (2,)),)


def test_a_final_run_waits_for_an_undecided_one_that_may_come_before_it() -> None:
    two_phase = member()
    early, late = request(1), request(2)
    two_phase.receive(1, early)
    two_phase.receive(2, late)
    assert two_phase.receive(2, Final(0, 4, 1)) == []
    assert two_phase.held_back() == 2
    assert two_phase.receive(1, Final(0, 4, 2)) == [Deliver(late.run, (4, 1)), Deliver(early.run, (4, 2))]
    assert two_phase.held_back() == 0


def test_what_waits_says_for_whose_packet() -> None:
    two_phase = member()
    two_phase.receive(1, request(1))
    two_phase.receive(2, request(2))
    two_phase.receive(2, Final(0, 9, 2))
    two_phase.submit(make_run(0, 0, [b"a"]))
    two_phase.receive(2, Propose(0, 3))
    waiting = {wait.run.origin: (wait.members, wait.because) for wait in two_phase.waiting()}
    assert waiting == {
        0: ((1,), "not every member has proposed a timestamp"),
        1: ((1,), "its final key has not arrived"),
        2: ((1,), "a run whose key is not final may come before it"),
    }


@pytest.mark.parametrize("members", [2, 3, 5, 8])
@pytest.mark.parametrize("count", [1, 7])
def test_a_run_costs_one_packet_more_than_there_are_members_or_three_for_each_other_one(members: int, count: int) -> None:
    world = World(members, member)
    for origin in range(members):
        world.submit(origin, [b"x"] * count)
        world.drain()
    assert len(world.packets) == members * (members + 1)
    assert world.copies == members * 3 * (members - 1)
    assert Counter(packet.name for packet in world.packets) == {
        "REQ": members,
        "PROPOSE": members * (members - 1),
        "FINAL": members,
    }


def test_a_run_is_delivered_whole() -> None:
    world = World(2, member)
    world.submit(0, [b"a", b"b"])
    world.submit(1, [b"c", b"d"])
    world.drain()
    origins = [message.origin for message in world.log(0)]
    assert origins in ([0, 0, 1, 1], [1, 1, 0, 0])
    assert world.log(0) == world.log(1)


def test_a_member_may_have_only_so_many_messages_undelivered() -> None:
    two_phase = member(outstanding=3)
    two_phase.submit(make_run(0, 0, [b"a", b"b"]))
    before = deepcopy(vars(two_phase))
    with pytest.raises(WindowFull):
        two_phase.submit(make_run(0, 2, [b"c", b"d"]))
    assert vars(two_phase) == before
    two_phase.submit(make_run(0, 2, [b"c"]))


def test_a_run_larger_than_the_window_is_never_accepted() -> None:
    with pytest.raises(BadInput, match="a run of 4 messages never fits in a window of 3"):
        member(outstanding=3).submit(make_run(0, 0, [b"x"] * 4))


def test_a_full_queue_leaves_requests_on_their_link_until_something_is_delivered() -> None:
    two_phase = member(outstanding=1)
    two_phase.receive(2, request(2))
    for number in range(WINDOWS_HELD):
        two_phase.receive(1, request(1, number))
        two_phase.receive(1, Final(number, 10 + number, 2))
    before = deepcopy(vars(two_phase))
    with pytest.raises(HoldBackFull):
        two_phase.receive(1, request(1, WINDOWS_HELD))
    assert vars(two_phase) == before
    assert len(two_phase.receive(2, Final(0, 1, 2))) == 1 + WINDOWS_HELD
    assert two_phase.receive(1, request(1, WINDOWS_HELD)) == (Send(Propose(WINDOWS_HELD, 14), (1,)),)


def undecided() -> TwoPhase:
    """Member 0 with a request of its own that member 1 has answered, one of member 1's and one that is final."""
    two_phase = member(outstanding=4, lead=100)
    two_phase.submit(make_run(0, 0, [b"a"]))
    two_phase.receive(1, request(1))
    two_phase.receive(1, Propose(0, 3))
    two_phase.receive(1, request(1, 1))
    two_phase.receive(2, request(2))
    two_phase.receive(2, Final(0, 9, 2))
    return two_phase


IMPOSSIBLE: dict[str, tuple[int, Packet]] = {
    "a request skips a message": (1, request(1, 3)),
    "a request comes twice": (1, request(1, 0)),
    "a request is of somebody else": (1, request(2, 1)),
    "a request holds no messages": (1, Request(Run(1, 2, 0))),
    "a request holds more than the window": (1, request(1, 2, count=5)),
    "a request has too short a body": (1, Request(Run(1, 2, 2, Body(b"abc", 2)))),
    "a proposal is for nothing": (2, Propose(7, 4)),
    "a proposal comes twice": (1, Propose(0, 4)),
    "a proposal is not positive": (2, Propose(0, 0)),
    "a proposal is far ahead": (2, Propose(0, 110)),
    "a final key is for nothing": (1, Final(5, 4, 1)),
    "a final key is for somebody else's run": (2, Final(1, 4, 1)),
    "a final key comes twice": (2, Final(0, 9, 2)),
    "a final key is below this member's own proposal": (1, Final(0, 1, 2)),
    "a final key credits this member with what it did not propose": (1, Final(0, 5, 0)),
    "a final key is of nobody": (1, Final(0, 5, 3)),
    "a final key is taken": (1, Final(0, 9, 2)),
    "a final key is far ahead": (1, Final(0, 110, 1)),
    "a final key overflows": (1, Final(0, NUMBER_MAX + 1, 1)),
}


@pytest.mark.parametrize(("source", "packet"), IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_a_packet_that_cannot_be_is_refused_and_changes_nothing(source: int, packet: Packet) -> None:
    two_phase = undecided()
    before = deepcopy(vars(two_phase))
    with pytest.raises(ProtocolViolation) as refused:
        two_phase.receive(source, packet)
    assert refused.value.peer == source
    assert vars(two_phase) == before


def test_a_member_that_proposes_a_smaller_timestamp_than_before_is_refused() -> None:
    two_phase = member()
    for number in range(2):
        two_phase.submit(make_run(0, number, [b"a"]))
    two_phase.receive(1, Propose(0, 5))
    with pytest.raises(ProtocolViolation, match="it proposed 5 and then 5"):
        two_phase.receive(1, Propose(1, 5))


def test_a_clock_at_its_end_takes_nothing_more() -> None:
    two_phase = member(lead=1 << 62)
    two_phase.clock = NUMBER_MAX
    with pytest.raises(BadInput):
        two_phase.submit(make_run(0, 0, [b"a"]))
    with pytest.raises(ProtocolViolation, match="no timestamps are left"):
        two_phase.receive(1, request(1))


def test_a_group_of_one_needs_no_packets() -> None:
    world = World(1, member)
    world.submit(0, [b"a", b"b"])
    assert world.packets == []
    assert world.log(0) == [MessageId(0, 0), MessageId(0, 1)]
