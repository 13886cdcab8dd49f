"""The mesh: a connection between every two members who have to do with each other, kept up, and the links that survive it.

Of two members the one with the higher number connects and the other accepts, so that there is one connection a pair.
A broken connection is made again with growing pauses, and so is one on which nothing comes any more; a member that
stays away, or is silent, for longer than the timeout is reported as unreachable.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import time
from collections.abc import Iterator, Mapping
from typing import Protocol as Interface

from quire.live.errors import GroupFailed, PeerMisbehaved
from quire.live.events import Event, Reporter, log
from quire.live.metrics import Sample
from quire.live.network.connection import CLOSE_S, Connection
from quire.live.network.door import Door
from quire.live.network.farewell import Farewell, Ways
from quire.live.network.frames import CLOSING, DONE, DRAINED, PACKET, FrameError, Numbered, PacketCodec, read_count
from quire.live.network.peers import Peer, samples
from quire.live.network.vigil import Vigil, unreachable
from quire.live.settings import Address, Introduction, Misfit, Settings, tls_contexts
from quire.model.errors import BadInput, HoldBackFull, ProtocolViolation, QuireError
from quire.model.packets import Packet

EPOCH = 0
"""Views number the memberships of a group; a fixed group has one."""

RECONNECT_S = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
LINGER_S = 2.0
"""How long a member that is done stays, so that its last words arrive even if the connection breaks just then."""
UNREADABLE_MAX = 3
"""How often a peer may send the same frame in a way that cannot be read, which a network may have spoilt."""


class Owner(Interface):
    def packet_arrived(self, source: int, packet: Packet, lamport: int) -> None: ...
    def room_made(self) -> None: ...
    def peer_closing(self) -> None: ...
    def everybody_done(self) -> None: ...
    def failed(self, error: GroupFailed) -> None: ...
    def time_passed(self) -> None: ...


class Mesh:
    """`ways`: with whom there are links, if not with everybody."""

    def __init__(self, settings: Settings, packets: tuple[type[Packet], ...], owner: Owner, ways: Ways | None = None) -> None:
        self.settings = settings
        self._ways = ways or Ways.to_all(settings.me, len(settings.members))
        self.peers = {member: Peer(member, str(settings.members[member])) for member in self._ways.neighbours}
        self.paused = False
        # Whoever was heard last comes first: if anybody waits for an answer, it does.
        self._recipients = list(self.peers.values())
        self._blocked: list[Peer] = []
        self.report = Reporter(settings.group, settings.me)
        self._vigil = Vigil(settings.timeout_s, self.peers.values(), self.report, owner)
        self._owner = owner
        self._codec = PacketCodec(packets)
        self._incarnation = int.from_bytes(os.urandom(7), "big")
        self._tasks: list[asyncio.Task[None]] = []
        self._all_here = asyncio.Event()
        self._stopping = False
        self._misfit: QuireError | None = None
        self._farewell = Farewell(self.peers, self._ways, lambda peer, kind, body: self._send(peer, kind, 0, body))
        accepting_tls: ssl.SSLContext | None = None
        self._connecting_tls: ssl.SSLContext | None = None
        if settings.certificates is not None:
            accepting_tls, self._connecting_tls = tls_contexts(settings.certificates)
        self._door = Door(settings, lambda: Connection(self, settings, None), accepting_tls)

    async def start(self) -> None:
        """Listen, connect, and return when all members are there; raises where one is not, or runs something else."""
        settings, loop = self.settings, asyncio.get_running_loop()
        await self._door.open()
        for peer in self.peers.values():
            peer.heard_at = time.monotonic()
            if peer.member < settings.me:
                self._tasks.append(loop.create_task(self._keep_connected(peer)))
        self._tasks.append(loop.create_task(self._vigil.keep()))
        self._check_all_here()
        try:
            async with asyncio.timeout(settings.join_s):
                await self._all_here.wait()
        except TimeoutError:
            self._misfit = self._misfit or unreachable(next(p for p in self.peers.values() if p.connection is None))
        except BaseException:
            await self.stop()
            raise
        if self._misfit is not None:
            await self.stop()
            raise self._misfit
        self._vigil.started = True
        log.info("group=%s member=%d event=started members=%d", settings.group, settings.me, len(settings.members))

    async def stop(self) -> None:
        """Close all connections after what was written has left; when all are done, only after it has arrived."""
        if self._farewell.is_over():
            deadline = time.monotonic() + LINGER_S
            while time.monotonic() < deadline and any(peer.outgoing.bytes for peer in self.peers.values()):
                self._vigil.tell_all()
                await asyncio.sleep(0.005)
            self._vigil.tell_all()
        self._stopping = True
        for task in self._tasks:
            task.cancel()
        for peer in self.peers.values():
            if peer.connection is not None:
                peer.connection.close("this member has left")
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._door.close()

    def transmit(self, packet: Packet, to: tuple[int, ...] | None, lamport: int) -> int:
        """Put a packet on the links to these members; returns how many bytes of it are header."""
        body = self._codec.encode(packet)
        for peer in self._recipients if to is None else map(self.peers.__getitem__, to):
            self._send(peer, PACKET, lamport, body)
        carried = packet.carried()
        return len(body) - (len(carried.body.payload) if carried is not None else 0)

    @property
    def port(self) -> int | None:
        """Where this member listens, if it does."""
        return self._door.port

    def has_room(self) -> bool:
        limit = self.settings.link_bytes_max
        return all(peer.outgoing.bytes < limit for peer in self.peers.values())

    def has_room_to(self, member: int) -> bool:
        """Whether there is a link to this member, and it is not full."""
        peer = self.peers[member]
        return not peer.gone and peer.outgoing.bytes < self.settings.link_bytes_max

    def has_left(self, member: int) -> bool:
        """Whether this member sends nothing more of its own: it is closing, or was given up."""
        peer = self.peers[member]
        return peer.gone or peer.closing_after is not None

    def give_up(self, member: int) -> None:
        """Have no more to do with a member that is lost, and wait for it no more."""
        peer = self.peers[member]
        peer.give_up()
        if peer.connection is not None:
            peer.connection.close("this member was given up", at_once=True)

    def pause(self) -> None:
        """Read nothing more: the application has more than enough to do."""
        self.paused = True
        for peer in self.peers.values():
            if peer.connection is not None:
                peer.connection.pause()

    def resume(self) -> None:
        self.paused = False
        self.retry_blocked()
        for peer in self.peers.values():
            if peer.connection is not None and peer.blocked is None and not self.paused:
                peer.connection.resume()

    def say_closing(self, sent: int) -> None:
        """Tell all that this member has sent so many messages and sends no more."""
        self._farewell.close(sent)

    def check_done(self, delivered: list[int]) -> None:
        """Tell all, once everybody is closing and everything that they sent is delivered here."""
        self._farewell.advance(delivered)
        self._check_everybody_done()

    def samples(self, base: Mapping[str, str]) -> Iterator[Sample]:
        return samples(self.peers.values(), base)

    def who_is_missing(self) -> str:
        """For a member that could not close in time: what it still waits for."""
        for peer in self.peers.values():
            if peer.connection is None and not peer.done:
                return f"member {peer.member} ({peer.address}) is not connected: {peer.why_down}"
        behind = [str(peer.member) for peer in self.peers.values() if not peer.done]
        return f"no word from member {', '.join(behind)} that it has delivered everything" if behind else "the group failed"

    # What connections report.

    def introduction_to(self, peer: int) -> Introduction:
        settings = self.settings
        if peer not in self.peers:
            raise Misfit(f"member {peer} is no neighbour of member {settings.me} in this group")
        return Introduction(
            group=settings.group,
            protocol=settings.protocol,
            options=settings.options_shown(),
            members=tuple(map(str, settings.members)),
            epoch=EPOCH,
            incarnation=self._incarnation,
            received=self.peers[peer].incoming.received,
        )

    def introduced(self, connection: Connection, introduction: Introduction) -> None:
        """Raises Misfit where this is not the process that was there before."""
        assert connection.peer is not None
        peer = self.peers[connection.peer]
        if peer.gone:
            raise Misfit(f"member {peer.member} was given up; it cannot come back")
        if peer.incarnation not in (None, introduction.incarnation):
            peer.why_down = "it came back as another process, which a fixed group cannot take in"
            raise Misfit(f"member {peer.member} is known as another process; a restarted member cannot come back")

    def admitted(self, connection: Connection, introduction: Introduction) -> None:
        self.introduced(connection, introduction)
        assert connection.peer is not None
        peer = self.peers[connection.peer]
        resend = peer.outgoing.resume(introduction.received)
        if peer.connection is not None:
            # A connection that broke without our noticing; its successor takes over.
            peer.connection.close("the member has connected anew", at_once=True)
        self._door.left(connection)
        peer.incarnation = introduction.incarnation
        peer.connection = connection
        peer.heard_at = peer.progress_at = time.monotonic()
        connection.open = connection.was_open = True
        for frame in resend:
            connection.write(*frame)
        if self.paused or peer.blocked is not None:
            connection.pause()
        self.report(Event("connected", (peer.member,)))
        self._check_all_here()

    def frame_arrived(self, connection: Connection, frame: Numbered) -> None:
        assert connection.peer is not None
        peer = self.peers[connection.peer]
        if peer.connection is not connection or not peer.incoming.is_new(frame.number):
            return
        if frame.epoch != EPOCH:
            raise FrameError(f"a frame of epoch {frame.epoch} came in epoch {EPOCH}")
        try:
            packet, count = self._read(peer, frame)
        except FrameError as error:
            peer.unreadable += 1
            if peer.unreadable == UNREADABLE_MAX:
                self._owner.failed(PeerMisbehaved(f"member {peer.member} sent what cannot be read: {error}"))
            raise
        peer.unreadable = 0
        peer.incoming.take(len(frame.body))
        if packet is not None:
            self._offer(peer, packet, frame.lamport)
            return
        if frame.kind == CLOSING:
            peer.closing_after = count
        elif frame.kind == DRAINED:
            peer.drained = True
        else:
            peer.done = True
            self._check_everybody_done()
        self._owner.peer_closing()

    def _read(self, peer: Peer, frame: Numbered) -> tuple[Packet | None, int]:
        """What a numbered frame holds: a packet, or a count."""
        if frame.kind == PACKET:
            return self._codec.decode(frame.body), 0
        if frame.kind == CLOSING and peer.closing_after is None:
            return None, read_count(frame)
        if frame.kind == DRAINED and peer.closing_after is not None and not peer.drained:
            return None, 0
        if frame.kind == DONE and peer.closing_after is not None and not peer.done:
            return None, 0
        raise FrameError("it said twice that it closes or is done, or that it is done before it closed")

    def acknowledged(self, connection: Connection, received: int) -> None:
        assert connection.peer is not None
        peer = self.peers[connection.peer]
        if peer.connection is not connection:
            return
        before = peer.outgoing.bytes
        peer.outgoing.acknowledged(received)
        peer.progress_at = time.monotonic()
        if before >= self.settings.link_bytes_max > peer.outgoing.bytes:
            self._owner.room_made()

    def burst_ended(self, connection: Connection) -> None:
        assert connection.peer is not None
        peer = self.peers[connection.peer]
        if peer.connection is not connection:
            return
        peer.heard_at = time.monotonic()
        # A peer that is done waits for nothing else before it leaves.
        if peer.incoming.acknowledge_due() or (peer.done and peer.incoming.unacknowledged()):
            peer.incoming.told()
            connection.tell(peer.incoming.received)
        self.retry_blocked()

    def lost(self, connection: Connection, reason: str) -> None:
        self._door.left(connection)
        if not connection.was_open:
            self._came_to_nothing(connection, reason)
            return
        assert connection.peer is not None
        peer = self.peers[connection.peer]
        if peer.connection is not connection:
            return
        peer.connection = None
        if not self._stopping and not peer.done:
            peer.why_down = reason
            self.report(Event("disconnected", (peer.member,), why=reason))

    def _came_to_nothing(self, connection: Connection, reason: str) -> None:
        """A connection ended before anybody was let in. That is of no consequence for a group that has started."""
        if self._stopping:
            return
        self._door.refused(connection, reason)
        peer = self.peers.get(-1 if connection.claimed is None else connection.claimed)
        if self._vigil.started or peer is None or peer.connection is not None:
            return
        claim = f"whoever says at {connection.address} that it is this member was refused: "
        peer.why_down = reason if connection.initiator else claim + reason
        if connection.misfit and self._misfit is None:
            self._misfit = BadInput(f"member {peer.member} ({peer.address}): {reason}")
            self._all_here.set()

    def _send(self, peer: Peer, kind: int, lamport: int, body: bytes) -> None:
        if peer.gone:
            return
        if not peer.outgoing.bytes:
            peer.progress_at = time.monotonic()
        frame = peer.outgoing.push(kind, EPOCH, lamport, body)
        if peer.connection is not None:
            peer.connection.write(*frame)

    def _offer(self, peer: Peer, packet: Packet, lamport: int) -> bool:
        """Hand a packet to the protocol; False if it had no room, and the link waits."""
        if self._recipients[0] is not peer:
            self._recipients.remove(peer)
            self._recipients.insert(0, peer)
        try:
            onward = self._ways.onward[peer.member]
            if onward and not all(map(self.has_room_to, onward)):
                raise HoldBackFull(f"a link to which member {peer.member} sends through here is full")
            self._owner.packet_arrived(peer.member, packet, lamport)
        except HoldBackFull:
            peer.blocked = (packet, lamport)
            self._blocked.append(peer)
            if peer.connection is not None:
                peer.connection.pause()
            return False
        except ProtocolViolation as error:
            self._owner.failed(PeerMisbehaved(str(error)))
            raise
        return True

    def retry_blocked(self) -> None:
        """Offer the protocol again what it had no room for."""
        if not self._blocked:
            return
        blocked, self._blocked = self._blocked, []
        for peer in blocked:
            assert peer.blocked is not None
            packet, lamport = peer.blocked
            peer.blocked = None
            if self._offer(peer, packet, lamport) and peer.connection is not None and not self.paused:
                peer.connection.resume()

    def _check_everybody_done(self) -> None:
        if self._farewell.is_over():
            self._owner.everybody_done()

    def _check_all_here(self) -> None:
        if all(peer.connection is not None for peer in self.peers.values()):
            self._all_here.set()

    async def _keep_connected(self, peer: Peer) -> None:
        """Connect, wait until the connection ends, and connect again."""
        tries = 0
        while not peer.gone:
            connection = Connection(self, self.settings, peer.member)
            try:
                await self._connect(peer, connection)
                await connection.ended.wait()
            except OSError as error:
                peer.why_down = f"it cannot be connected to ({error.strerror or error})"
            finally:
                connection.close("this member has left")
            tries = 0 if connection.was_open else tries + 1
            await asyncio.sleep(RECONNECT_S[min(tries, len(RECONNECT_S) - 1)])

    def _address_of(self, peer: Peer) -> Address:
        return self.settings.members[peer.member]

    async def _connect(self, peer: Peer, connection: Connection) -> None:
        address = self._address_of(peer)
        tls: dict[str, object] = {}
        if self._connecting_tls is not None:
            name = self.settings.certificate_name(peer.member)
            tls = {"ssl": self._connecting_tls, "server_hostname": name, "ssl_shutdown_timeout": CLOSE_S}
        async with asyncio.timeout(self.settings.handshake_s):
            await asyncio.get_running_loop().create_connection(lambda: connection, address.host, address.port, **tls)  # type: ignore[call-overload]
