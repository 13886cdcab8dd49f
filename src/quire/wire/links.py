"""Reliable FIFO links: frames from one member to another arrive once and in order, however often the connection breaks.

Both directions number their frames. A sender keeps each frame until the receiver has acknowledged it; when a new connection is
made, each side first says how many frames it has received, and the other retransmits the rest. A receiver drops duplicates and
refuses gaps. The state is kept by the members, not by the connection, so it outlives the connection and ends with the process:
a restarted process has another incarnation and is refused.

A packet that is too long for one frame is sent in pieces, each in a frame of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from quire.wire.frames import FRAME_BYTES_MAX, FrameError, addressed_head, numbered_head, renumbered

ACK_EVERY_FRAMES = 64
ACK_EVERY_BYTES = 1 << 18
"""How much may arrive before it is acknowledged, so that the sender can drop it."""

LONG_BYTES = ACK_EVERY_BYTES
"""A payload of so many bytes is acknowledged as soon as it arrives: until then, there is no use in sending it again."""

PIECE_BYTES = FRAME_BYTES_MAX // 2
"""Longer packets are sent in pieces of this size."""

FRAME_COST_BYTES = 128
"""The memory that a kept frame takes besides its body, so that many small frames are not free."""


def cut(body: bytes) -> Sequence[bytes]:
    """A packet as the pieces that go into consecutive frames."""
    if len(body) <= PIECE_BYTES:
        return (body,)
    return [body[start : start + PIECE_BYTES] for start in range(0, len(body), PIECE_BYTES)]


class Outgoing:
    """The sending side of a link: frames to one peer that are not acknowledged yet."""

    def __init__(self) -> None:
        self._unacknowledged: deque[tuple[bytes, bytes]] = deque()
        self._first = 0
        self._next = 0
        self.bytes = 0
        self._abandoned = False
        self._long: dict[int, tuple[object, int]] = {}
        """Long payloads by their identity, each with the number of the frame that ends it."""

    @property
    def sent(self) -> int:
        """How many frames were ever sent."""
        return self._next

    @property
    def arrived(self) -> int:
        """How many of them are acknowledged."""
        return self._first

    def push(self, kind: int, epoch: int, lamport: int, body: bytes) -> tuple[bytes, bytes]:
        """Number a frame and keep it; returns what to write, if there is a connection: the head, and the body, which can be
        shared by several links."""
        return self._keep(numbered_head(kind, self._next, epoch, lamport, len(body)), body)

    def push_addressed(self, lamport: int, sender: int, addressee: int, body: bytes) -> tuple[bytes, bytes]:
        """The same for a frame with the incarnations of its sender and its addressee."""
        return self._keep(addressed_head(self._next, lamport, sender, addressee, len(body)), body)

    def _keep(self, head: bytes, body: bytes) -> tuple[bytes, bytes]:
        frame = head, body
        self._next += 1
        self._unacknowledged.append(frame)
        self.bytes += len(body) + FRAME_COST_BYTES
        return frame

    def acknowledged(self, received: int) -> None:
        """The peer has the first `received` frames."""
        if not self._first <= received <= self._next:
            raise FrameError(f"it acknowledged {received} frames, but {self._first} to {self._next} is possible")
        for _ in range(received - self._first):
            self.bytes -= len(self._unacknowledged.popleft()[1]) + FRAME_COST_BYTES
        self._first = received
        if self._long:
            self._long = {key: value for key, value in self._long.items() if value[1] >= received}

    def note_payload(self, payload: bytes) -> None:
        """The frame that was pushed last ends a packet with this payload."""
        if len(payload) >= LONG_BYTES:
            self._long[id(payload)] = (payload, self._next - 1)

    def is_on_its_way(self, payload: bytes) -> bool:
        """Whether this very payload, if it is a long one, is still unacknowledged."""
        return id(payload) in self._long

    def resume(self, received: int) -> Iterable[tuple[bytes, bytes]]:
        """The frames to retransmit on a new connection to a peer that has received the first `received` ones."""
        if self._abandoned:
            self._renumber(received)
        self.acknowledged(received)
        return tuple(self._unacknowledged)

    def abandon(self) -> None:
        """Drop all kept frames, which nobody needs any more. There must be no connection: on the next one, numbering goes on
        from what the peer then says it has received. An empty frame ends a packet of which the peer may have pieces."""
        self._unacknowledged.clear()
        self.bytes = 0
        self._long.clear()
        self._abandoned = True
        self.push_addressed(0, 0, 0, b"")

    def _renumber(self, received: int) -> None:
        """After frames were abandoned, number the rest from where the peer is."""
        if not self._first <= received <= self._next:
            raise FrameError(f"it has {received} frames, but {self._first} to {self._next} is possible")
        self._unacknowledged = deque(
            (renumbered(head, received + index), body) for index, (head, body) in enumerate(self._unacknowledged)
        )
        self._first, self._next = received, received + len(self._unacknowledged)
        self._abandoned = False


class Incoming:
    """The receiving side of a link: which frames of one peer are new, and when to acknowledge them."""

    def __init__(self) -> None:
        self.received = 0
        self._acknowledged = 0
        self._bytes = 0
        self.pieces: list[bytes] = []
        """The beginning of a packet that goes on."""

    def is_new(self, number: int) -> bool:
        """Whether this frame is new; raises FrameError where frames before it are missing."""
        if number > self.received:
            raise FrameError(f"frames {self.received} to {number - 1} are missing")
        return number == self.received

    def keep_piece(self, piece: memoryview, most: int) -> None:
        """Keep a piece until the rest of its packet has come; raises FrameError where the packet gets longer than `most`."""
        length = sum(map(len, self.pieces)) + len(piece)
        if length > most:
            raise FrameError(f"a packet of at least {length} bytes exceeds the limit of {most}")
        self.pieces.append(bytes(piece))

    def whole(self, last: memoryview) -> memoryview | bytes:
        """The packet that this piece completes."""
        return b"".join((*self.pieces, last)) if self.pieces else last

    def take(self, size: int, *, complete: bool = True) -> None:
        """Count the next frame as received. Until then the peer keeps it, and retransmits it if need be. `complete`: it was not
        a piece of a packet that goes on."""
        self.received += 1
        self._bytes += size
        if complete and self.pieces:
            self.pieces = []

    def acknowledge_due(self) -> bool:
        """Whether so much has arrived since the last acknowledgement that another one is due."""
        return self.received - self._acknowledged >= ACK_EVERY_FRAMES or self._bytes >= ACK_EVERY_BYTES

    def unacknowledged(self) -> bool:
        return self.received != self._acknowledged

    def note_acknowledged(self) -> None:
        self._acknowledged = self.received
        self._bytes = 0
