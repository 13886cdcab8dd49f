"""A processor of a store whose replicas must all agree: a replica, a client, or both, behind one set of channels.

Assumes that nobody crashes: a client that vanishes leaves its prewrites behind, and transactions that wait for them get an
error (CoordinatorLost). `majority` survives crashes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from quire.model.errors import ProtocolViolation
from quire.model.packets import Packet
from quire.protocols.node import Effect, Effects, Node
from quire.protocols.transactions.channels import Channels, Clock
from quire.protocols.transactions.client import Client
from quire.protocols.transactions.coordinator import Draw
from quire.protocols.transactions.packets import PACKETS, Beat, Claim, Done, End, Numbered, Read, Refused, Write
from quire.protocols.transactions.placement import Placement
from quire.protocols.transactions.replica import Outcome, Post, Replica
from quire.protocols.transactions.requests import Request
from quire.protocols.transactions.settings import Settings
from quire.protocols.transactions.timestamps import OPERATIONS_MAX, Timestamp, is_possible


class Processor(Node):
    """`clients`: the addresses of all clients. The addresses in the placement are replicas."""

    packets = PACKETS

    def __init__(self, address: int, placement: Placement, clients: Sequence[int], settings: Settings, draw: Draw) -> None:
        super().__init__(address)
        self._settings = settings
        self._clients = frozenset(clients)
        # Where requests wait until nobody can come before them, who may ask says so even when silent, and learns the time
        # from those that wait.
        is_client, is_replica = address in self._clients, address in placement.replicas
        peers = {*(placement.replicas if is_client else ()), *(clients if is_replica else ())} - {address}
        self._beats = sorted(peers)
        self._beat_at = int(draw() * settings.beat_ns) if settings.order == "stable" else None
        clock = Clock()
        self._channels = Channels(clock, self._beats, settings.repeat_ns)
        self.replica = Replica(address, clients, settings, clock) if is_replica else None
        self.client = Client(address, placement, settings, draw, clock) if is_client else None

    def receive(self, now: int, source: int, packet: Packet) -> Effects:
        if isinstance(packet, Beat):
            if self._channels.hear(now, source, packet) and self.replica is not None:
                self.replica.heard(source, packet.lc)
            return self._perform(now, [])
        if not isinstance(packet, Numbered):
            raise ProtocolViolation(source, f"{type(packet).__name__} is not a packet of a store with `all`")
        self._check(source, packet)
        contents = self._channels.take(now, source, packet)
        return self._perform(now, [outcome for content in contents for outcome in self._take(now, source, content)])

    def _check(self, source: int, packet: Numbered) -> None:
        match packet:
            case Read(t=t) | Write(t=t) | End(t=t):
                if self.replica is None or t.pno != source or source not in self._clients:
                    raise ProtocolViolation(source, f"it may not act on transaction {t} here")
                possible = is_possible(t) and (isinstance(packet, End) or 0 <= packet.number <= OPERATIONS_MAX)
                if isinstance(packet, Write):
                    possible = possible and is_possible(packet.version) and packet.version.writer == t
                if not possible:
                    raise ProtocolViolation(source, f"no transaction {t} can ask for that")
            case Claim(t=t, instead_of=before):
                mine = t.pno == source and is_possible(t) and (before is None or before.pno == source)
                if self.replica is None or not mine or source not in self._clients:
                    raise ProtocolViolation(source, f"it may not act on transaction {t} here")
            case Done(t=t, version=seen) | Refused(t=t, hint=seen):
                latest = Timestamp(packet.latest if isinstance(packet, Refused) else 0, 0)
                if self.client is None or t.pno != self.address or not is_possible(seen) or not is_possible(latest):
                    raise ProtocolViolation(source, f"transaction {t} is not of this client, or saw what cannot be")

    def _take(self, now: int, source: int, content: Numbered) -> list[Outcome]:
        """Process one packet in order; its receiver was checked when it arrived."""
        if self.replica is not None:
            self.replica.heard(source, content.lc)
        match content:
            case Read(t=t) | Write(t=t):
                assert self.replica is not None
                self._heard(t)
                return self.replica.request(now, source, content)
            case Claim():
                assert self.replica is not None
                return self.replica.claim(now, content)
            case End():
                assert self.replica is not None
                return self.replica.end(content)
            case Done():
                assert self.client is not None
                return self.client.done(now, source, content)
            case Refused():
                assert self.client is not None
                return self.client.refused(now, content)
        raise AssertionError(content)

    def _heard(self, t: Timestamp) -> None:
        if self.client is not None:
            self.client.heard(t)

    def submit(self, now: int, call: int, request: Request) -> Effects:
        """A request from the application of this processor's client."""
        assert self.client is not None
        return self._perform(now, self.client.submit(now, call, request))

    def wake(self, now: int) -> Effects:
        outcomes: list[Outcome] = []
        if self.client is not None:
            outcomes += self.client.wake(now)
        if self.replica is not None:
            outcomes += self.replica.wake(now)
        effects = list(self._perform(now, outcomes))
        effects += self._channels.wake(now)
        if self._beat_at is not None and self._beat_at <= now:
            self._beat_at = now + self._settings.beat_ns
            effects += self._channels.beats(self._beats)
        return effects

    def due(self) -> int | None:
        times = [
            self._channels.due(),
            None if self.client is None else self.client.due(),
            None if self.replica is None else self.replica.due(),
            self._beat_at,
        ]
        return min((time for time in times if time is not None), default=None)

    def idle(self) -> bool:
        parts = [part for part in (self.client, self.replica) if part is not None]
        return self._channels.idle() and all(part.idle() for part in parts)

    def _perform(self, now: int, outcomes: Sequence[Outcome]) -> Effects:
        """Put packets on their channels. What is for this processor itself is processed at once."""
        effects: list[Effect] = []
        todo = deque(outcomes)
        while True:
            while todo:
                outcome = todo.popleft()
                if not isinstance(outcome, Post):
                    effects.append(outcome)
                elif outcome.peer == self.address:
                    todo.extend(self._take(now, self.address, outcome.content))
                else:
                    effects.append(self._channels.post(now, outcome.peer, outcome.content))
            if self.replica is not None:
                todo.extend(self.replica.deliver(now))
            if not todo:
                return effects
