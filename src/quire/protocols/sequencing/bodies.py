"""Bodies that go from members to members, while the sequencer only numbers them.

The sender keeps the bodies until everybody has delivered them, and sends them again to whoever asks. A member that gets
the number first waits for the bodies, and asks for them if they do not come.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from quire.model.errors import ProtocolViolation
from quire.model.messages import Run
from quire.protocols.node import Send
from quire.protocols.sequencing import packets as wire
from quire.protocols.sequencing.events import Event

_UNNUMBERED = 1 << 63


class Bodies:
    def __init__(self, me: int, limit: int, limit_bytes: int) -> None:
        self.me = me
        self.kept: dict[str, dict[int, tuple[Run, int]]] = {}
        """Own runs by group and first message, each with its last number, if it has one."""
        self.waiting: dict[tuple[str, int, int], Event] = {}
        """Events without bodies, by group, sender and first message."""
        self._limit = limit
        self._limit_bytes = limit_bytes
        self._arrived: dict[tuple[str, int, int], Run] = {}
        self._messages = 0
        self._bytes = 0

    def keep(self, group: str, run: Run) -> None:
        self.kept.setdefault(group, {})[run.first] = (run, _UNNUMBERED)

    def numbered(self, group: str, first: int, last: int) -> None:
        kept = self.kept.get(group, {})
        if first in kept:
            kept[first] = (kept[first][0], last)

    def release(self, stable: Mapping[str, int]) -> None:
        """Forget what everybody has delivered."""
        for group, kept in list(self.kept.items()):
            for first in [first for first, (_, last) in kept.items() if last <= stable.get(group, -1)]:
                del kept[first]
            if not kept:
                del self.kept[group]

    def arrived(self, packet: wire.Bodies) -> Event | None:
        """Bodies came; returns the event that waited for them, whole."""
        key = (packet.group, packet.run.origin, packet.run.first)
        event = self.waiting.get(key)
        if event is not None:
            if event.run.count != packet.run.count:
                raise ProtocolViolation(packet.run.origin, f"it sent {packet.run.count} bodies of {event.run.count}")
            del self.waiting[key]
            return msgspec.structs.replace(event, run=packet.run)
        if key not in self._arrived and self._has_room(packet.run):
            self._arrived[key] = packet.run
            self._count(packet.run, 1)
        return None

    def _has_room(self, run: Run) -> bool:
        """Whether bodies that came before their numbers can be kept; otherwise they are asked for later."""
        size = self._bytes + len(run.body.payload)
        return self._messages + run.count <= self._limit and (size <= self._limit_bytes or not self._arrived)

    def _count(self, run: Run, sign: int) -> None:
        self._messages += sign * run.count
        self._bytes += sign * len(run.body.payload)

    def whole(self, event: Event) -> Event | None:
        """The event with its bodies; None if they are not here yet."""
        if not event.direct:
            return event
        key = (event.group, event.who, event.run.first)
        own = self.kept.get(event.group, {}).get(event.run.first) if event.who == self.me else None
        run = self._arrived.pop(key, None) if own is None else own[0]
        if run is not None and own is None:
            self._count(run, -1)
        if run is None or run.count != event.run.count:
            self.waiting[key] = event
            return None
        return msgspec.structs.replace(event, run=run)

    def drop(self, group: str) -> None:
        """The client has left the group: nothing of it will be delivered any more."""
        for key in [key for key in self.waiting if key[0] == group]:
            del self.waiting[key]
        for key in [key for key in self._arrived if key[0] == group]:
            self._count(self._arrived.pop(key), -1)

    def joined(self, group: str, number: int) -> None:
        """The client has joined: what was numbered before is of an earlier spell, and will not be delivered."""
        for key in [key for key, event in self.waiting.items() if key[0] == group and event.seq < number]:
            del self.waiting[key]

    def settle(self, group: str, origin: int, end: int) -> None:
        """Everything of this sender before this number was delivered: copies that come later are not kept."""
        for key in [key for key in self._arrived if key[:2] == (group, origin) and key[2] < end]:
            self._count(self._arrived.pop(key), -1)

    def ask(self) -> list[Send]:
        """Ask the senders for what has not come."""
        return [Send(wire.Wanted(group, first), (sender,)) for group, sender, first in self.waiting]

    def answer(self, source: int, packet: wire.Wanted) -> list[Send]:
        kept = self.kept.get(packet.group, {}).get(packet.first)
        return [] if kept is None else [Send(wire.Bodies(packet.group, kept[0]), (source,))]

    def idle(self) -> bool:
        return not self.kept and not self.waiting
