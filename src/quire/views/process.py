"""A whole process of a changing group, as a state machine: a member, the links to the others, and the failure detector.

Inputs are connections made and lost, frames, time, and requests of the application; each returns effects, in order. `now` is in
seconds, from an arbitrary origin. There is no clock, socket, file or randomness in here: the simulator and the live groups
drive it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from quire.model.errors import QuireError
from quire.model.payloads import Messages
from quire.views.codec import GroupCodec
from quire.views.dialling import Dialling
from quire.views.directory import Directory
from quire.views.effects import Connect, Disconnect, Effect, Install, PacketSent, ProcessEffect, Report, Send, Write
from quire.views.introductions import Introduction, objection
from quire.views.liveness import Liveness
from quire.views.member import Member
from quire.views.pace import Pace
from quire.views.packets import ORDERED, REPEATED
from quire.views.peers import Peer, Written
from quire.views.stalls import StallReports
from quire.views.timing import Timing
from quire.views.view import View
from quire.wire.frames import ACKED, RESUME, Addressed, Frame, FrameError, Numbered, read_count, read_resume
from quire.wire.links import cut

_WAIT_S = 0.1
"""How long, at the start, the process with the smaller name leaves it to the other to connect."""

_SPOILT_MAX = 3
"""How many unreadable packets in a row make a peer suspected. Fewer may have been corrupted by the network."""


class Process:
    """A process of a group. `introduction`: what it says of itself, with the addresses that it was configured with.
    `contacts`: further addresses where a process of the group may be."""

    def __init__(
        self, member: Member, introduction: Introduction, timing: Timing | None = None, contacts: Sequence[str] = ()
    ) -> None:
        self.member = member
        self.timing = timing or Timing()
        self.lamport = 0
        """The Lamport clock: every packet carries it, and it is never behind that of a packet that has come."""
        self.on_effect: Callable[[Effect], None] | None = None
        """For traces: is called with each effect of the member before it is carried out, and may advance the Lamport clock."""
        self.on_packet: Callable[[PacketSent], None] | None = None
        """For traces: is called with each packet sent."""
        self.hasty = False
        """Whether a ballot that a quorum backs goes on without waiting for further promises."""
        self._directory = Directory(introduction, contacts)
        self.peers, self._on = self._directory.peers, self._directory.on
        self._codec = GroupCodec(member.core.settings.protocol)
        self._dialling, self._liveness = Dialling(), Liveness(self.timing)
        self._pace, self.stalls = Pace(member, self.timing), StallReports(self.timing)
        self.has_quorum = True
        """Whether the members that are not suspected are a quorum. Otherwise there is no progress until more are back."""
        self._linked = member.core.linked = set()
        self._paused, self._now = False, 0.0

    @property
    def due(self) -> float:
        """When `time` has to be called next."""
        return min(self._pace.at, self._liveness.at, self._dialling.at)

    def introduction(self) -> Introduction:
        """The first thing to send on a new connection."""
        return self._directory.introduction(self.member.core.me.incarnation)

    def is_connected(self, name: str) -> bool:
        return name in self.peers and self.peers[name].is_ready

    def is_needed(self) -> bool:
        """Whether others may still need to learn from this process, which is no member any more, how its last view ended."""
        return self.member.is_awaited()

    # The application, and the disk.

    def start(self, now: float) -> list[ProcessEffect]:
        out = self._begin(now)
        addresses, core = self._directory.addresses, self.member.core
        for name in sorted(addresses.keys() | core.names - {core.me.name}):
            if not self._peer(name).decides and name in addresses:
                self._dialling.wait(addresses[name], now + _WAIT_S)
        self._perform(self.member.start(), out)
        self._tick(out)
        self._dial(out)
        return out

    def submit(self, now: float, messages: Messages) -> list[ProcessEffect]:
        return self._done(now, self.member.submit(messages))

    def read(self, now: float, token: int) -> list[ProcessEffect]:
        return self._done(now, self.member.read(token))

    def leave(self, now: float) -> list[ProcessEffect]:
        return self._done(now, self.member.leave() + self.member.tick())

    def move(self, now: float, cluster: str) -> list[ProcessEffect]:
        return self._done(now, self.member.move(cluster) + self.member.tick())

    def close(self, now: float) -> list[ProcessEffect]:
        return self._done(now, self.member.close() + self.member.tick())

    def synced(self, now: float, number: int) -> list[ProcessEffect]:
        return self._done(now, self.member.synced(number))

    def checkpointed(self, now: float, state: bytes | bytearray) -> list[ProcessEffect]:
        return self._done(now, self.member.checkpointed(state))

    def paused(self, now: float, *, paused: bool) -> list[ProcessEffect]:
        """`paused`: whether nothing is read at present, so that silence of others means nothing."""
        out = self._begin(now)
        self._paused = paused
        self._liveness.forgive(self.peers.values(), self.timing.timeout_s, now)
        return out

    def suspect(self, now: float, name: str, why: str) -> list[ProcessEffect]:
        """Another source reports, rightly or wrongly, that a process is gone."""
        out = self._begin(now)
        self._liveness.blame(name, "reported", why)
        self._tell_suspicions(out)
        return out

    def trust(self, now: float, name: str) -> list[ProcessEffect]:
        """Other sources no longer report that a process is gone."""
        out = self._begin(now)
        self._liveness.absolve(name, "reported")
        self._tell_suspicions(out)
        return out

    def start_ballot(self, now: float) -> list[ProcessEffect]:
        """Begin a view change now, whether or not there is a cause."""
        return self._done(now, self.member.start_ballot(hasty=self.hasty))

    # Connections.

    def connected(self, now: float, connection: int, theirs: Introduction, *, dialled: str | None) -> list[ProcessEffect]:
        """A connection is made, and the other end has introduced itself. `dialled`: the address, if this side connected."""
        out = self._begin(now)
        if self._directory.is_myself(theirs):
            self._directory.strike_out(dialled)
            out.append(Disconnect(connection, "this is the process itself"))
            return out
        why = objection(self.introduction(), theirs) or self._outdated(theirs)
        if why:
            if dialled is not None:
                self._dialling.failed(dialled, now, hopeless=True)
            out += (Report("refused", theirs.name, why), Disconnect(connection, why))
            return out
        if dialled is not None:
            self._dialling.reached(dialled, now)
        self._meet(theirs, out)
        peer = self._on[connection] = self._peer(theirs.name)
        peer.add_connection(connection, out)
        self._directory.forget_closed(peer)
        if self._liveness.heard(peer, now):
            self._tell_suspicions(out)
        self._dial(out)
        return out

    def _outdated(self, theirs: Introduction) -> str:
        peer = self.peers.get(theirs.name)
        if peer is not None and peer.is_older(theirs):
            return f"a newer process is already running as {theirs.name!r}"
        if peer is not None and peer.life == theirs.life and peer.spoilt >= _SPOILT_MAX:
            return f"{theirs.name!r} sent an unreadable packet"
        return ""

    def _meet(self, theirs: Introduction, out: list[ProcessEffect]) -> None:
        """Take over what a process says of itself and of the addresses of others."""
        peer = self._peer(theirs.name)
        if peer.life not in (None, theirs.life):
            out.append(Report("replaced", peer.name, "it was restarted"))
            self._linked.discard(peer.name)
            for connection in sorted(peer.all_connections()):
                out.append(Disconnect(connection, "a newer process replaced it"))
                peer.drop_connection(connection)
            self._directory.forget_closed(peer)
            self._liveness.absolve(peer.name, "spoilt")
        peer.meet(theirs)
        self._directory.learn(theirs, self._now)

    def disconnected(self, now: float, connection: int) -> list[ProcessEffect]:
        out = self._begin(now)
        peer = self._on.get(connection)
        if peer is not None:
            self._lose(peer, connection, "its connection ended", out)
        return out

    def not_connected(self, now: float, address: str, *, refused: bool) -> list[ProcessEffect]:
        """An attempt to connect has failed. `refused`: nobody listens at the address."""
        out = self._begin(now)
        self._dialling.failed(address, now)
        if refused:
            for peer in self.peers.values():
                if peer.address == address and peer.connection is None:
                    self._liveness.blame(peer.name, "gone", "its connection ended, and its address refuses new ones")
            self._tell_suspicions(out)
        self._dial(out)
        return out

    def _lose(self, peer: Peer, connection: int, why: str, out: list[ProcessEffect]) -> None:
        if peer.drop_connection(connection) and not peer.others:
            self._linked.discard(peer.name)
            out.append(Report("disconnected", peer.name, why))
            self._dialling.lost(peer.address, self._now)
        self._directory.forget_closed(peer)
        self._dial(out)

    def _dial(self, out: list[ProcessEffect]) -> None:
        out.extend(Connect(at) for at in self._dialling.due(self._now, *self._directory.missing(self.member.core)))

    # Frames.

    def received(self, now: float, connection: int, frames: Iterable[Frame]) -> list[ProcessEffect]:
        """Frames have come together. The body of each may be reused once the next one is asked for. Answers wait until
        `end_turn`, so that they cover what others send at the same time."""
        out = self._begin(now)
        for frame in frames:
            peer = self._on.get(connection)
            if peer is None:
                break
            try:
                if isinstance(frame, Numbered):
                    if connection == peer.connection and peer.is_ready:
                        self._take(peer, frame, out)
                else:
                    self._take_control(peer, connection, frame, out)
            except QuireError as error:
                self._take_offence(peer, connection, error, out)
        peer = self._on.get(connection)
        if peer is not None:
            if peer.incoming.acknowledge_due():
                peer.acknowledge(out)
            if self._liveness.heard(peer, now):
                self._tell_suspicions(out)
        return out

    def end_turn(self, now: float, *, may_wait: bool = False) -> list[ProcessEffect]:
        """Everything that came at the same time was received. `may_wait`: while the member `waits`, this is called again."""
        return self._done(now, self.member.end_turn(may_wait=may_wait))

    def _take(self, peer: Peer, frame: Numbered, out: list[ProcessEffect]) -> None:
        if not isinstance(frame, Addressed):
            peer.take_piece(frame)
            return
        body = peer.take(frame)
        if body is None:
            return
        packet = self._codec.packet(body)
        if frame.lamport > self.lamport:
            self.lamport = frame.lamport
        is_mine = not frame.addressee or frame.addressee == self.member.core.me.incarnation
        effects = self.member.receive(peer.name, frame.sender, packet, hasty=self.hasty, more=True) if is_mine else ()
        peer.taken(frame)
        if effects:
            self._perform(effects, out)
        if is_mine and not isinstance(packet, ORDERED):
            self._pace.hurry(self._now)

    def _take_control(self, peer: Peer, connection: int, frame: Frame, out: list[ProcessEffect]) -> None:
        if frame.kind == RESUME:
            peer.resumed(connection, *read_resume(frame), out)
            self._directory.forget_closed(peer)
            if connection == peer.connection:
                self._talk(peer, out)
        elif frame.kind == ACKED and connection == peer.connection:
            peer.outgoing.acknowledged(read_count(frame))
        elif frame.kind != ACKED:
            raise FrameError(f"a frame of kind {frame.kind} is not allowed here")

    def _talk(self, peer: Peer, out: list[ProcessEffect]) -> None:
        """A connection with a peer is ready: packets go over it from now on."""
        self._linked.add(peer.name)
        out.append(Report("connected", peer.name))
        self._dialling.reached(peer.address, self._now)
        self._liveness.heard(peer, self._now)
        self._tell_suspicions(out)
        self._perform(self.member.greet(peer.name, peer.incarnation), out)
        self._pace.hurry(self._now)

    def _take_offence(self, peer: Peer, connection: int, error: QuireError, out: list[ProcessEffect]) -> None:
        """A peer sent what no correct peer sends. The network may have corrupted it, so the connection is dropped, and the peer
        may send it again over another one; it is suspected only if that happens too often."""
        why = f"{peer.name!r} sent an unreadable packet: {error}"
        peer.spoilt += 1
        out.append(Disconnect(connection, why))
        self._lose(peer, connection, why, out)
        if peer.spoilt >= _SPOILT_MAX:
            self._liveness.blame(peer.name, "spoilt", why)
            self._tell_suspicions(out)

    # Time.

    def time(self, now: float) -> list[ProcessEffect]:
        """Time has passed. If this call is late because this process did not run, that does not count as silence of others."""
        late_s = now - self.due
        out = self._begin(now)
        self._liveness.forgive(self.peers.values(), self.timing.timeout_s if self._paused else late_s, now)
        founding = self.member.core.view.epoch == 1
        for peer in self._liveness.watch(self.peers.values(), now, founding=founding):
            # The other end may have vanished without closing, or the network may have dropped the connection.
            for connection in sorted(peer.all_connections()):
                out.append(Disconnect(connection, "nothing was received for too long"))
                self._lose(peer, connection, "nothing was received for too long", out)
        if now >= self._pace.at:
            self._tick(out)
        self._tell_suspicions(out)
        self._dial(out)
        return out

    def _tick(self, out: list[ProcessEffect]) -> None:
        if not self._paused:
            self._liveness.watch_progress(self.member, self._now)
        self._perform(self.member.tick(), out)
        for peer in self.peers.values():
            peer.acknowledge(out)
        self._pace.ticked(self._now)
        if self.stalls.is_due(self._now):
            out.extend(self.stalls.look(self._now, self.member.membership.waiting_runs(), self.peers.values()))

    def _tell_suspicions(self, out: list[ProcessEffect]) -> None:
        changed = False
        for name, why in self._liveness.changes():
            changed = True
            if why is None:
                self._perform(self.member.trust(name), out)
                out.append(Report("trusted", name))
            else:
                self._perform(self.member.suspect(name), out)
                out.append(Report("suspected", name, why))
        if changed:
            self._tick(out)
            self._look_for_quorum(out)

    def _look_for_quorum(self, out: list[ProcessEffect]) -> None:
        why = self.member.core.why_no_quorum()
        if self.has_quorum != (not why):
            self.has_quorum = not why
            out.append(Report("no-quorum" if why else "quorum", self.member.core.me.name, why))

    # What the member asks for.

    def _begin(self, now: float) -> list[ProcessEffect]:
        self._now = now
        return []

    def _done(self, now: float, effects: list[Effect]) -> list[ProcessEffect]:
        out: list[ProcessEffect] = []
        self._now = now
        self._perform(effects, out)
        return out

    def _perform(self, effects: Sequence[Effect], out: list[ProcessEffect]) -> None:
        on_effect = self.on_effect
        for effect in effects:
            if on_effect is not None:
                on_effect(effect)
            if isinstance(effect, Send):
                self.send(effect, out)
            else:
                out.append(effect)
                if isinstance(effect, Install):
                    self._enter(effect.view)
                    self._look_for_quorum(out)

    def send(self, effect: Send, out: list[ProcessEffect]) -> None:
        """Put a packet on the links. It is encoded once, however many peers it goes to."""
        packet, mine, repeated = effect.packet, self.member.core.me.incarnation, type(effect.packet) in REPEATED
        pieces = cut(self._codec.encode(packet))
        self.lamport += 1
        if self.on_packet is not None:
            self.on_packet(PacketSent(packet, len(effect.to), sum(map(len, pieces)), self.lamport))
        frames: list[Written] = []
        for name, addressee in effect.addressees():
            peer = self.peers.get(name) or self._peer(name)
            if not repeated or peer.has_room():
                peer.push(pieces, mine, addressee, self.lamport, frames)
        if frames:
            out.append(Write(frames))

    def _enter(self, view: View) -> None:
        """A view begins: its members get time to connect before they count as silent, and nothing is kept for processes that
        are not in it."""
        for name in view.names():
            if name != self.member.core.me.name:
                peer = self._peer(name)
                if not peer.is_ready:
                    peer.heard_at = self._now
        for name, peer in self.peers.items():
            if view.rank(name) is None:
                peer.abandon()

    def _peer(self, name: str) -> Peer:
        return self._directory.peer(name, self._now)
