"""The other processes of a group, and the links to them, which outlive single connections.

A *life* of a process is the time from its start to its end. A link is between two lives: what was sent to a life that has ended
is lost. Of two processes, the one with the greater name decides which of several connections they use: the newest. It says so
with the first frame on that connection, RESUME, which tells how many frames it has received, and how often it has chosen; the
other answers with a RESUME of its own. Nothing else is written before the other side's RESUME has come.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence

import msgspec

from quire.views.effects import Disconnect, ProcessEffect, Write
from quire.views.introductions import Introduction
from quire.wire.frames import PIECE, Addressed, FrameError, Numbered, acked, resume
from quire.wire.links import Incoming, Outgoing

PACKET_BYTES_MAX = 1 << 30
"""No packet is longer: what a member keeps for others is bounded, and a packet carries at most some of that."""

REPEATED_BYTES_MAX = 1 << 22
"""While so much is in flight to a peer, packets that are sent repeatedly anyway are not sent to it."""

_ENDED_MAX = 16
"""How many ended lives of a name are remembered."""

_DOUBTS_MAX = 2
"""How often a life that seems to be an earlier one is refused: a process that has ended may have left behind two connections,
one that it made and one that was made to it."""

_CHANGED = "another connection replaced this one"


Written = tuple[int, tuple[bytes, ...]]
"""A connection, and a frame for it."""


class _Packet(msgspec.Struct, frozen=True):
    pieces: Sequence[bytes]
    sender: int
    addressee: int
    lamport: int


class Peer:
    """One other process, by name. `decides`: whether this side chooses the connection that the two use."""

    def __init__(self, name: str, now: float, *, decides: bool) -> None:
        self.name = name
        self.decides = decides
        self.life: int | None = None
        """None: this process has never met a process of this name."""
        self.incarnation = 0
        """The latest incarnation that is known of this life."""
        self._ended: deque[int] = deque(maxlen=_ENDED_MAX)
        """Lives that were replaced by a later one."""
        self._doubts: Counter[int] = Counter()
        """How often each life was refused because it seemed to be an earlier one."""
        self.address = ""
        self.connection: int | None = None
        """The connection in use."""
        self.is_ready = False
        """Whether the peer's RESUME has come over this connection."""
        self._choice = 0
        """How often the side that decides has chosen a connection, as far as this side knows."""
        self.others: set[int] = set()
        """Further connections with the peer."""
        self._passed_over: frozenset[int] = frozenset()
        """The further connections that existed when the peer last chose another one."""
        self.heard_at = now
        """When something last came from it; until then, when it became known."""
        self.spoilt = 0
        """How often in a row it sent an unreadable packet."""
        self.outgoing, self.incoming = Outgoing(), Incoming()
        self._waiting: list[_Packet] = []
        """Packets that wait for a connection, from the first one that is for an incarnation not met yet. Only then will it show
        whether that incarnation belongs to the life known here or to a later one."""
        self._ahead: list[_Packet] = []
        """Packets that were sent to this life, but for an incarnation that it has not shown to be: a connection can seem to be
        alive when another life has already replaced this one. Then they are sent again to that life."""

    # Connections.

    def is_older(self, theirs: Introduction) -> bool:
        """Whether a process that introduces itself under this name seems to be older than one that was met already: its
        introduction may have been delayed. An earlier incarnation may also be a later process whose disk lost its number; such
        a process keeps coming back, which one that has ended does not, so a life is refused only a few times."""
        if theirs.life == self.life or self.life is None:
            return False
        if self.connection is not None or theirs.life in self._ended:
            return theirs.incarnation <= self.incarnation
        if theirs.incarnation >= self.incarnation:
            return False
        self._doubts[theirs.life] += 1
        return self._doubts[theirs.life] <= _DOUBTS_MAX

    def meet(self, theirs: Introduction) -> None:
        """The process has introduced itself. If this is a new life, the link to it starts afresh."""
        if theirs.life != self.life:
            if self.life is not None:
                self._ended.append(self.life)
            self._doubts.clear()
            self.life, self.incarnation = theirs.life, theirs.incarnation
            self.outgoing, self.incoming = Outgoing(), Incoming()
            self.spoilt = self._choice = 0
            self._waiting = [packet for packet in (*self._ahead, *self._waiting) if packet.addressee]
            self._ahead = []
        self._show(theirs.incarnation)
        self.address = theirs.address

    def _show(self, incarnation: int) -> None:
        """This life has been seen with this incarnation."""
        if incarnation > self.incarnation:
            self.incarnation = incarnation
            self._ahead = [packet for packet in self._ahead if packet.addressee > incarnation]

    def add_connection(self, connection: int, out: list[ProcessEffect]) -> None:
        self.others.add(connection)
        if self.decides:
            self._use(connection, out)

    def resumed(self, connection: int, received: int, choice: int, out: list[ProcessEffect]) -> None:
        """A RESUME came: the peer uses this connection, and has received so many frames. If it decides, this is its choice of
        that number, unless it has made a later one, and closes this connection."""
        if not self.decides and connection in self.others and choice >= self._choice:
            self._choice = choice
            self._use(connection, out)
        if connection != self.connection or self.is_ready:
            return
        frames: list[Written] = [(connection, frame) for frame in self.outgoing.resume(received)]
        self.is_ready = True
        waiting, self._waiting = self._waiting, []
        for packet in waiting:
            self.push(packet.pieces, packet.sender, packet.addressee, packet.lamport, frames)
        if frames:
            out.append(Write(frames))

    def _use(self, connection: int, out: list[ProcessEffect]) -> None:
        others = self.all_connections() - {connection}
        # Of two connections made at the same time, the peer may since have chosen the other one. If this side closed that one
        # while the peer closes this one, none would be left. Connections that the peer has passed over twice, it does not know.
        ended = others if self.decides else others & self._passed_over
        self.connection, self.is_ready, self.others = connection, False, others - ended
        self._passed_over = frozenset(self.others)
        out.extend(Disconnect(other, _CHANGED) for other in sorted(ended))
        self.incoming.note_acknowledged()
        self._choice += self.decides
        out.append(Write(((connection, (resume(self.incoming.received, self._choice),)),)))

    def drop_connection(self, connection: int) -> bool:
        """A connection has ended; returns whether it was the one in use."""
        self.others.discard(connection)
        if connection != self.connection:
            return False
        self.connection, self.is_ready = None, False
        return True

    def all_connections(self) -> set[int]:
        return set(self.others) if self.connection is None else {*self.others, self.connection}

    # Packets.

    def push(self, pieces: Sequence[bytes], sender: int, addressee: int, lamport: int, frames: list[Written]) -> None:
        """Put a packet on the link, from this process's incarnation `sender` to the peer's incarnation `addressee` (0: any).
        What can be written now is added to `frames`."""
        if 0 < addressee < self.incarnation or (self.life is None and not addressee):
            return
        if addressee > self.incarnation or (self._waiting and not self.is_ready):
            (self._ahead if self.is_ready else self._waiting).append(_Packet(pieces, sender, addressee, lamport))
            if not self.is_ready:
                return
        for piece in pieces[:-1]:
            self._write(self.outgoing.push(PIECE, 0, lamport, piece), frames)
        self._write(self.outgoing.push_addressed(lamport, sender, addressee, pieces[-1]), frames)

    def _write(self, frame: tuple[bytes, bytes], frames: list[Written]) -> None:
        if self.is_ready:
            assert self.connection is not None
            frames.append((self.connection, frame))

    def has_room(self) -> bool:
        """Whether to send it packets that are sent repeatedly anyway."""
        return self.is_ready and self.outgoing.bytes < REPEATED_BYTES_MAX

    def take(self, frame: Addressed) -> memoryview | bytes | None:
        """The packet that this frame completes, if the frame is new. Such a frame counts as received only after `taken`."""
        incoming = self.incoming
        if frame.number != incoming.received and not incoming.is_new(frame.number):
            return None
        if not frame.body:
            # The sender abandoned the rest of the packet.
            incoming.take(0)
            return None
        return incoming.whole(frame.body) if incoming.pieces else frame.body

    def taken(self, frame: Addressed) -> None:
        self.incoming.take(len(frame.body))
        if frame.sender > self.incarnation:
            self._show(frame.sender)
        self.spoilt = 0

    def take_piece(self, frame: Numbered) -> None:
        """Take a piece of a packet that goes on in the next frame."""
        if self.incoming.is_new(frame.number):
            if frame.kind != PIECE:
                raise FrameError(f"a frame of kind {frame.kind} is not allowed here")
            self.incoming.keep_piece(frame.body, PACKET_BYTES_MAX)
            self.incoming.take(len(frame.body), complete=False)

    def acknowledge(self, out: list[ProcessEffect]) -> None:
        """Acknowledge received frames, if there are any."""
        incoming = self.incoming
        if self.is_ready and incoming.unacknowledged():
            incoming.note_acknowledged()
            assert self.connection is not None
            out.append(Write(((self.connection, (acked(incoming.received),)),)))

    def abandon(self) -> None:
        """The peer is not in the view: unless it is connected, drop what is queued for it, which it could not use."""
        if not self.is_ready:
            self._waiting, self._ahead = [], []
            if self.outgoing.bytes:
                self.outgoing.abandon()
