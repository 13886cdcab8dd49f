"""The mesh: maintains a connection between every two members that communicate, and links that outlive the connections.

Of two members the one with the higher number connects and the other accepts, so that there is one connection per pair.
A broken connection is made again with growing pauses, and so is one on which nothing comes any more; a member that
stays away, or is silent, for longer than the timeout is reported as unreachable.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol as Interface

from quire.live import clock
from quire.live.errors import GroupFailed, PeerMisbehaved
from quire.live.events import Event, Reporter, log
from quire.live.metrics import Sample
from quire.live.network.acceptor import Acceptor
from quire.live.network.admission import Admission
from quire.live.network.allocator import keep_freed_memory
from quire.live.network.closing import Closing
from quire.live.network.connection import Connection
from quire.live.network.dialling import Dialling
from quire.live.network.failure_notices import FailureNotices
from quire.live.network.gathering import Gathering
from quire.live.network.intake import Intake
from quire.live.network.liveness import Liveness
from quire.live.network.losses import Losses
from quire.live.network.peers import Peer, samples, who_is_missing
from quire.live.network.rosters import FixedRoster, Roster
from quire.live.network.transports.registry import make_transport
from quire.live.network.verdicts import Verdict
from quire.live.settings import Address, Introduction, Settings
from quire.model.errors import QuireError, TooLarge
from quire.model.packets import Packet
from quire.wire.frames import EPOCH, PACKET, PIECE, FrameError, Numbered, PacketCodec
from quire.wire.links import LONG_BYTES, cut

UNREADABLE_MAX = 3
"""How often the same frame of a peer may be unreadable before the peer is blamed: the network may have corrupted it."""


class Owner(Interface):
    def packet_arrived(self, source: int, packet: Packet, lamport: int) -> None: ...
    def room_made(self) -> None: ...
    def peer_closing(self) -> None: ...
    def everybody_done(self) -> None: ...
    def failed(self, error: GroupFailed) -> None: ...
    def given_up(self, by: int, error: GroupFailed) -> None: ...
    def time_passed(self) -> None: ...


class Mesh:
    """`roster`: the peers that there are links with, and their terms; all members of a fixed group if not given."""

    def __init__(
        self, settings: Settings, packets: tuple[type[Packet], ...], owner: Owner, roster: Roster | None = None
    ) -> None:
        self.settings = settings
        self._roster = roster or FixedRoster(settings)
        self.peers, self._recipients = self._roster.peers, self._roster.recipients
        self._onward = self._roster.topology.onward
        self._connected: dict[Connection, Peer] = {}
        """The peer of each admitted connection."""
        self._intake = Intake(owner, self._may_go_on)
        self.report = Reporter(settings.group, settings.me)
        self._liveness = Liveness(settings.timeout_s, self.peers.values(), self.report, owner)
        self._owner = owner
        self._codec = PacketCodec(packets)
        self.incarnation = clock.wall_ns()
        """Distinguishes this process from any other that was or will be this member."""
        self._tasks: list[asyncio.Task[None]] = []
        self._gathering = Gathering(settings, self.peers, self.report)
        self.failure_notices = FailureNotices(settings, self.peers, self._gathering, self._liveness, owner)
        self._stopping = False
        self._closing = Closing(self.peers, self._roster.topology, lambda peer, kind, body: self._send(peer, kind, 0, body))
        transport = make_transport(settings)
        self._losses = Losses(self._liveness, transport)
        self._admission = Admission(
            settings, self._roster, self._gathering, self._liveness, self._losses, self.incarnation, owner.failed
        )
        self._dialling = Dialling(settings, lambda peer: Connection(self, settings, peer), transport)
        self._acceptor = Acceptor(settings, lambda: Connection(self, settings, None), transport)

    async def start(self) -> None:
        """Listen, connect, and return when all members are there; raises where one is not, or runs something else."""
        settings, loop = self.settings, asyncio.get_running_loop()
        keep_freed_memory()
        await self._acceptor.open()
        for peer in self.peers.values():
            peer.heard_at = peer.progress_at = clock.now()
            if peer.member < settings.me:
                self.dial(peer, settings.members[peer.member])
        self._tasks.append(loop.create_task(self._liveness.keep()))
        try:
            await self._gathering.wait()
        except QuireError as error:
            await self.failure_notices.cannot_start(error)
            await self.stop()
            raise
        except BaseException:
            await self.stop()
            raise
        self._liveness.started = True
        log.info("group=%s member=%d event=started members=%d", settings.group, settings.me, len(settings.members))

    def was_here_before(self) -> None:
        """Do not wait for the others at the start: this process replaces an earlier one."""
        self._gathering.was_here_before()

    @property
    def returns(self) -> bool:
        """Whether an earlier process of this member has taken part, as far as it is known at the start."""
        return self._gathering.returns

    async def stop(self) -> None:
        """Close all connections once everything written has been sent or, when all members are done, has been received."""
        if self._closing.is_over():
            began = clock.now()
            while self._closing.is_unheard(clock.now() - began, self.settings.timeout_s):
                self._liveness.tell_all()
                await asyncio.sleep(0.005)
            self._liveness.tell_all()
        elif not self._closing.said_closing:
            self.failure_notices.leaves()
        self._stopping = True
        for task in self._tasks:
            task.cancel()
        for peer in self.peers.values():
            if peer.connection is not None:
                peer.connection.close("this member has left")
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._losses.stop()
        await self._acceptor.close()

    def dial(self, peer: Peer, address: Address) -> None:
        """Maintain a connection to a peer that listens there, until it is given up."""
        task = asyncio.get_running_loop().create_task(self._dialling.keep_connected(peer, address))
        self._tasks.append(task)
        task.add_done_callback(self._tasks.remove)

    def lose(self, member: int, why: str) -> None:
        """A member has said that it is gone for good."""
        peer = self.peers[member]
        peer.why_down, peer.ended = why, True
        self._liveness.lose(peer)

    def transmit(self, packet: Packet, to: tuple[int, ...] | None, lamport: int) -> int:
        """Put a packet on the links to these members; returns the size of its header. Raises TooLarge where none of them could
        take it."""
        body = self._codec.encode(packet)
        if len(body) > self.settings.packet_bytes_max:
            raise TooLarge(f"a packet {packet.name}", len(body), self.settings.packet_bytes_max)
        peers = self._recipients if to is None else map(self.peers.__getitem__, to)
        carried = packet.carried()
        if len(body) >= LONG_BYTES:
            self._send_long(peers, lamport, body, b"" if carried is None else carried.body.payload)
        else:
            for peer in peers:
                self._send(peer, PACKET, lamport, body)
        return len(body) if carried is None else len(body) - len(carried.body.payload)

    def _send_long(self, peers: Iterable[Peer], lamport: int, body: bytes, payload: bytes) -> None:
        """Send a packet that may need several frames, and note its payload, so that it is not sent again while in flight."""
        *pieces, last = cut(body)
        for peer in peers:
            for piece in pieces:
                self._send(peer, PIECE, lamport, piece)
            self._send(peer, PACKET, lamport, last)
            peer.outgoing.note_payload(payload)

    def has_started(self) -> bool:
        """Whether all members have joined."""
        return self._liveness.started

    def incarnations(self) -> dict[int, int]:
        """The incarnations of the peers that are linked with this process so far."""
        return {member: peer.incarnation for member, peer in self.peers.items() if peer.incarnation is not None}

    @property
    def port(self) -> int | None:
        """Where this member listens, if it does."""
        return self._acceptor.port

    def has_room(self) -> bool:
        limit = self.settings.link_bytes_max
        return all(peer.outgoing.bytes < limit for peer in self.peers.values())

    def has_room_to(self, member: int) -> bool:
        """Whether there is a link to this member, and it is not full."""
        return self.peers[member].has_room(self.settings.link_bytes_max)

    def has_use_for(self, packet: Packet, member: int) -> bool:
        """Whether it makes sense to send this member a packet that will be repeated anyway."""
        if not self._roster.reaches(member):
            return False
        reserve = self.settings.packet_bytes_max
        return self.peers[member].has_use_for(packet, self.settings.link_bytes_max, reserve)

    def give_up(self, member: int, incarnation: int, why: str) -> None:
        """Drop a process of a member for good, though it may never have been connected."""
        peer = self.peers[member]
        peer.give_up(incarnation)
        if peer.connection is not None:
            peer.connection.refuse(why)

    @property
    def paused(self) -> bool:
        return self._intake.paused

    def pause(self) -> None:
        """Stop reading: the application has more than enough to do."""
        self._intake.paused = self._liveness.unread = True
        for peer in self.peers.values():
            if peer.connection is not None:
                peer.connection.pause()

    def resume(self) -> None:
        self._intake.paused = self._liveness.unread = False
        self.retry_blocked()
        for peer in self.peers.values():
            if peer.connection is not None and peer.blocked is None and not self.paused:
                peer.connection.resume()

    def is_unread(self, member: int) -> bool:
        """Whether the member says that its application does not take what is delivered there."""
        peer = self.peers.get(member)
        return peer is not None and peer.unread

    def say_closing(self, sent: int) -> None:
        """Tell all that this member has sent so many messages and sends no more."""
        self._closing.close(sent)

    def check_done(self, delivered: list[int]) -> None:
        """Tell all, once everybody is closing and everything that they sent is delivered here."""
        self._closing.advance(delivered)
        self._check_everybody_done()

    def samples(self, base: Mapping[str, str]) -> Iterator[Sample]:
        return samples(self.peers.values(), base)

    def who_is_missing(self) -> str:
        """For a member that could not close in time: what it still waits for."""
        return who_is_missing(self.peers.values())

    # What connections report.

    def introduction_to(self, peer: int) -> Introduction:
        return self._admission.introduction_to(peer, self._acceptor.addresses())

    def introduced(self, connection: Connection, introduction: Introduction) -> None:
        """Raises Misfit where this is not the same process as before."""
        self._admission.check(connection, introduction)

    def admitted(self, connection: Connection, introduction: Introduction) -> None:
        self.introduced(connection, introduction)
        assert connection.peer is not None
        peer = self._roster.admit(connection.peer)
        if peer.incarnation not in (None, introduction.incarnation):
            peer.restarted()
            self._closing.repeat(peer)
        # The count that it has received may be of frames that an earlier process of this member sent.
        resend = peer.outgoing.resume(introduction.received if introduction.knows in (None, self.incarnation) else 0)
        if peer.connection is not None:
            # A connection that broke without our noticing; its successor takes over.
            del self._connected[peer.connection]
            peer.connection.close("the member has connected again", at_once=True)
        self._acceptor.left(connection)
        peer.incarnation = introduction.incarnation
        peer.connection = connection
        self._connected[connection] = peer
        peer.progress_at = clock.now()
        connection.open = connection.was_open = True
        for frame in resend:
            connection.write(*frame)
        if self.paused or peer.blocked is not None:
            connection.pause()
        self.report(Event("connected", (peer.member,)))
        self._liveness.heard(peer)
        self._gathering.somebody_came()

    def frame_arrived(self, connection: Connection, frame: Numbered) -> None:
        peer = self._connected.get(connection)
        if peer is None or peer.gone or not peer.incoming.is_new(frame.number):
            return
        if frame.epoch != EPOCH:
            raise FrameError(f"a frame of epoch {frame.epoch} came in epoch {EPOCH}")
        if frame.kind == PACKET:
            packet = self._codec.decode(peer.incoming.whole(frame.body))
            peer.unreadable = 0
            peer.incoming.take(len(frame.body))
            if self._recipients[0] is not peer:
                self._recipients.remove(peer)
                self._recipients.insert(0, peer)
            self._intake.offer(peer, packet, frame.lamport)
            return
        if frame.kind == PIECE:
            peer.incoming.keep_piece(frame.body, self.settings.packet_bytes_max)
        else:
            self._closing.hear(peer, frame)
        peer.unreadable = 0
        peer.incoming.take(len(frame.body), complete=frame.kind != PIECE)
        if frame.kind != PIECE:
            self._check_everybody_done()
            self._owner.peer_closing()

    def unreadable(self, connection: Connection, error: FrameError) -> None:
        peer = self._connected.get(connection)
        if peer is not None:
            peer.unreadable += 1
            if peer.unreadable == UNREADABLE_MAX:
                why = f"member {peer.member} sent an unreadable packet: {error}"
                self._owner.failed(PeerMisbehaved(peer.member, why))

    def is_alive(self, connection: Connection, *, unread: bool) -> None:
        peer = self._connected.get(connection)
        if peer is not None:
            peer.unread = unread

    def acknowledged(self, connection: Connection, received: int) -> None:
        peer = self._connected.get(connection)
        if peer is None:
            return
        before = peer.outgoing.bytes
        peer.outgoing.acknowledged(received)
        peer.progress_at = clock.now()
        peer.unread = False
        if before >= self.settings.link_bytes_max > peer.outgoing.bytes:
            self._owner.room_made()

    def burst_ended(self, connection: Connection) -> None:
        peer = self._connected.get(connection)
        if peer is None:
            return
        self._liveness.heard(peer)
        # A peer that is done waits only for this acknowledgement before it leaves.
        if peer.incoming.acknowledge_due() or (peer.done and peer.incoming.unacknowledged()):
            peer.incoming.note_acknowledged()
            connection.tell(peer.incoming.received)
        self._intake.retry()

    def lost(self, connection: Connection, reason: str) -> None:
        self._acceptor.left(connection)
        if not connection.was_open:
            self._came_to_nothing(connection, reason)
        elif (peer := self._connected.pop(connection, None)) is not None:
            self._disconnected(peer, connection, reason)
        if connection.peer is not None:
            self._roster.connection_ended(connection.peer)

    def _disconnected(self, peer: Peer, connection: Connection, reason: str) -> None:
        peer.connection = None
        if not self._stopping and not peer.done:
            peer.why_down = reason
            self.report(Event("disconnected", (peer.member,), why=reason))
            if self._liveness.started and self._roster.is_missed(peer):
                self._losses.connection_ended(peer, connection)

    def delivered_there(self, connection: Connection, through: tuple[int, ...]) -> None:
        peer = self._connected.get(connection)
        if peer is not None:
            peer.delivered = through

    def gave_up(self, connection: Connection, verdict: Verdict) -> None:
        self.failure_notices.heard(connection, verdict)

    def _came_to_nothing(self, connection: Connection, reason: str) -> None:
        """A connection ended before its peer was admitted. That has no consequences for a group that has started."""
        if self._stopping or (connection.deserted and connection.silent and not connection.initiator):
            # A connection that was closed without having sent anything, such as a port probe, was not refused.
            return
        self._acceptor.refused(connection, reason)
        if not self._liveness.started:
            self._gathering.turned_away(connection, reason)

    def _send(self, peer: Peer, kind: int, lamport: int, body: bytes) -> None:
        if peer.gone:
            return
        if not peer.outgoing.bytes:
            peer.progress_at = clock.now()
        frame = peer.outgoing.push(kind, EPOCH, lamport, body)
        if peer.connection is not None:
            peer.connection.write(*frame)

    def _may_go_on(self, peer: Peer) -> bool:
        onward = self._onward[peer.member]
        return not onward or all(map(self.has_room_to, onward))

    def retry_blocked(self) -> None:
        """Offer the protocol again the packets that it had no room for."""
        self._intake.retry()

    def _check_everybody_done(self) -> None:
        if self._closing.is_over():
            self._owner.everybody_done()
