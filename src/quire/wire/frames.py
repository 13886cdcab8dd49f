"""The frame format: encodes packets and control messages as bytes, and parses untrusted bytes from a peer.

A frame is `length u32 | kind u8 | fields`, all numbers big-endian. Numbered frames are those that a link must not lose: they
carry their number on the link, the sender's epoch and its logical time; then, for a packet, the packet itself in msgpack, in
which the payload of a run is one binary field. Every length and count is checked against a limit before anything is allocated
for it, and whatever does not fit raises FrameError.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

import msgspec

from quire.model.errors import QuireError
from quire.model.messages import NUMBER_MAX
from quire.model.packets import Packet

EPOCH = 0
"""The epoch of a fixed group, which has only one; where members change, views are numbered by epochs."""

FRAME_BYTES_MAX = 8 << 20
"""The largest length that a peer may announce for one frame, without the length field itself."""

LAMPORT_MAX = NUMBER_MAX // 2
"""Logical times are adopted from peers, and the local clock must be able to advance from there."""

PACKET, CLOSING, DONE, DRAINED, PIECE, ADDRESSED = 1, 2, 3, 4, 5, 6
"""Numbered kinds: a protocol's packet, or the last piece of it; "I send nothing more"; "I have delivered everything"; "nothing
more comes to you through me"; a piece of a packet that goes on in the next frame; a packet, or the last piece of it, with the
incarnations of its sender and its addressee."""
ACKED, ALIVE, INTRODUCTION, REFUSED, WELCOME, UNREAD, GAVE_UP, DELIVERED, RESUME = 16, 17, 18, 19, 20, 21, 22, 23, 24
"""Kinds outside the numbering: an acknowledgement; a heartbeat; the sender's introduction; a refusal with its reason; the
introduction is accepted; the heartbeat of a member that has stopped reading because its application does not; why the sender
gives up on the group; how far the sender has delivered; how many frames arrived over earlier connections, after which this
connection is used."""

_HEAD = struct.Struct("!IB")
_NUMBERED = struct.Struct("!IBQIQ")
_COUNT = struct.Struct("!IBQ")
_RESUME = struct.Struct("!IBQQ")
_TWO_COUNTS = struct.Struct("!QQ")
_LENGTH = struct.Struct("!I")
_NUMBERED_FIELDS = struct.Struct("!QIQ")
_U64 = struct.Struct("!Q")
_ADDRESSED = struct.Struct("!IBQIQQQ")
_ADDRESSED_FIELDS = struct.Struct("!QIQQQ")
_LENGTH_BYTES = _LENGTH.size
_FIELDS_END = 1 + _NUMBERED_FIELDS.size
_ADDRESSED_END = 1 + _ADDRESSED_FIELDS.size

NUMBERED_KINDS = frozenset({PACKET, CLOSING, DONE, DRAINED, PIECE, ADDRESSED})


class FrameError(QuireError):
    """A peer sent bytes that are no valid frame; its connection must be closed."""


class SealBroken(FrameError):
    """A frame was changed between the peers, so neither of them is to blame."""


class Numbered(msgspec.Struct, frozen=True, gc=False):
    """A frame that a link must not lose."""

    kind: int
    number: int
    epoch: int
    lamport: int
    body: memoryview


class ControlFrame(msgspec.Struct, frozen=True, gc=False):
    """A frame outside the numbering."""

    kind: int
    body: memoryview


class Addressed(Numbered, frozen=True, gc=False):
    """An ADDRESSED frame: its body is what comes after the incarnations."""

    sender: int
    addressee: int
    """0: any."""


Frame = Numbered | ControlFrame


def numbered_head(kind: int, number: int, epoch: int, lamport: int, body_bytes: int) -> bytes:
    """The head of a numbered frame. It is separate from the body, so that the body can be shared by all links."""
    return _NUMBERED.pack(_NUMBERED.size - _LENGTH.size + body_bytes, kind, number, epoch, lamport)


def control_frame(kind: int, body: bytes = b"") -> bytes:
    return _HEAD.pack(1 + len(body), kind) + body


def renumbered(head: bytes, number: int) -> bytes:
    """The head of a numbered frame, with another number."""
    return head[: _HEAD.size] + _U64.pack(number) + head[_HEAD.size + _U64.size :]


def addressed_head(number: int, lamport: int, sender: int, addressee: int, rest_bytes: int) -> bytes:
    """Everything before the packet in an ADDRESSED frame: the head, and the incarnations of the sender and of the addressee (0:
    any)."""
    length = _ADDRESSED.size - _LENGTH_BYTES + rest_bytes
    return _ADDRESSED.pack(length, ADDRESSED, number, EPOCH, lamport, sender, addressee)


def acked(received: int) -> bytes:
    """`received`: how many numbered frames of the peer have arrived."""
    return _COUNT.pack(_COUNT.size - _LENGTH.size, ACKED, received)


def resume(received: int, choice: int) -> bytes:
    """The first frame on a new connection: how many numbered frames of the peer have arrived over earlier ones, and how many
    connections the side that decides has chosen so far. Such frames can overtake each other: the latest choice counts."""
    return _RESUME.pack(_RESUME.size - _LENGTH.size, RESUME, received, choice)


def read_resume(frame: Frame) -> tuple[int, int]:
    """How many frames have arrived, and the number of the choice."""
    if len(frame.body) != _TWO_COUNTS.size:
        raise FrameError(f"a RESUME frame has {_TWO_COUNTS.size} bytes, not {len(frame.body)}")
    received, choice = _TWO_COUNTS.unpack(frame.body)
    return received, choice


def count_body(count: int) -> bytes:
    """The body of a frame that holds one number."""
    return _U64.pack(count)


def read_count(frame: Frame) -> int:
    """The number in such a frame."""
    if len(frame.body) != _U64.size:
        raise FrameError(f"a count has {_U64.size} bytes, not {len(frame.body)}")
    return int(_U64.unpack(frame.body)[0])


def counts_body(counts: Sequence[int]) -> bytes:
    """The body of a control frame that holds a number for each member."""
    return struct.pack(f"!{len(counts)}Q", *counts)


def read_counts(body: memoryview, members: int) -> tuple[int, ...]:
    """The numbers in such a frame."""
    if len(body) != members * _U64.size:
        raise FrameError(f"a count for each of {members} members has {members * _U64.size} bytes, not {len(body)}")
    return struct.unpack(f"!{members}Q", body)


class Reader:
    """Cuts a stream of bytes into frames. The bytes are kept in one buffer that grows only to the largest frame."""

    def __init__(self, frame_bytes_max: int = FRAME_BYTES_MAX, start_bytes: int = 1 << 12) -> None:
        self._limit = frame_bytes_max
        self._buffer = bytearray(start_bytes)
        self._view = memoryview(self._buffer)
        self._start = 0
        self._end = 0

    def space(self) -> memoryview:
        """Where the next bytes of the stream go; call `filled` with how many came."""
        if self._start == self._end:
            self._start = self._end = 0
        elif self._end == len(self._buffer):
            self._make_room()
        return self._view[self._end :]

    def filled(self, count: int) -> None:
        self._end += count

    def feed(self, data: bytes) -> None:
        """Append bytes that were read elsewhere."""
        while data:
            space = self.space()
            count = min(len(space), len(data))
            space[:count] = data[:count]
            self.filled(count)
            data = data[count:]

    def take(self, count: int) -> bytes | None:
        """Exactly so many raw bytes, once they are here: for what precedes the frames."""
        if self._end - self._start < count:
            return None
        self._start += count
        return bytes(self._view[self._start - count : self._start])

    def frames(self, opened: Callable[[memoryview], memoryview] | None = None) -> Iterator[Frame]:
        """Every whole frame that is here; `opened` checks and removes a seal. A body is valid only until the next frame
        is asked for."""
        while (have := self._end - self._start) >= _LENGTH_BYTES:
            (length,) = _LENGTH.unpack_from(self._buffer, self._start)
            if not 1 <= length <= self._limit:
                raise FrameError(f"a frame of {length} bytes is outside 1 to {self._limit}")
            if have < _LENGTH_BYTES + length:
                return
            start = self._start + _LENGTH_BYTES
            self._start = start + length
            frame = self._view[start : self._start]
            yield _parse(opened(frame) if opened else frame)

    def enlarge(self, frame_bytes_max: int, size: int) -> None:
        """Take larger frames from now on, and read in larger pieces."""
        self._limit = frame_bytes_max
        self._move(max(size, len(self._buffer)))

    def _make_room(self) -> None:
        """Move what is unread to the front; where it takes more than half of the buffer, double that."""
        unread, size = self._end - self._start, len(self._buffer)
        if unread > size // 2:
            # Less than one frame and its length is unread, so doubling ends at the limit.
            self._move(max(size, min(size * 2, self._limit + _LENGTH.size)))
        else:
            self._view[:unread] = self._view[self._start : self._end]
            self._start, self._end = 0, unread

    def _move(self, size: int) -> None:
        unread = self._end - self._start
        fresh = bytearray(size)
        fresh[:unread] = self._view[self._start : self._end]
        self._buffer, self._view = fresh, memoryview(fresh)
        self._start, self._end = 0, unread


def _parse(frame: memoryview) -> Frame:
    if not frame:
        raise FrameError("a frame is empty")
    kind = frame[0]
    if kind not in NUMBERED_KINDS:
        return ControlFrame(kind, frame[1:])
    if len(frame) < (_ADDRESSED_END if kind == ADDRESSED else _FIELDS_END):
        raise FrameError(f"a numbered frame of {len(frame)} bytes is too short")
    if kind == ADDRESSED:
        number, epoch, lamport, sender, addressee = _ADDRESSED_FIELDS.unpack_from(frame, 1)
        parsed: Numbered = Addressed(kind, number, epoch, lamport, frame[_ADDRESSED_END:], sender, addressee)
    else:
        number, epoch, lamport = _NUMBERED_FIELDS.unpack_from(frame, 1)
        parsed = Numbered(kind, number, epoch, lamport, frame[_FIELDS_END:])
    if lamport > LAMPORT_MAX:
        raise FrameError(f"a frame's logical time {lamport} is beyond {LAMPORT_MAX}")
    return parsed


P = TypeVar("P", bound=Packet)


class PacketCodec(Generic[P]):
    """Packets of one protocol to bytes and back."""

    def __init__(self, packets: tuple[type[P], ...]) -> None:
        self._encoder = msgspec.msgpack.Encoder()
        # The union of the protocol's packet classes: the tag that each carries says which it is.
        kinds: object = packets[0]
        for packet in packets[1:]:
            kinds = kinds | packet
        self._decoder: msgspec.msgpack.Decoder[P] = msgspec.msgpack.Decoder(kinds)

    def encode(self, packet: P) -> bytes:
        return self._encoder.encode(packet)

    def decode(self, body: memoryview | bytes) -> P:
        try:
            packet = self._decoder.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise FrameError(f"a packet could not be read: {error}") from error
        run = packet.carried()
        if run is not None and not run.is_sound():
            raise FrameError("a packet's run does not fit its body")
        return packet
