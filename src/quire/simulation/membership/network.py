"""A virtual network whose connections are made, cross each other, break, stall, and lose the end of what was written.

Each end of a connection has a number, by which its process refers to it. What was written arrives at the other end in order, as
bytes, beginning with the introduction; or it is lost with everything after it, and then the connection has ended there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import msgspec

from quire.views.introductions import Introduction
from quire.wire.frames import Frame, Reader

HANDSHAKE_S = 1.0
"""How long the other end of a connection has to introduce itself."""


class Dial(msgspec.Struct, frozen=True):
    """A process wants a connection to an address."""

    name: str
    address: str


class End:
    """One end of a connection."""

    def __init__(self, number: int, name: str, dialled: str | None, now: float) -> None:
        self.number, self.name, self.dialled = number, name, dialled
        self.made_at = now
        self.is_introduced = False
        """Whether the other end has introduced itself, so that the process here knows of the connection."""
        self.other: End = self
        self.inbox: deque[Introduction | bytes] = deque()
        self._reader = Reader()
        self.ended = False
        """Whether nothing more arrives, so that it is closed once everything is read."""
        self.stalled = False
        """Whether nothing arrives although it is open."""

    def frames(self, items: int) -> Iterator[Frame]:
        """The frames that are complete with this many more writes."""
        for _ in range(min(items, len(self.inbox))):
            item = self.inbox.popleft()
            assert isinstance(item, bytes)
            self._reader.feed(item)
            yield from self._reader.frames()


class VirtualNetwork:
    def __init__(self) -> None:
        self.dials: list[Dial] = []
        self.ends: dict[int, End] = {}
        self.blocked: set[tuple[str, str]] = set()
        """Directions (source, target) in which nothing gets through at present."""
        self._numbers = 0

    def connect(self, dial: Dial, dialler: Introduction, acceptor: Introduction, now: float) -> None:
        """Make the requested connection; each end first receives the other's introduction."""
        ours = End(self._number(), dial.name, dial.address, now)
        theirs = End(self._number(), acceptor.name, None, now)
        ours.other, theirs.other = theirs, ours
        ours.inbox.append(acceptor)
        theirs.inbox.append(dialler)
        self.ends[ours.number], self.ends[theirs.number] = ours, theirs

    def write(self, number: int, data: bytes) -> None:
        end = self.ends.get(number)
        if end is not None and not end.other.ended:
            end.other.inbox.append(data)

    def close(self, number: int) -> None:
        """A process closes its end: the other hears of it after everything that was written."""
        end = self.ends.pop(number, None)
        if end is not None:
            end.other.ended = True

    def lose(self, end: End, items: int) -> None:
        """Lose this many writes in flight to an end; the connection cannot continue after that."""
        for _ in range(min(items, len(end.inbox))):
            end.inbox.pop()
        end.ended = True

    def crash(self, name: str) -> list[End]:
        """A process has crashed: returns the other ends of its connections."""
        gone = [end for end in self.ends.values() if end.name == name]
        for end in gone:
            del self.ends[end.number]
        self.dials = [dial for dial in self.dials if dial.name != name]
        return [end.other for end in gone if end.other.number in self.ends]

    def heal(self) -> None:
        """Unblock all directions. Stalled connections stay stalled."""
        self.blocked.clear()

    def readable(self) -> Iterator[End]:
        """The ends at which something can arrive now."""
        for end in self.ends.values():
            if (end.inbox or end.ended) and not end.stalled and (end.other.name, end.name) not in self.blocked:
                yield end

    def overdue(self, now: float) -> list[End]:
        """The ends whose other side did not introduce itself in time."""
        return [end for end in self.ends.values() if not end.is_introduced and now - end.made_at > HANDSHAKE_S]

    def is_blocked(self, one: str, other: str) -> bool:
        """Whether no connection can be made between these two."""
        return (one, other) in self.blocked or (other, one) in self.blocked

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers
