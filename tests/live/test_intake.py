"""How packets come to the protocol: in order and each once, and a link waits while there is no room for what it brings."""

from __future__ import annotations

from typing import cast

import pytest

from quire.live.errors import GroupFailed, PeerMisbehaved
from quire.live.network.connection import Connection
from quire.live.network.intake import Intake
from quire.live.network.peers import Peer
from quire.model.errors import HoldBackFull, ProtocolViolation
from quire.model.packets import Packet


class Reading:
    """A connection, as far as reading from it is concerned."""

    def __init__(self) -> None:
        self.paused = False

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False


class Full:
    """A protocol that has room when a test says so."""

    def __init__(self) -> None:
        self.room = 0
        self.taken: list[tuple[int, int]] = []
        self.errors: list[GroupFailed] = []

    def packet_arrived(self, source: int, packet: Packet, lamport: int) -> None:
        if lamport < 0:
            raise ProtocolViolation(source, "time does not run backwards")
        if not self.room:
            raise HoldBackFull("there is no room")
        self.room -= 1
        self.taken.append((source, lamport))

    def failed(self, error: GroupFailed) -> None:
        self.errors.append(error)


class Member:
    def __init__(self) -> None:
        self.owner = Full()
        self.onward = True
        self.intake = Intake(self.owner, lambda peer: self.onward)
        self.peers = {member: Peer(member, "") for member in (1, 2)}
        self.reading = {member: Reading() for member in self.peers}
        for member, peer in self.peers.items():
            peer.connection = cast(Connection, self.reading[member])

    def offer(self, source: int, lamport: int) -> bool:
        return self.intake.offer(self.peers[source], Packet(), lamport)

    def retry(self, room: int) -> None:
        self.owner.room = room
        self.intake.retry()

    def paused(self) -> list[bool]:
        return [reading.paused for reading in self.reading.values()]


def test_a_link_waits_until_there_is_room_for_what_it_brings_and_no_longer() -> None:
    member = Member()
    assert not member.offer(1, 7)
    assert member.paused() == [True, False]
    member.retry(room=0)
    assert member.paused() == [True, False]
    member.retry(room=1)
    assert member.owner.taken == [(1, 7)]
    assert member.paused() == [False, False]
    member.retry(room=1)
    assert member.owner.taken == [(1, 7)], "what was taken is not offered again"


def test_of_two_links_that_wait_the_one_for_which_there_is_room_goes_on() -> None:
    member = Member()
    assert not member.offer(2, 5)
    assert not member.offer(1, 6)
    member.retry(room=1)
    assert member.owner.taken == [(2, 5)]
    assert member.paused() == [True, False]


def test_a_link_waits_while_there_is_no_room_where_its_packets_go_on_to() -> None:
    member = Member()
    member.owner.room = 2
    member.onward = False
    assert not member.offer(1, 7)
    assert (member.owner.taken, member.paused()) == ([], [True, False])
    member.onward = True
    member.retry(room=1)
    assert (member.owner.taken, member.paused()) == ([(1, 7)], [False, False])


def test_where_nothing_is_to_be_read_at_all_no_link_goes_on_by_itself() -> None:
    member = Member()
    assert not member.offer(1, 7)
    member.intake.paused = True
    member.retry(room=1)
    assert member.owner.taken == [(1, 7)]
    assert member.paused() == [True, False]


def test_who_breaks_the_protocol_is_blamed_by_name() -> None:
    member = Member()
    with pytest.raises(ProtocolViolation):
        member.offer(2, -1)
    [error] = member.owner.errors
    assert isinstance(error, PeerMisbehaved)
    assert error.member == 2
