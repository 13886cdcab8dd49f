"""The directory: which groups there are, who numbers them, and who is, or is about to be, in them.

Its entries act as the lock. A client may join only after the directory has entered it, and it is entered only if all groups
that must then share a sequencer do. As all entries are made in one place, two concurrent joins cannot both miss each other. An
entry is removed when the client has delivered its leave and its sequencer says so; until then the directory counts it as a
member. So the entries never miss a member, and a client or packet that is lost at most leaves a superfluous entry.

Moves are decided here too, one at a time: the sequencers that give and the one that takes do their parts, but whether a
move took place is what the directory says. A move that takes longer than its lease is called off.

It takes the place of Kindberg's test in the join handler, which lets two joins pass each other, sees no pending joins, and
moves one pair of groups at a time (K9, K11 and K10 in docs/papers.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from quire.model.errors import ProtocolViolation
from quire.model.packets import Packet
from quire.protocols.node import NOTHING, Effects, Node, Send
from quire.protocols.sequencing import packets as wire
from quire.protocols.sequencing.errors import GROUPS_MAX, NAME_MAX, is_name
from quire.protocols.sequencing.options import SequencingOptions
from quire.protocols.sequencing.permissions import Permissions
from quire.protocols.sequencing.placement import local_components, relief, strong_component, target, to_bring_together

LOAD_KEPT = 0.5
"""How much of a group's load counts on from one time of balancing to the next."""


class Operation(msgspec.Struct):
    """A move in progress."""

    op: int
    to: int
    sources: tuple[int, ...]
    groups: tuple[str, ...]
    ends_at: int


