"""Passes packets from peers to the protocol: at once or, where it has no room, later, while the link waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol as Interface

from quire.live.errors import GroupFailed, PeerMisbehaved
from quire.live.network.peers import Peer
from quire.model.errors import HoldBackFull, ProtocolViolation
from quire.model.packets import Packet


class Owner(Interface):
    def packet_arrived(self, source: int, packet: Packet, lamport: int) -> None: ...
    def failed(self, error: GroupFailed) -> None: ...


class Intake:
    """`may_go_on`: whether there is room on the links to which packets from a peer are relayed."""

    def __init__(self, owner: Owner, may_go_on: Callable[[Peer], bool]) -> None:
        self.paused = False
        """Whether reading is stopped altogether."""
        self._owner = owner
        self._may_go_on = may_go_on
        self._blocked: list[Peer] = []

    def offer(self, peer: Peer, packet: Packet, lamport: int) -> bool:
        """Pass a packet to the protocol; returns False if it had no room, so that the link waits."""
        try:
            if not self._may_go_on(peer):
                raise HoldBackFull(f"a link over which packets of member {peer.member} are forwarded is full")
            self._owner.packet_arrived(peer.member, packet, lamport)
        except HoldBackFull:
            peer.blocked = (packet, lamport)
            self._blocked.append(peer)
            if peer.connection is not None:
                peer.connection.pause()
            return False
        except ProtocolViolation as error:
            self._owner.failed(PeerMisbehaved(peer.member, str(error)))
            raise
        return True

    def retry(self) -> None:
        """Offer the protocol again the packets that it had no room for."""
        if not self._blocked:
            return
        blocked, self._blocked = self._blocked, []
        for peer in blocked:
            assert peer.blocked is not None
            packet, lamport = peer.blocked
            peer.blocked = None
            if self.offer(peer, packet, lamport) and peer.connection is not None and not self.paused:
                peer.connection.resume()
