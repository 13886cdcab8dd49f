"""What a client remembers of its groups so that a lost sequencer without backups can be rebuilt from its members.

It keeps the events that it received and that are unstable (not known to be delivered everywhere), also of a group that it has
left, until all members have delivered its leave; and what is known of the group's senders, which it got with its join and has
kept up to date since. A client that has testified about a group ignores any earlier life of that group.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec
from msgspec.structs import replace

from quire.protocols.sequencing.contexts import Context, merge
from quire.protocols.sequencing.events import BLANK, JOIN, LEAVE, MESSAGES, Event
from quire.protocols.sequencing.senders import Numbers, copied


class _Known(msgspec.Struct):
    """What is remembered of one group."""

    events: dict[int, Event] = {}
    """What was delivered and may not be everywhere, by number."""
    senders: dict[int, Numbers] = {}
    since: int = 0
    """The number as of which it was told of them; 0: from the beginning."""
    left: int | None = None
    """The number of the client's leave, where it is out of the group."""


class Memory:
    def __init__(self, me: int) -> None:
        self._me = me
        self._groups: dict[str, _Known] = {}
        self._lives: dict[str, int] = {}

    def promise(self, group: str, life: int) -> None:
        self._lives[group] = max(life, self._lives.get(group, 0))

    def believes(self, event: Event) -> bool:
        """Whether the event is not from an earlier incarnation of its group than the latest known one."""
        life = 0 if event.remembered is None else event.remembered.life
        if life < self._lives.get(event.group, 0):
            return False
        self._lives[event.group] = life
        return True

    def delivered(self, event: Event, members: Collection[int]) -> None:
        """The event is delivered, with these members at that moment."""
        known = self._groups.setdefault(event.group, _Known())
        known.events[event.seq] = event
        remembered = event.remembered
        own_join = event.who == self._me and event.kind == JOIN
        if remembered is not None and remembered.senders is not None and (own_join or event.kind == BLANK):
            known.senders, known.since = copied(remembered.senders), event.seq
        if event.who == self._me and event.kind in (JOIN, LEAVE):
            known.left = event.seq if event.kind == LEAVE else None
        elif event.kind == MESSAGES and remembered is not None:
            note(known.senders, event, members)

    def prune(self, stable: Mapping[str, int]) -> None:
        """Drop what is delivered everywhere, up to these numbers."""
        for group, number in stable.items():
            known = self._groups.get(group)
            if known is None:
                continue
            for seq in [seq for seq, event in known.events.items() if event.last <= number]:
                del known.events[seq]
            if known.left is not None and known.left <= number:
                del self._groups[group]

    def lose(self, group: str) -> None:
        self._groups.pop(group, None)

    def kept(self, group: str, held: Iterable[Event]) -> tuple[Event, ...]:
        """What was received of the group, whether delivered or held back, with bodies."""
        delivered = self._groups[group].events.values() if group in self._groups else ()
        return tuple(replace(event, direct=False) if event.direct else event for event in (*delivered, *held))

    def senders(self, group: str) -> tuple[int, dict[int, Numbers]]:
        """The number as of which this client was told who had sent to the group, and who had."""
        known = self._groups.get(group)
        return (-1, {}) if known is None else (known.since, copied(known.senders))

    def mentioned(self, held: Iterable[Event]) -> Context:
        """For each group, the highest number in the context of anything that was received."""
        delivered = (event for known in self._groups.values() for event in known.events.values())
        highest: Context = {}
        for event in (*delivered, *held):
            highest = merge(merge(highest, event.tot), event.dep)
        return highest


def note(senders: dict[int, Numbers], event: Event, members: Collection[int]) -> None:
    """Messages have numbers: update what is known of their sender."""
    remembered = event.remembered
    assert remembered is not None
    outside = None if event.who in members else tuple(members)
    numbers = senders.setdefault(event.who, Numbers())
    numbers.give(remembered.counter, event.run.count, event.seq, outside, remembered.acked)