class Directory(Node):
    packets = (
        wire.Create, wire.Lookup, wire.Prepare, wire.Move, wire.Hosted, wire.JoinRequest, wire.Forget, wire.Done, wire.Query,
        wire.Load, wire.Suspect, wire.EvictDone,
    )  # fmt: skip

    def __init__(self, address: int, sequencers: Sequence[int], options: SequencingOptions) -> None:
        super().__init__(address)
        self.options = options
        self.sequencers = tuple(sequencers)
        self.permissions = Permissions(sequencers, address)
        self.locations: dict[str, int] = {}
        self.entries: dict[str, dict[int, int]] = {}
        """The clients that are, or may be about to be, in each group, each with the request by which it was entered."""
        self.over: dict[str, dict[int, int]] = {}
        """Requests up to here of a client are over: a late copy makes no new entry."""
        self.lost: set[str] = set()
        """Groups of which nothing is left: their names are not used again."""
        self.loads: dict[str, float] = {}
        self.operation: Operation | None = None
        self.committed: dict[int, bool] = {}
        """How moves ended."""
        self.moved = 0
        """How many groups have moved."""
        self.hosting: dict[str, dict[int, None]] = {}
        """New groups whose sequencers do not know of them yet, and who wants to know when they do."""
        self.evicted: set[int] = set()
        self.untold: dict[int, set[int]] = {}
        """For each sequencer, the evicted clients that it may not know of."""
        self.ordered: list[tuple[str, int]] = []
        """Moves that were asked for and have not begun."""
        self.tick_at: int | None = None
        self.balance_at = options.balance_ticks * options.tick_ns
        self._handlers: dict[type[Packet], Callable[[int, int, Any], Effects]] = {
            wire.Create: self._create,
            wire.Lookup: self._lookup,
            wire.Prepare: self._prepare,
            wire.Move: self._move,
            wire.Hosted: self._hosted,
            wire.JoinRequest: self._join,
            wire.Forget: self._forget,
            wire.Done: self._done,
            wire.Query: self._query,
            wire.Load: self._load,
            wire.Suspect: self._suspect,
            wire.EvictDone: self._evict_done,
        }

    # Inputs.

    def receive(self, now: int, source: int, packet: Packet) -> Effects:
        handler = self._handlers.get(type(packet))
        if handler is None:
            raise ProtocolViolation(source, f"{packet.name} is not for the directory")
        self.permissions.check(source, packet)
        effects = handler(now, source, packet)
        self._set_tick(now)
        return effects

    def wake(self, now: int) -> Effects:
        self.tick_at = None
        effects: list[Send] = []
        if self.operation is not None and now >= self.operation.ends_at:
            effects += self._end(now, committed=False)
        if now >= self.balance_at and self.options.balance_ticks:
            effects += self._balance(now)
        effects += self._begin_ordered(now)
        if self.operation is not None:
            effects.append(self._open(self.operation))
        effects += [Send(wire.Host(group), (self.locations[group],)) for group in self.hosting]
        effects += self._tell_evicted()
        self._set_tick(now)
        return effects

    def due(self) -> int | None:
        return self.tick_at

    def idle(self) -> bool:
        return self.operation is None and not (self.hosting or self.ordered or self.untold)

    def _set_tick(self, now: int) -> None:
        if self.tick_at is None:
            if not self.idle():
                self.tick_at = now + self.options.tick_ns
            elif self.options.balance_ticks and any(self.loads.values()):
                self.tick_at = max(self.balance_at, now + self.options.tick_ns)

    # Names.

    def _create(self, now: int, source: int, packet: wire.Create) -> Effects:
        group = packet.group
        if not is_name(group):
            raise ProtocolViolation(source, f"it names a group {group[:NAME_MAX]!r}")
        if group in self.lost:
            return self._lookup(now, source, wire.Lookup(group))
        if group not in self.locations and len(self.locations) + len(self.lost) >= GROUPS_MAX:
            return (Send(wire.Located(group, wire.NO_ROOM), (source,)),)
        if group not in self.locations:
            self.locations[group] = self._least_loaded()
            self.entries[group], self.over[group] = {}, {}
            self.hosting[group] = {}
        if group not in self.hosting:
            return self._lookup(now, source, wire.Lookup(group))
        self.hosting[group][source] = None
        return (Send(wire.Host(group), (self.locations[group],)),)

    def _least_loaded(self) -> int:
        def load(sequencer: int) -> tuple[float, int, int]:
            own = [group for group, location in self.locations.items() if location == sequencer]
            return sum(self.loads.get(group, 0.0) for group in own), len(own), sequencer

        return min(self.sequencers, key=load)

    def _hosted(self, now: int, source: int, packet: wire.Hosted) -> Effects:  # noqa: ARG002
        waiting = self.hosting.pop(packet.group, None)
        return (Send(wire.Located(packet.group, self.locations[packet.group]), tuple(waiting)),) if waiting else NOTHING

    def _lookup(self, now: int, source: int, packet: wire.Lookup) -> Effects:  # noqa: ARG002
        location = -1 if packet.group in self.hosting else self.locations.get(packet.group, -1)
        if packet.group in self.lost:
            location = wire.LOST
        return (Send(wire.Located(packet.group, location), (source,)),)

    def at(self, sequencer: int) -> list[str]:
        """The groups that a sequencer is known to have."""
        return [group for group, location in self.locations.items() if location == sequencer and group not in self.hosting]

    def interrupt(self, now: int, sequencer: int) -> Effects:
        """A sequencer has lost its state. Groups that it was taking over or giving away stay where they were; it must be
        told again who was evicted, and has not heard of new groups."""
        operation, effects = self.operation, list[Send]()
        if operation is not None and sequencer in (operation.to, *operation.sources):
            effects += self._end(now, committed=False)
        if self.evicted:
            self.untold.setdefault(sequencer, set()).update(self.evicted)
        self._set_tick(now)
        return effects

    def lose(self, sequencer: int, groups: Iterable[str]) -> None:
        """These groups of a sequencer are lost."""
        gone = [group for group in groups if self.locations.get(group) == sequencer]
        for group in gone:
            del self.locations[group], self.entries[group], self.over[group]
            self.loads.pop(group, None)
        self.lost.update(gone)
        self.ordered = [(group, to) for group, to in self.ordered if group not in self.lost]

    # Joins.

    def _join(self, now: int, source: int, packet: wire.JoinRequest) -> Effects:  # noqa: ARG002
        """Grant or refuse a join, at this place, at once."""
        group, client, req = packet.group, packet.client, packet.req
        if group not in self.locations:
            raise ProtocolViolation(source, f"it numbers {group!r}, which does not exist")
        granted = self.operation is None and self.locations[group] == source and req > self.over[group].get(client, -1)
        granted = granted and client not in self.evicted
        if granted:
            before = self.entries[group].get(client)
            self.entries[group][client] = max(req, before or 0)
            if self._apart(group) is not None:
                granted = False
                if before is None:
                    del self.entries[group][client]
                else:
                    self.entries[group][client] = before
        return (Send(wire.JoinAnswer(group, client, req, granted), (source,)),)

    def _prepare(self, now: int, source: int, packet: wire.Prepare) -> Effects:
        """Enter the client, bring together the groups that must share a sequencer, and answer when that is done."""
        group, client, req = packet.group, source, packet.req
        if group not in self.locations:
            return self._lookup(now, source, wire.Lookup(group))
        if client in self.evicted:
            return (Send(wire.Expelled(), (client,)),)
        if self.operation is not None or req <= self.over[group].get(client, -1):
            return NOTHING
        self.entries[group][client] = max(req, self.entries[group].get(client, -1))
        apart = self._apart(group)
        if apart is None:
            return (Send(wire.Ready(group, req, self.locations[group]), (source,)),)
        return self._start(now, apart, target(apart, self.locations, self.loads))

    def _apart(self, group: str) -> frozenset[str] | None:
        """Groups that must share a sequencer because of this one, and do not yet."""
        if not self.options.totally:
            return None
        return to_bring_together(group, self.entries, self.locations, acyclic=self.options.acyclic)

    def _forget(self, now: int, source: int, packet: wire.Forget) -> Effects:  # noqa: ARG002
        group, client, req = packet.group, packet.client, packet.req
        if group in self.locations:
            # The client may have asked to join again since.
            if self.entries[group].get(client, req) < req:
                del self.entries[group][client]
            self.over[group][client] = max(req, self.over[group].get(client, -1))
        return (Send(wire.Forgotten(group, client, req), (source,)),)

    # Moves.

    def _start(self, now: int, groups: Iterable[str], to: int) -> list[Send]:
        moving = tuple(sorted(group for group in groups if self.locations[group] != to))
        if not moving:
            return []
        sources = tuple(sorted({self.locations[group] for group in moving}))
        ends_at = now + self.options.lease_ticks * self.options.tick_ns
        self.operation = Operation(len(self.committed), to, sources, moving, ends_at)
        return [self._open(self.operation)]

    def _open(self, operation: Operation) -> Send:
        return Send(wire.Open(operation.op, operation.groups, operation.to), operation.sources)

    def _done(self, now: int, source: int, packet: wire.Done) -> Effects:
        if self.operation is not None and self.operation.op == packet.op and self.operation.to == source:
            return self._end(now, committed=True)
        return self._query(now, source, wire.Query(packet.op))

    def _end(self, now: int, *, committed: bool) -> list[Send]:
        operation = self.operation
        assert operation is not None
        self.operation = None
        self.committed[operation.op] = committed
        if committed:
            self.locations.update(dict.fromkeys(operation.groups, operation.to))
            self.moved += len(operation.groups)
        # What was just moved stays for a while, so that groups do not wander to and fro.
        self.balance_at = now + self.options.balance_ticks * self.options.tick_ns
        concerned = tuple(sorted({*operation.sources, operation.to}))
        return [Send(wire.Outcome(operation.op, committed), concerned), *self._begin_ordered(now)]

    def _query(self, now: int, source: int, packet: wire.Query) -> Effects:  # noqa: ARG002
        if packet.op not in self.committed:
            return NOTHING
        return (Send(wire.Outcome(packet.op, self.committed[packet.op]), (source,)),)

    def _move(self, now: int, source: int, packet: wire.Move) -> Effects:
        if packet.group in self.lost:
            return NOTHING
        if packet.group not in self.locations or packet.sequencer not in self.sequencers:
            raise ProtocolViolation(source, f"it wants {packet.group!r} at {packet.sequencer}, one of which does not exist")
        if (packet.group, packet.sequencer) not in self.ordered:
            self.ordered.append((packet.group, packet.sequencer))
        return self._begin_ordered(now)

    def _begin_ordered(self, now: int) -> list[Send]:
        while self.ordered and self.operation is None:
            group, to = self.ordered.pop(0)
            effects = self._start(now, self._with(group), to)
            if effects:
                return effects
        return []

    def _with(self, group: str) -> frozenset[str]:
        """The groups that move together with this one."""
        if not self.options.totally:
            return frozenset({group})
        if self.options.acyclic:
            return next(part for part in local_components(self.entries, self.locations) if group in part)
        return strong_component(group, self.entries)

    # Clients that are gone.

    def _suspect(self, now: int, source: int, packet: wire.Suspect) -> Effects:  # noqa: ARG002
        """Turn a suspicion into a decision, for all sequencers and for good, whether it was right or wrong."""
        if packet.client in self.evicted:
            return NOTHING
        self.evicted.add(packet.client)
        for sequencer in self.sequencers:
            self.untold.setdefault(sequencer, set()).add(packet.client)
        return self._tell_evicted()

    def _tell_evicted(self) -> list[Send]:
        return [
            Send(wire.Evict(tuple(sorted(clients)), self._entered(each, clients)), (each,))
            for each, clients in self.untold.items()
        ]

    def _entered(self, sequencer: int, clients: set[int]) -> tuple[str, ...]:
        """The groups of a sequencer in which any of these clients is entered."""
        return tuple(group for group in self.at(sequencer) if not clients.isdisjoint(self.entries[group]))

    def _evict_done(self, now: int, source: int, packet: wire.EvictDone) -> Effects:  # noqa: ARG002
        self.untold.get(source, set()).difference_update(packet.clients)
        if not self.untold.get(source, True):
            del self.untold[source]
        return NOTHING

    # Load.

    def _load(self, now: int, source: int, packet: wire.Load) -> Effects:  # noqa: ARG002
        for group, numbered in packet.numbered.items():
            if group in self.locations:
                self.loads[group] = self.loads.get(group, 0.0) + numbered
        return NOTHING

    def _balance(self, now: int) -> list[Send]:
        self.balance_at = now + self.options.balance_ticks * self.options.tick_ns
        effects: list[Send] = []
        if self.operation is None and len(self.sequencers) > 1 and self.locations:
            members = self.entries if self.options.totally else dict.fromkeys(self.locations, ())
            found = relief(
                members, self.locations, self.sequencers, self.loads,
                acyclic=self.options.acyclic, least=self.options.hysteresis / 100,
            )  # fmt: skip
            if found is not None:
                effects = self._start(now, *found)
        self.loads = {group: kept for group, load in self.loads.items() if (kept := load * LOAD_KEPT) >= 1.0}
        return effects
