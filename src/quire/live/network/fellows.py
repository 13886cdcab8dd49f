"""Links between the visitors of a hub, for those that have to do with each other.

Of two fellows the one with the higher number connects and the other accepts, by the same handshake as anywhere. Such a
link promises less: what was on its way when a connection broke is lost, and each connection starts from nothing. So
neither side has to remember the other, and one that cannot be reached, or is gone, is dropped and nobody else notices.
Who sends over it repairs that, or goes another way.
"""

from __future__ import annotations

import asyncio

import msgspec

from quire.live.network.connection import Connection
from quire.live.network.frames import Numbered
from quire.live.network.handshake import Trust
from quire.live.network.hub import Hub
from quire.live.network.mesh import Owner
from quire.live.network.peers import Peer
from quire.live.settings import Address, Introduction, Settings, read_address
from quire.model.errors import BadInput
from quire.model.packets import Packet


class Fellowship(Hub):
    """A visitor's links, to the members of the hub and to fellows."""

    def __init__(self, settings: Settings, packets: tuple[type[Packet], ...], owner: Owner) -> None:
        super().__init__(settings, packets, owner)
        self.linked: set[int] = set()
        """The fellows that are connected."""
        self.wanted: dict[int, Address] = {}
        """The fellows to which there should be links, and where they are."""

    def introduction_to(self, peer: int) -> Introduction:
        introduction = super().introduction_to(peer)
        return msgspec.structs.replace(introduction, received=0) if self.is_visitor(peer) else introduction

    def introduced(self, connection: Connection, introduction: Introduction) -> None:
        assert connection.peer is not None
        if not self.is_visitor(connection.peer):
            super().introduced(connection, introduction)

    def admitted(self, connection: Connection, introduction: Introduction) -> None:
        assert connection.peer is not None
        if self.is_visitor(connection.peer):
            self._receive_visitor(connection.peer).begin_anew()
            self.linked.add(connection.peer)
        super().admitted(connection, introduction)

    def _receive_visitor(self, number: int) -> Peer:
        if number in self.peers and self.peers[number].gone:
            self._forget(self.peers[number])
        return super()._receive_visitor(number)

    def frame_arrived(self, connection: Connection, frame: Numbered) -> None:
        if connection.peer in self.peers:
            super().frame_arrived(connection, frame)

    def lost(self, connection: Connection, reason: str) -> None:
        super().lost(connection, reason)
        number = -1 if connection.peer is None else connection.peer
        if number not in self.peers or self.peers[number].connection is None:
            self.linked.discard(number)

    def _is_over_with(self, peer: Peer) -> bool:
        return peer.connection is None and peer.member not in self.wanted

    def dismiss(self, visitor: int) -> None:
        self.linked.discard(visitor)
        self.wanted.pop(visitor, None)
        if visitor in self.peers:
            super().dismiss(visitor)

    def _unheard(self) -> bool:
        return any(peer.outgoing.bytes for peer in self.peers.values() if not self.is_visitor(peer.member))

    def has_room_to(self, member: int) -> bool:
        return (member in self.linked or not self.is_visitor(member)) and super().has_room_to(member)

    def link(self, fellow: int, at: str) -> None:
        """Have a link to a fellow that says it is there, if it can be had."""
        try:
            address = read_address(at)
        except BadInput:
            return
        here = all(member.is_loopback() for member in self.settings.members)
        if fellow in self.wanted or (self.settings.trust is Trust.OPEN and here and not address.is_loopback()):
            return
        self.wanted[fellow] = address
        peer = self._receive_visitor(fellow)
        peer.address = at
        if fellow < self.settings.me:
            task = asyncio.get_running_loop().create_task(self._keep_connected(peer))
            self._tasks.append(task)
            task.add_done_callback(self._tasks.remove)

    def _address_of(self, peer: Peer) -> Address:
        return self.wanted[peer.member] if self.is_visitor(peer.member) else super()._address_of(peer)
