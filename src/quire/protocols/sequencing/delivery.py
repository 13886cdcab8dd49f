"""The delivery rule of a client: when an event may be delivered, and the hold-back queue until then.

A client delivers the events of each of its groups by number without a gap, beginning with its own join. Across groups, an event
waits for what its contexts name: `tot`, how far the sequencer had numbered the groups that share a client with this one, and
`dep`, how far its sender had seen others. An entry is a lower bound, never an exact value, because a group may have been
numbered elsewhere since. Entries of groups that the client is not in are ignored. An entry of a group that it is just joining
cannot be judged before the join has its number: events numbered before the join are ignored, later ones are waited for.

Every constraint names something that was numbered before, so the earliest event that is undelivered anywhere is always
deliverable, and nothing waits for ever.
"""

from __future__ import annotations

from collections.abc import Iterator

from quire.protocols.sequencing.events import JOIN, LEAVE, Event


class HoldBack:
    """What one client has delivered, and what it is holding back."""

    def __init__(self, me: int, limit: int) -> None:
        self.me = me
        self.delivered: dict[str, int] = {}
        """How far each group in which the client is was delivered."""
        self.joining: str | None = None
        self.request = -1
        """Which request the join under way has."""
        self.joined_at: int | None = None
        """The number of the join under way, once it has come."""
        self.held: dict[str, dict[int, Event]] = {}
        self.held_events = 0
        self._limit = limit
        self._waiting: dict[str, dict[str, None]] = {}
        """Groups whose next event waits for something of another group."""

    def join(self, group: str, request: int) -> None:
        """The client's join may be numbered from now on."""
        self.joining, self.request, self.joined_at = group, request, None

    def cancel(self) -> list[Event]:
        """The join was refused and will never be numbered: release whatever waits for it."""
        assert self.joining is not None
        group, self.joining, self.joined_at = self.joining, None, None
        self._drop(group)
        return list(self._proceed([*self._waiting.pop(group, {})]))

    def lose(self, group: str) -> list[Event]:
        """The group no longer exists: release whatever waits for one of its messages."""
        if group == self.joining:
            return self.cancel()
        self.delivered.pop(group, None)
        self._drop(group)
        return list(self._proceed([*self._waiting.pop(group, {})]))

    def wants(self, event: Event) -> bool:
        """Whether the event is new, and of a group in which the client is a member or may become one."""
        group = event.group
        if group not in self.delivered and group != self.joining:
            return False
        return event.last > self.delivered.get(group, -1) and event.seq not in self.held.get(group, ())

    def covers(self, event: Event) -> bool:
        """Whether the client is known to be a member as of this event, so that it will deliver it."""
        have = self.delivered.get(event.group)
        if have is not None:
            return event.last > have
        return event.group == self.joining and self.joined_at is not None and event.seq > self.joined_at

    def has_room(self, event: Event) -> bool:
        """Whether the event can be held back. The next event of a group must always find room: only its delivery frees any."""
        is_next = event.seq == self.delivered.get(event.group, -2) + 1
        return self.held_events < self._limit or is_next or self._is_awaited_join(event)

    def take(self, event: Event) -> list[Event]:
        """Accept an event; returns the events that can be delivered now, in order."""
        if not self.wants(event):
            return []
        if not self.has_room(event):
            return []
        group, own_join = event.group, self._is_awaited_join(event)
        self.held.setdefault(group, {})[event.seq] = event
        self.held_events += 1
        groups = [group]
        if own_join and self.joined_at is None:
            self.joined_at = event.seq
            # What waited to learn the join's number may be before it.
            groups.extend(reversed(self._waiting.pop(group, {})))
        return list(self._proceed(groups))

    def blocked_on(self, event: Event) -> str | None:
        """A group in which something else must be delivered before this event, or None if the event can be delivered now."""
        for context in (event.tot, event.dep):
            for group, number in context.items():
                if self._must_wait(group, number):
                    return group
        return None

    def _must_wait(self, group: str, number: int) -> bool:
        have = self.delivered.get(group)
        if have is not None:
            return have < number
        return group == self.joining and (self.joined_at is None or number >= self.joined_at)

    def _is_awaited_join(self, event: Event) -> bool:
        return event.kind == JOIN and event.who == self.me and event.group == self.joining and event.req == self.request

    def _next(self, group: str) -> Event | None:
        """The next event of this group by number, if it is here."""
        held = self.held.get(group)
        if not held:
            return None
        if group in self.delivered:
            return held.get(self.delivered[group] + 1)
        return held.get(self.joined_at) if group == self.joining and self.joined_at is not None else None

    def _proceed(self, groups: list[str]) -> Iterator[Event]:
        """Deliver what has become deliverable in these groups and in all groups that waited for them."""
        while groups:
            group = groups.pop()
            while (event := self._next(group)) is not None:
                obstacle = self.blocked_on(event)
                if obstacle is not None:
                    self._waiting.setdefault(obstacle, {})[group] = None
                    break
                self.deliver(event)
                yield event
                waiting = self._waiting.pop(group, None)
                if waiting:
                    # Its own further events come after whatever waited for this one.
                    groups.append(group)
                    groups.extend(waiting)
                    break

    def deliver(self, event: Event) -> None:
        """Record that the event is delivered."""
        group = event.group
        del self.held[group][event.seq]
        self.held_events -= 1
        if event.who == self.me and event.kind == LEAVE:
            del self.delivered[group]
            self._drop(group)
            return
        if self._is_awaited_join(event):
            self.joining, self.joined_at = None, None
            for number in [number for number in self.held[group] if number < event.seq]:
                del self.held[group][number]
                self.held_events -= 1
        self.delivered[group] = event.last

    def _drop(self, group: str) -> None:
        self.held_events -= len(self.held.pop(group, {}))
