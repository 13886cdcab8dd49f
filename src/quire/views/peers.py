"""The other processes of a group, and the links to them, which survive their connections.

A link is between two lives of processes: what was sent to a life that has ended is gone. Of two processes the one with the
greater name decides over which of several connections they talk: the newest. It says so by the first frame on it, RESUME, with
how much has arrived; the other then answers with its own. Nothing else is written before that has come.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence

import msgspec

from quire.views.effects import Disconnect, ProcessEffect, Write
from quire.views.introductions import Introduction
from quire.wire.frames import ADDRESSED, PIECE, FrameError, Numbered, acked, addresses, read_addresses, resume
from quire.wire.links import Incoming, Outgoing

PACKET_BYTES_MAX = 1 << 30
"""No packet is longer: what a member keeps for others is bounded, and a packet has some of that at most."""

REPEATED_BYTES_MAX = 1 << 22
"""A peer to which so much is under way is not told again what it will be told again anyway."""

_ENDED_MAX = 16
"""So many lives of a name are remembered that have ended."""

_DOUBTS_MAX = 2
"""A process that has ended may have left two connections: one that it has made, and one that was made to it."""

_CHANGED = "another connection replaced this one"


class _Packet(msgspec.Struct, frozen=True):
    pieces: Sequence[bytes]
    sender: int
    addressee: int
    lamport: int


class Peer:
    """`decides`: whether this side says over which connection they talk."""

    def __init__(self, name: str, now: float, *, decides: bool) -> None:
        self.name = name
        self.decides = decides
        self.life: int | None = None
        """None: this process has never met any that had the name."""
        self.incarnation = 0
        """The latest that is known of this life."""
        self._ended: deque[int] = deque(maxlen=_ENDED_MAX)
        """Lives of which a later one took the place."""
        self._doubts: Counter[int] = Counter()
        """How often each life was turned away because it seemed to be earlier."""
        self.address = ""
        self.connection: int | None = None
        """Over which they talk."""
        self.is_ready = False
        """Whether the peer has said over this connection how much it has."""
        self.others: set[int] = set()
        """Further connections with it."""
        self._passed_over: frozenset[int] = frozenset()
        """Those of them that were there when the peer last chose another."""
        self.heard_at = now
        """When something came from it, or when it was first heard of."""
        self.spoilt = 0
        """How often in a row it sent an unreadable packet."""
        self.outgoing, self.incoming = Outgoing(), Incoming()
        self._waiting: list[_Packet] = []
        """What was sent since there is something for an incarnation that this process has not met. Whether that is for the life
        that was here, or for one that comes, shows when it is there."""
        self._ahead: list[_Packet] = []
        """What is on its way to this life, but for an incarnation that it has not shown to be: a connection can seem to be
        there when another life has taken the place of this one."""

    # Connections.

    def is_older(self, theirs: Introduction) -> bool:
        """Whether a process that introduces itself under this name was started before one that was met already: its
        introduction may have been on its way for long. An earlier incarnation may also be a later process, if a disk has lost
        what it was; then it comes again and again, which one that has ended does not."""
        if theirs.life == self.life or self.life is None:
            return False
        if self.connection is not None or theirs.life in self._ended:
            return theirs.incarnation <= self.incarnation
        if theirs.incarnation >= self.incarnation:
            return False
        self._doubts[theirs.life] += 1
        return self._doubts[theirs.life] <= _DOUBTS_MAX

    def meet(self, theirs: Introduction) -> None:
        """It is there, perhaps as another life, for which nothing counts that was before."""
        if theirs.life != self.life:
            if self.life is not None:
                self._ended.append(self.life)
            self._doubts.clear()
            self.life, self.incarnation = theirs.life, theirs.incarnation
            self.outgoing, self.incoming = Outgoing(), Incoming()
            self.spoilt = 0
            self._waiting = [packet for packet in (*self._ahead, *self._waiting) if packet.addressee]
            self._ahead = []
        self._show(theirs.incarnation)
        self.address = theirs.address

    def _show(self, incarnation: int) -> None:
        """This life is, or was, of this incarnation."""
        if incarnation > self.incarnation:
            self.incarnation = incarnation
            self._ahead = [packet for packet in self._ahead if packet.addressee > incarnation]

    def add_connection(self, connection: int, out: list[ProcessEffect]) -> None:
        self.others.add(connection)
        if self.decides:
            self._use(connection, out)

    def resumed(self, connection: int, received: int, out: list[ProcessEffect]) -> None:
        """The peer says that it talks over this connection, and how much has arrived there."""
        if not self.decides and connection in self.others:
            self._use(connection, out)
        if connection != self.connection or self.is_ready:
            return
        out.extend(Write(connection, frame) for frame in self.outgoing.resume(received))
        self.is_ready = True
        waiting, self._waiting = self._waiting, []
        for packet in waiting:
            self.push(packet.pieces, packet.sender, packet.addressee, packet.lamport, out)

    def _use(self, connection: int, out: list[ProcessEffect]) -> None:
        others = self.all_connections() - {connection}
        # Of two connections that are made at the same time, the peer may have chosen the other one since. Were that ended here,
        # while the peer ends this one, they would have none. Those that it has passed over twice it does not know.
        ended = others if self.decides else others & self._passed_over
        self.connection, self.is_ready, self.others = connection, False, others - ended
        self._passed_over = frozenset(self.others)
        out.extend(Disconnect(other, _CHANGED) for other in sorted(ended))
        self.incoming.note_acknowledged()
        out.append(Write(connection, (resume(self.incoming.received),)))

    def drop_connection(self, connection: int) -> bool:
        """A connection has ended; whether it was the one over which they talked."""
        self.others.discard(connection)
        if connection != self.connection:
            return False
        self.connection, self.is_ready = None, False
        return True

    def all_connections(self) -> set[int]:
        return set(self.others) if self.connection is None else {*self.others, self.connection}

    # Packets.

    def push(self, pieces: Sequence[bytes], sender: int, addressee: int, lamport: int, out: list[ProcessEffect]) -> None:
        """Put a packet on the link: from this incarnation of ours, to one of the peer's, or to any (0)."""
        if 0 < addressee < self.incarnation or (self.life is None and not addressee):
            return
        if addressee > self.incarnation or (self._waiting and not self.is_ready):
            (self._ahead if self.is_ready else self._waiting).append(_Packet(pieces, sender, addressee, lamport))
            if not self.is_ready:
                return
        *begin, last = pieces
        for piece in begin:
            self._write(self.outgoing.push(PIECE, 0, lamport, piece), out)
        self._write(self.outgoing.push(ADDRESSED, 0, lamport, last, addresses(sender, addressee)), out)

    def _write(self, frame: tuple[bytes, bytes], out: list[ProcessEffect]) -> None:
        if self.is_ready:
            assert self.connection is not None
            out.append(Write(self.connection, frame))

    def has_room(self) -> bool:
        """Whether it makes sense to tell it what will be told again."""
        return self.is_ready and self.outgoing.bytes < REPEATED_BYTES_MAX

    def take(self, frame: Numbered) -> tuple[int, int, memoryview | bytes] | None:
        """The sender's incarnation, the addressee's, and a packet, if this frame is new and completes one. The frame counts as
        received only with `taken`."""
        incoming = self.incoming
        if frame.number != incoming.received and not incoming.is_new(frame.number):
            return None
        if frame.kind == PIECE:
            incoming.keep_piece(frame.body, PACKET_BYTES_MAX)
            incoming.take(len(frame.body), complete=False)
            return None
        if frame.kind != ADDRESSED:
            raise FrameError(f"a frame of kind {frame.kind} is not allowed here")
        sender, addressee, rest = read_addresses(frame.body)
        if not rest:
            # What was to follow was abandoned.
            incoming.take(0)
            return None
        return sender, addressee, incoming.whole(rest)

    def taken(self, frame: Numbered, sender: int) -> None:
        self.incoming.take(len(frame.body))
        if sender > self.incarnation:
            self._show(sender)
        self.spoilt = 0

    def acknowledge(self, out: list[ProcessEffect], *, at_once: bool) -> None:
        """Tell the peer what has arrived: if that is much or, `at_once`, if it is anything."""
        incoming = self.incoming
        if self.is_ready and (incoming.unacknowledged() if at_once else incoming.acknowledge_due()):
            incoming.note_acknowledged()
            assert self.connection is not None
            out.append(Write(self.connection, (acked(incoming.received),)))

    def abandon(self) -> None:
        """It is in no view any more: what is on its way to it is of no use there."""
        if not self.is_ready:
            self._waiting, self._ahead = [], []
            if self.outgoing.bytes:
                self.outgoing.abandon()
