"""Direct dissemination: message bodies go from the sender straight to the members, and the sequencer only numbers them.

A sender first sends the bodies to all members, and each acknowledges that it keeps them. Only then does the sender ask for
numbers, and it says as of which number of the group it knew the members; if a client has joined since, the sequencer does not
number the messages, and the sender sends the bodies to the new member as well. So a numbered message is kept by every member
that must deliver it, and nothing is lost with its sender. Where a member cannot be reached, or does not answer, the messages
are relayed with their bodies.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable

import msgspec

from quire.model.messages import NUMBER_MAX, Run
from quire.protocols.sequencing import packets as wire
from quire.protocols.sequencing.events import JOIN, Event
from quire.protocols.sequencing.options import SequencingOptions
from quire.protocols.sequencing.outbox import Outstanding

TRIES_MAX = 3
"""How often bodies are sent to a member that does not say that it keeps them."""


class Spreading:
    """The sender's side: who keeps the bodies of its runs."""

    def __init__(self, me: int, options: SequencingOptions) -> None:
        self.linked: Container[int] | None = None
        """The clients that can be reached; None: all."""
        self.silent: set[int] = set()
        """Members that did not answer, to whom nothing is sent directly until they get another chance."""
        self._joined: dict[tuple[str, int], int] = {}
        """By group and member, the number of its join: what it said before, it has forgotten."""
        self._me = me
        self._direct = options.bodies == "direct"

    def begin(self, one: Outstanding, view: Iterable[int] | None) -> bool:
        """Whether the bodies of a new run are sent to the members directly. `view`: the members, or None if the sender is
        not one."""
        if self._direct and view is not None and self._reaches(view):
            one.holders = {self._me}
        return one.holders is not None

    def left(self, group: str) -> None:
        """Forget a group that this client has left."""
        for key in [key for key in self._joined if key[0] == group]:
            del self._joined[key]

    def lacking(self, one: Outstanding, view: Iterable[int] | None) -> tuple[int, ...] | None:
        """The members that have not acknowledged the bodies yet; None if the run must be relayed by the sequencer instead."""
        if one.holders is None:
            return None
        lacking = tuple(client for client in view or () if client not in one.holders)
        if lacking and one.tries >= TRIES_MAX:
            self.silent.update(lacking)
        if view is None or not self._reaches(lacking):
            one.holders = None
            return None
        one.tries += bool(lacking)
        return lacking

    def changed(self, event: Event, unnumbered: Iterable[Outstanding]) -> None:
        """A member joined or left. A client that leaves drops the bodies it kept, even if it joins again."""
        key = (event.group, event.who)
        if event.kind == JOIN:
            self._joined[key] = event.seq
        else:
            self._joined.pop(key, None)
            for one in unnumbered:
                if one.holders is not None:
                    one.holders.discard(event.who)

    def kept(self, one: Outstanding, client: int, as_of: int, view: Collection[int]) -> bool:
        """A member acknowledges that it keeps the bodies; returns whether all members do now."""
        self.silent.discard(client)
        stranger = client not in view or as_of < self._joined.get((one.group, client), 0)
        if stranger or one.holders is None or client in one.holders:
            return False
        one.holders.add(client)
        return one.holders.issuperset(view)

    def _reaches(self, clients: Iterable[int]) -> bool:
        linked = self.linked
        return not any(
            client != self._me and (client in self.silent or (linked is not None and client not in linked))
            for client in clients
        )  # fmt: skip


class Bodies:
    """A member's side: the bodies that it keeps, including its own, until they are delivered."""

    def __init__(self, options: SequencingOptions) -> None:
        self._options = options
        self._kept: dict[tuple[str, int], dict[int, tuple[int, Run]]] = {}
        """By group and sender, and by the first message; each with the number as of which its sender knew the members."""
        self._delivered: dict[tuple[str, int], int] = {}
        """By group and sender: its messages before this one have been delivered, so that late copies are not kept."""
        self._messages = 0
        self._bytes = 0

    def keep(self, group: str, view: int, run: Run, *, own: bool = False) -> bool:
        """Keep bodies until they are delivered. Returns False if they are refused, because there is no room or they come too
        late."""
        kept = self._kept.get((group, run.origin), {})
        if run.first in kept:
            return kept[run.first][1].count == run.count
        if not own and (run.first < self._delivered.get((group, run.origin), 0) or not self._has_room(run)):
            return False
        self._kept.setdefault((group, run.origin), {})[run.first] = (view, run)
        self._count(run, 1)
        return True

    def _has_room(self, run: Run) -> bool:
        options, size = self._options, self._bytes + len(run.body.payload)
        return self._messages + run.count <= options.history and (size <= options.history_bytes or not self._messages)

    def _count(self, run: Run, sign: int) -> None:
        self._messages += sign * run.count
        self._bytes += sign * len(run.body.payload)

    def whole(self, event: Event) -> Event | None:
        """The event together with its bodies, or None if this member does not have them."""
        if not event.direct:
            return event
        _, run = self._kept.get((event.group, event.who), {}).get(event.run.first, (0, None))
        return None if run is None or run.count != event.run.count else msgspec.structs.replace(event, run=run)

    def delivered(self, group: str, sender: int, end: int) -> None:
        """Drop what this sender sent before this message: all of it is delivered."""
        self._delivered[group, sender] = end
        kept = self._kept.get((group, sender), {})
        for first in [first for first in kept if first < end]:
            self._count(kept.pop(first)[1], -1)

    def left(self, group: str, sender: int, number: int) -> None:
        """Drop what a sender gave to the members before it left with this number, because nothing of it can be numbered any
        more. It may have joined again and sent more before this member learns of its leave."""
        self._delivered.pop((group, sender), None)
        kept = self._kept.pop((group, sender), {})
        newer = {first: (view, run) for first, (view, run) in kept.items() if view > number}
        for first in kept.keys() - newer.keys():
            self._count(kept[first][1], -1)
        if newer:
            self._kept[group, sender] = newer

    def drop(self, group: str) -> None:
        """Forget a group that this client has left."""
        for key in {key for key in (*self._kept, *self._delivered) if key[0] == group}:
            self.left(*key, NUMBER_MAX)


def request(one: Outstanding, client: int, acked: int, view: int) -> wire.DoMulticast:
    """What asks for the numbers of a run; without its bodies where the members as of `view` keep them."""
    run = one.run if view < 0 else Run(one.run.origin, one.run.first, one.run.count)
    return wire.DoMulticast(one.group, client, one.counter, acked, run, one.context, dict(one.ids), view)
