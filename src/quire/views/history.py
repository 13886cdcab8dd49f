"""Recently delivered messages, in the order of their delivery, kept for processes that catch up."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import msgspec

from quire.views.packets import Entry
from quire.views.view import Position


class _Chapter:
    """What was delivered in one epoch."""

    def __init__(self, base: Position) -> None:
        self.epoch = base.epoch
        self.base = list(base.delivered)
        """How many messages of each member were delivered before its first entry."""
        self.entries: deque[Entry] = deque()


class DeliveryHistory:
    """The entries since a position. The oldest are dropped when there are more messages, or bytes, in it than the limits."""

    def __init__(self, base: Position, messages_max: int, bytes_max: int) -> None:
        self._messages_max, self._bytes_max = messages_max, bytes_max
        self._messages = self._bytes = 0
        self._chapters = deque([_Chapter(base)])

    def enter(self, epoch: int, members: int) -> None:
        """A view begins."""
        self._chapters.append(_Chapter(Position(epoch, (0,) * members)))
        self._shorten()

    def limit(self, bytes_max: int) -> None:
        """Keep at most so many bytes from now on."""
        self._bytes_max = bytes_max
        self._shorten()

    def add(self, entry: Entry) -> None:
        if entry.epoch != self._chapters[-1].epoch:
            self.enter(entry.epoch, entry.members)
        run = entry.run
        self._chapters[-1].entries.append(entry)
        self._messages += run.count
        self._bytes += len(run.body.payload)
        if self._messages > self._messages_max or self._bytes > self._bytes_max:
            self._shorten()

    def since(self, position: Position) -> list[Entry] | None:
        """What was delivered after a position, beginning inside a run if the position lies in one; None if not all is kept."""
        first = self._chapters[0]
        if position.epoch < first.epoch or position.epoch > self._chapters[-1].epoch:
            return None
        if position.epoch == first.epoch and any(map(int.__lt__, position.delivered, first.base)):
            return None
        return list(self._after(position))

    def _after(self, position: Position) -> Iterator[Entry]:
        for chapter in self._chapters:
            if chapter.epoch > position.epoch:
                yield from chapter.entries
            elif chapter.epoch == position.epoch:
                yield from (rest for entry in chapter.entries if (rest := rest_of(entry, position.delivered[entry.rank])))

    def _shorten(self) -> None:
        while self._messages > self._messages_max or self._bytes > self._bytes_max:
            oldest = self._chapters[0]
            if oldest.entries:
                entry = oldest.entries.popleft()
                self._messages -= entry.run.count
                self._bytes -= len(entry.run.body.payload)
                oldest.base[entry.rank] = entry.run.end
            else:
                self._chapters.popleft()


def rest_of(entry: Entry, delivered: int) -> Entry | None:
    """The part of an entry that follows the first `delivered` messages of its member; None if nothing does."""
    known = delivered - entry.run.first
    if known <= 0:
        return entry
    if known >= entry.run.count:
        return None
    return msgspec.structs.replace(entry, run=entry.run.part(known, entry.run.count), number=entry.number + known)
