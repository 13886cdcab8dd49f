"""The client for majority replication (`majority`): asks all replicas of a key, and goes on when a majority has answered."""

from __future__ import annotations

import msgspec

from quire.model.errors import ProtocolViolation
from quire.model.packets import Packet
from quire.protocols.node import Effects, Node, Notice, Send
from quire.protocols.transactions.cells import Value
from quire.protocols.transactions.claims import Wanted
from quire.protocols.transactions.coordinator import Coordinator, Draw, Operation, Transaction
from quire.protocols.transactions.errors import CommitUnknown, NoReplicaQuorum, Obsolete, TransactionError, TxAborted
from quire.protocols.transactions.notices import Answered, Failed, Traced
from quire.protocols.transactions.placement import Placement
from quire.protocols.transactions.quorum_packets import (
    QUORUM_PACKETS,
    Accepted,
    Answer,
    Claim,
    Decide,
    Denied,
    Ended,
    Fetch,
    Granted,
    Prewrite,
    Propose,
    Rejected,
)
from quire.protocols.transactions.requests import Request
from quire.protocols.transactions.settings import Settings
from quire.protocols.transactions.timestamps import Timestamp, Version, end_id, is_possible
from quire.protocols.transactions.votes import ABORT, FIRST, Decision, Incarnations, Stance, majority, merge, valid

Outcome = Send | Notice


class Ask(msgspec.Struct):
    """A request to several replicas, repeated until a majority has answered."""

    packet: Packet
    to: tuple[int, ...]
    repeat_at: int
    votes: dict[int, Stance] = {}
    found: dict[int, tuple[Version, Value]] = {}


class Deciding(msgspec.Struct):
    """A transaction that may become committed from now on, whatever its client does."""

    call: int
    transaction: Transaction
    decision: Decision
    ask: Ask
    until_ns: int


