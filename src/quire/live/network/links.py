"""Links: what goes from one member to another arrives once and in order, however often the connection breaks.

Both directions number their frames. A sender keeps each frame until the receiver has said that it arrived; when a
new connection is made, each side first says how many frames it has, and the other sends the rest again. A receiver
drops what it has seen and refuses a gap. The state lives in the members, not in the connection, so it survives
the connection and ends with the process: a restarted process has another incarnation and is refused.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from quire.live.network.frames import FrameError, numbered_head

ACK_EVERY_FRAMES = 64
ACK_EVERY_BYTES = 1 << 18
"""How much may arrive before the sender is told, so that it can let go of it."""

FRAME_COST_BYTES = 128
"""What it takes to keep a frame besides its body, so that many small frames are not free."""


class Outgoing:
    """Frames to one peer that are not known to have arrived."""

    def __init__(self) -> None:
        self._unacknowledged: deque[tuple[bytes, bytes]] = deque()
        self._first = 0
        self._next = 0
        self.bytes = 0

    @property
    def sent(self) -> int:
        """How many frames were ever sent."""
        return self._next

    @property
    def arrived(self) -> int:
        """How many of them are known to have arrived."""
        return self._first

    def push(self, kind: int, epoch: int, lamport: int, body: bytes) -> tuple[bytes, bytes]:
        """Number a frame and keep it; returns what to write, if there is a connection."""
        frame = (numbered_head(kind, self._next, epoch, lamport, len(body)), body)
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

    def resume(self, received: int) -> Iterable[tuple[bytes, bytes]]:
        """What to send again on a new connection to a peer that has the first `received` frames."""
        self.acknowledged(received)
        return tuple(self._unacknowledged)


class Incoming:
    """Frames from one peer: which are new, and when to tell the peer that they have arrived."""

    def __init__(self) -> None:
        self.received = 0
        self._told = 0
        self._bytes = 0

    def is_new(self, number: int) -> bool:
        """Whether this frame is to be taken; raises FrameError where frames before it are missing."""
        if number > self.received:
            raise FrameError(f"frames {self.received} to {number - 1} are missing")
        return number == self.received

    def take(self, size: int) -> None:
        """The next frame was read and is safe here. Until then the peer keeps it, and sends it again if need be."""
        self.received += 1
        self._bytes += size

    def acknowledge_due(self) -> bool:
        """Whether so much has arrived since the last acknowledgement that the peer should be told now."""
        return self.received - self._told >= ACK_EVERY_FRAMES or self._bytes >= ACK_EVERY_BYTES

    def unacknowledged(self) -> bool:
        return self.received != self._told

    def told(self) -> None:
        self._told = self.received
        self._bytes = 0
