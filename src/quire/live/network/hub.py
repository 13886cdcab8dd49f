"""Links between processes that are always there and visitors that come and go.

The members of a hub have addresses and connect to each other, as in any mesh. Visitors have numbers after theirs and
connect to all members, and to each other only where they ask for it (`fellows`). A visitor that is silent for longer
than the timeout, or sends what no correct one sends, is dismissed, and nobody else notices; one that says that it closes is
forgotten when it has gone. Nothing is kept for a visitor before it has shown that it belongs here, and there is room for so
many.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict

from quire.live.errors import StaleEpoch
from quire.live.network.connection import Connection
from quire.live.network.farewell import Ways
from quire.live.network.frames import Numbered
from quire.live.network.mesh import Mesh, Owner
from quire.live.network.peers import Peer
from quire.live.settings import Introduction, Misfit, Settings
from quire.model.packets import Packet

VISITORS = 1 << 30
"""How many numbers there are for visitors: enough that two that are drawn at random differ."""
VISITORS_AT_ONCE_MAX = 1024
CLOSE_S = 2.0
"""How long a visitor that leaves waits for its last words to arrive."""


class Hub(Mesh):
    def __init__(self, settings: Settings, packets: tuple[type[Packet], ...], owner: Owner) -> None:
        others = tuple(member for member in range(len(settings.members)) if member != settings.me)
        super().__init__(settings, packets, owner, Ways(others, defaultdict(tuple)))
        self.served: int | None = None
        """Whose frame is just being looked at."""

    def is_visitor(self, peer: int) -> bool:
        return peer >= len(self.settings.members)

    def introduction_to(self, peer: int) -> Introduction:
        if self.is_visitor(peer):
            self._receive_visitor(peer)
        return super().introduction_to(peer)

    def _receive_visitor(self, number: int) -> Peer:
        peer = self.peers.get(number)
        if peer is None:
            if sum(map(self.is_visitor, self.peers)) >= VISITORS_AT_ONCE_MAX:
                raise Misfit("too many clients are here already; try again later")
            peer = self.peers[number] = Peer(number, "a client")
            self._recipients.append(peer)
        return peer

    def introduced(self, connection: Connection, introduction: Introduction) -> None:
        assert connection.peer is not None
        peer = self.peers[connection.peer]
        if self.is_visitor(self.settings.me) and peer.incarnation not in (None, introduction.incarnation):
            # Members wait for each other to come back until the timeout; a visitor can begin again at once.
            self._owner.failed(StaleEpoch(peer.member, peer.address))
        super().introduced(connection, introduction)

    def frame_arrived(self, connection: Connection, frame: Numbered) -> None:
        self.served = connection.peer
        try:
            super().frame_arrived(connection, frame)
        finally:
            self.served = None

    def acknowledged(self, connection: Connection, received: int) -> None:
        if connection.peer in self.peers:
            super().acknowledged(connection, received)

    def burst_ended(self, connection: Connection) -> None:
        if connection.peer in self.peers:
            super().burst_ended(connection)

    def lost(self, connection: Connection, reason: str) -> None:
        if connection.was_open and connection.peer not in self.peers:
            self._door.left(connection)
            return
        super().lost(connection, reason)
        peer = self.peers.get(-1 if connection.peer is None else connection.peer)
        if peer is not None and self.is_visitor(peer.member) and self._is_over_with(peer):
            self.dismiss(peer.member)

    def _is_over_with(self, peer: Peer) -> bool:
        """Whether a visitor whose connection has ended is not waited for."""
        return peer.closing_after is not None or peer.incarnation is None

    def has_room_to(self, member: int) -> bool:
        return member in self.peers and super().has_room_to(member)

    def dismiss(self, visitor: int) -> None:
        """Have no more to do with a visitor."""
        self.give_up(visitor)
        # Whoever is just going through all peers must not lose one meanwhile.
        asyncio.get_running_loop().call_soon(self._forget, self.peers[visitor])

    def _forget(self, visitor: Peer) -> None:
        if self.peers.get(visitor.member) is visitor:
            del self.peers[visitor.member]
            self._recipients.remove(visitor)

    def _unheard(self) -> bool:
        return any(peer.outgoing.bytes for peer in self.peers.values())

    async def said_everything(self) -> None:
        """Say that this process closes, and return when that has arrived, or soon."""
        self.say_closing(0)
        deadline = asyncio.get_running_loop().time() + CLOSE_S
        while self._unheard() and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.002)
