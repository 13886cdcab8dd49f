"""A client's links: to all members of a hub, and to the other clients that it communicates with.

Of two clients the one with the higher number connects and the other accepts, by the same handshake as anywhere. A link between
clients promises less: what was on its way when a connection broke is lost, and each connection starts afresh. So neither side
has to remember the other, and a client that cannot be reached, or is gone, is dropped without affecting anybody else. Senders
have to retransmit, or use another route.
"""

from __future__ import annotations

import msgspec

from quire.live.errors import Dismissed, GroupFailed, StaleEpoch
from quire.live.network.connection import REASON_BYTES_MAX
from quire.live.network.handshake import Trust
from quire.live.network.hub import Visitors, topology_of_hub
from quire.live.network.peers import Peer
from quire.live.network.rosters import FixedRoster
from quire.live.settings import Address, Introduction, Settings, read_address
from quire.model.errors import BadInput


class ClientRoster:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._members = FixedRoster(settings, topology_of_hub(settings))
        self.topology, self.peers, self.recipients = self._members.topology, self._members.peers, self._members.recipients
        self._others = Visitors(settings, self._members)
        self.linked: set[int] = set()
        """The other clients that are connected."""
        self.wanted: dict[int, Address] = {}
        """The other clients to which there should be links, and their addresses."""

    def is_visitor(self, number: int) -> bool:
        return self._others.includes(number)

    def receive(self, number: int) -> Peer:
        if not self.is_visitor(number):
            return self._members.receive(number)
        if number in self.peers and self.peers[number].gone:
            self._others.forget(self.peers[number])
        return self._others.receive(number)

    def amend(self, peer: Peer, introduction: Introduction) -> Introduction:
        return msgspec.structs.replace(introduction, received=0) if self.is_visitor(peer.member) else introduction

    def objection(self, peer: Peer, theirs: Introduction, incarnation: int) -> GroupFailed | None:
        if peer.incarnation is None or self.is_visitor(peer.member):
            return None
        if peer.member < self._settings.restartable and peer.incarnation != theirs.incarnation:
            return None
        if peer.incarnation != theirs.incarnation:
            # Members wait for each other to come back until the timeout; a client can begin again at once.
            return StaleEpoch(peer.member, peer.address)
        if theirs.knows != incarnation and peer.moved():
            # The other side has lost its state of the link, so the link cannot go on. If nothing was sent over it, the
            # connection only broke during the introductions, and they can begin again.
            peer.give_up()
            return Dismissed(theirs.dismissed[:REASON_BYTES_MAX] or peer.why_down)
        return None

    def starts_anew(self, peer: Peer) -> bool:
        return self.is_visitor(peer.member)

    def admit(self, number: int) -> Peer:
        peer = self.receive(number)
        if self.is_visitor(number):
            peer.begin_anew()
            self.linked.add(number)
        return peer

    def connection_ended(self, number: int) -> None:
        peer = self.peers.get(number)
        if peer is not None and self.is_visitor(number) and peer.connection is None and number not in self.wanted:
            self.dismiss(number)
        if peer is None or peer.connection is None:
            self.linked.discard(number)

    def is_missed(self, peer: Peer) -> bool:
        return peer.closing_after is None

    def reaches(self, member: int) -> bool:
        return member in self.peers and (member in self.linked or not self.is_visitor(member))

    def dismiss(self, visitor: int, why: str = "") -> None:
        self.linked.discard(visitor)
        self.wanted.pop(visitor, None)
        if visitor in self.peers:
            self._others.dismiss(self.peers[visitor], why)

    def unheard(self) -> bool:
        return any(peer.outgoing.bytes for peer in self.peers.values() if not self.is_visitor(peer.member))

    def want(self, client: int, at: str) -> tuple[Peer, Address] | None:
        """Want a link to a client that has announced its address, if possible; returns the peer and the address to connect to,
        if this side is to connect."""
        try:
            address = read_address(at)
        except BadInput:
            return None
        here = all(member.is_loopback() for member in self._settings.members)
        if client in self.wanted or (self._settings.trust is Trust.OPEN and here and not address.is_loopback()):
            return None
        self.wanted[client] = address
        peer = self.receive(client)
        peer.address = at
        return (peer, address) if client < self._settings.me else None

    def keep_only(self, clients: set[int]) -> None:
        """Drop all clients except these."""
        for client in (self.linked | self.wanted.keys()) - clients:
            self.dismiss(client)