class QuorumClient(Node, Coordinator[Send]):
    packets = QUORUM_PACKETS

    def __init__(self, address: int, placement: Placement, settings: Settings, draw: Draw) -> None:
        Coordinator.__init__(self, address, placement, settings, draw)
        self._known: Incarnations = {}
        self._asks: dict[tuple[Timestamp, int], Ask] = {}
        self._deciding: dict[Timestamp, Deciding] = {}

    def receive(self, now: int, source: int, packet: Packet) -> Effects:
        self._check(source, packet)
        assert isinstance(packet, Answer)
        merge(self._known, packet.known)
        stance = Stance(packet.incarnation, packet.known)
        match packet:
            case Granted():
                return self._granted(now, source, stance, packet)
            case Denied(t=t, number=number, hint=hint, latest=latest):
                self.heard(Timestamp(max(hint.tid, latest), 0))
                transaction = self._active.get(t)
                if transaction is None or number not in transaction.open:
                    return []
                return self._refused(now, transaction, Obsolete(transaction.open[number].key, hint))
            case Ended(t=t, decision=decision):
                return self._ended(now, t, decision)
            case Accepted(t=t):
                deciding = self._deciding.get(t)
                if deciding is None:
                    return []
                deciding.ask.votes[source] = stance
                most = majority(len(self._placement.replicas))
                if len(valid(deciding.ask.votes, self._known)) < most:
                    return []
                return [Send(Decide(t, deciding.decision), self._placement.replicas), *self._ended(now, t, deciding.decision)]
        return []  # Replicas are ending it; repeating the question will bring the outcome.

    def _check(self, source: int, packet: Packet) -> None:
        if not isinstance(packet, Granted | Denied | Ended | Accepted | Rejected) or source not in self._placement.replicas:
            raise ProtocolViolation(source, f"{type(packet).__name__} is not for a client")
        seen = packet.version if isinstance(packet, Granted) else packet.hint if isinstance(packet, Denied) else None
        latest = Timestamp(packet.latest if isinstance(packet, Denied) else 0, 0)
        if not is_possible(latest) or (seen is not None and not is_possible(seen)):
            raise ProtocolViolation(source, f"nothing can be as late as {max(latest, seen or latest)}")
        if isinstance(packet, Granted) and seen is None:
            ask = self._asks.get((packet.t, packet.number))
            if ask is not None and isinstance(ask.packet, Fetch):
                raise ProtocolViolation(source, f"it answers a read of {packet.t} without a version")

    def _read(self, now: int, call: int, transaction: Transaction, key: str, replicas: tuple[int, ...]) -> list[Outcome]:
        if key in transaction.written:
            version, value = transaction.written[key]
            self._new_read(call, transaction, key, ())
            return self._saw(now, transaction, transaction.open.pop(transaction.numbers), version, value)
        traced = self._new_read(call, transaction, key, replicas)
        return [traced, self._ask(now, transaction, Fetch(transaction.t, transaction.numbers, key), replicas)]

    def _write(
        self, now: int, call: int, transaction: Transaction, key: str, value: Value, replicas: tuple[int, ...]
    ) -> list[Outcome]:
        traced = self._new_write(call, transaction, key, value, replicas)
        packet = Prewrite(transaction.t, transaction.numbers, key, transaction.seen[key], value)
        return [traced, self._ask(now, transaction, packet, replicas)]

    def _ask(self, now: int, transaction: Transaction, packet: Packet, to: tuple[int, ...]) -> Send:
        self._asks[transaction.t, transaction.numbers] = Ask(packet, to, now + self._settings.repeat_ns)
        return Send(packet, to)

    def _granted(self, now: int, source: int, stance: Stance, granted: Granted) -> list[Outcome]:
        transaction = self._active.get(granted.t)
        ask = self._asks.get((granted.t, granted.number))
        if transaction is None or ask is None or source not in ask.to:
            return []
        ask.votes[source] = stance
        transaction.open[granted.number].missing.discard(source)
        if granted.version is not None:
            ask.found[source] = granted.version, granted.value
        counted = valid(ask.votes, self._known)
        if len(counted) < majority(len(ask.to)):
            return []
        del self._asks[granted.t, granted.number]
        operation = transaction.open.pop(granted.number)
        if operation.version is not None:
            return [Answered(operation.call, None)]
        version, value = max((found for each, found in ask.found.items() if each in counted), key=lambda found: found[0])
        return self._saw(now, transaction, operation, version, value)

    def _commit(self, now: int, call: int, transaction: Transaction, until_ns: int) -> list[Outcome]:
        t, replicas = transaction.t, self._placement.replicas
        del self._active[t]
        if not transaction.written:
            # It has read what was there at one time, the last read's: nobody else needs to know.
            return [Traced("send", end_id(t), "commit", t), *self._withdraw(transaction), Answered(call, None)]
        decision = Decision(True, dict(transaction.written))
        ask = Ask(Propose(t, FIRST, decision), replicas, now + self._settings.repeat_ns)
        self._deciding[t] = Deciding(call, transaction, decision, ask, until_ns)
        return [Send(ask.packet, replicas)]

    def _ended(self, now: int, t: Timestamp, decision: Decision) -> list[Outcome]:
        """The outcome is known."""
        deciding = self._deciding.pop(t, None)
        if deciding is not None and decision.commit:
            traced = Traced("send", end_id(t), "commit", t, dests=self._placement.replicas)
            return [traced, Answered(deciding.call, None)]
        transaction = self._active.get(t) if deciding is None else deciding.transaction
        if transaction is None:
            return []
        failed = [] if deciding is None else [Failed(deciding.call, TxAborted(t))]
        return [*self._refused(now, transaction, TxAborted(t)), *failed]

    def _abort(self, now: int, transaction: Transaction) -> list[Outcome]:  # noqa: ARG002
        """Nothing has been proposed, so nobody can commit it: the client decides alone."""
        t, replicas = transaction.t, tuple(sorted(transaction.replicas))
        for number in transaction.open:
            self._asks.pop((t, number), None)
        traced = Traced("send", end_id(t), "abort", t, dests=replicas)
        return [traced, *([Send(Decide(t, ABORT), replicas)] if replicas else [])]

    def _claim(self, t: Timestamp, instead_of: Timestamp | None, wanted: Wanted, to: tuple[int, ...]) -> list[Outcome]:
        return [Send(Claim(t, instead_of, wanted), to)]

    def _too_late(self, operation: Operation) -> TransactionError:
        return NoReplicaQuorum(operation.key, tuple(sorted(operation.missing)))

    def submit(self, now: int, call: int, request: Request) -> list[Outcome]:
        return Coordinator.submit(self, now, call, request)

    def wake(self, now: int) -> list[Outcome]:
        effects = Coordinator.wake(self, now)
        for t, deciding in list(self._deciding.items()):
            if deciding.until_ns <= now:
                del self._deciding[t]
                effects.append(Failed(deciding.call, CommitUnknown(t)))
        for ask in (*self._asks.values(), *(deciding.ask for deciding in self._deciding.values())):
            if ask.repeat_at <= now:
                ask.repeat_at = now + self._settings.repeat_ns
                # Votes that no longer count are asked for again.
                counted = valid(ask.votes, self._known)
                effects.append(Send(ask.packet, tuple(replica for replica in ask.to if replica not in counted)))
        return effects

    def due(self) -> int | None:
        times = [ask.repeat_at for ask in self._asks.values()]
        times += [min(deciding.until_ns, deciding.ask.repeat_at) for deciding in self._deciding.values()]
        start = Coordinator.due(self)
        return min(times if start is None else [*times, start], default=None)

    def idle(self) -> bool:
        return Coordinator.idle(self) and not self._deciding
