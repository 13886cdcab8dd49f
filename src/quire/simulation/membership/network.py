"""A virtual network: connections that are made, cross each other, break, stall, and lose the end of what was written.

Each end of a connection has a number, by which its process knows it. What was written comes out at the other end in order, as
bytes, first of all the introduction; or it is lost with everything after it, and then the connection has ended there.
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
        """Whether the process here knows of it, because the other end has introduced itself."""
        self.other: End = self
        self.inbox: deque[Introduction | bytes] = deque()
        self._reader = Reader()
        self.ended = False
        """Whether nothing more comes in, so that it is closed when everything is read."""
        self.stalled = False
        """Whether nothing comes in though it is open: the network has forgotten the connection."""

    def frames(self, items: int) -> Iterator[Frame]:
        """Those that are complete with so many more writes."""
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
        """(source, target): what does not get through, for a while."""
        self._numbers = 0

    def connect(self, dial: Dial, dialler: Introduction, acceptor: Introduction, now: float) -> None:
        """Make the connection that was asked for: each end hears first who the other is."""
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
        """So much of what was on its way to an end is lost; it cannot go on after that."""
        for _ in range(min(items, len(end.inbox))):
            end.inbox.pop()
        end.ended = True

    def crash(self, name: str) -> list[End]:
        """A process is gone: returns the ends of others that were connected with it."""
        gone = [end for end in self.ends.values() if end.name == name]
        for end in gone:
            del self.ends[end.number]
        self.dials = [dial for dial in self.dials if dial.name != name]
        return [end.other for end in gone if end.other.number in self.ends]

    def heal(self) -> None:
        """Everything gets through. What the network has forgotten stays forgotten."""
        self.blocked.clear()

    def readable(self) -> Iterator[End]:
        """The ends where something can come in now."""
        for end in self.ends.values():
            if (end.inbox or end.ended) and not end.stalled and (end.other.name, end.name) not in self.blocked:
                yield end

    def overdue(self, now: float) -> list[End]:
        """The ends that nobody introduced itself at in time."""
        return [end for end in self.ends.values() if not end.is_introduced and now - end.made_at > HANDSHAKE_S]

    def is_blocked(self, one: str, other: str) -> bool:
        """Whether no connection can be made between these two."""
        return (one, other) in self.blocked or (other, one) in self.blocked

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers
