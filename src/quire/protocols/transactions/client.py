"""The client for read-one, write-all (`all`): every replica of a key must agree to a write, and any one may answer a read."""

from __future__ import annotations

from quire.protocols.transactions.cells import Value
from quire.protocols.transactions.channels import Clock
from quire.protocols.transactions.claims import Wanted
from quire.protocols.transactions.coordinator import Coordinator, Draw, Operation, Transaction
from quire.protocols.transactions.errors import (
    CoordinatorLost,
    NoReplicaQuorum,
    Obsolete,
    ReadOnlyReplicaMissing,
    TransactionError,
)
from quire.protocols.transactions.notices import Answered, Traced
from quire.protocols.transactions.packets import Claim, Done, End, Read, Refused, Write
from quire.protocols.transactions.placement import Placement
from quire.protocols.transactions.replica import Outcome, Post
from quire.protocols.transactions.settings import Settings
from quire.protocols.transactions.timestamps import Timestamp, end_id


class Client(Coordinator[Post]):
    def __init__(self, address: int, placement: Placement, settings: Settings, draw: Draw, clock: Clock) -> None:
        super().__init__(address, placement, settings, draw)
        self._clock = clock

    def _read(self, now: int, call: int, transaction: Transaction, key: str, replicas: tuple[int, ...]) -> list[Outcome]:  # noqa: ARG002
        replica = replicas[int(self._draw() * len(replicas))]
        traced = self._new_read(call, transaction, key, (replica,))
        read = Read(0, 0, self._clock.tick(), transaction.t, transaction.numbers, key)
        return [traced, Post(replica, read)]

    def _write(
        self,
        now: int,  # noqa: ARG002
        call: int,
        transaction: Transaction,
        key: str,
        value: Value,
        replicas: tuple[int, ...],
    ) -> list[Outcome]:
        traced = self._new_write(call, transaction, key, value, replicas)
        version = transaction.seen[key]
        write = Write(0, 0, self._clock.tick(), transaction.t, transaction.numbers, key, version, value)
        return [traced, *(Post(replica, write) for replica in replicas)]

    def done(self, now: int, source: int, done: Done) -> list[Outcome]:
        transaction = self._active.get(done.t)
        operation = None if transaction is None else transaction.open.get(done.number)
        if transaction is None or operation is None:
            return []  # The transaction ended meanwhile.
        operation.missing.discard(source)
        if operation.missing:
            return []
        del transaction.open[done.number]
        if operation.version is not None:
            return [Answered(operation.call, None)]
        return self._saw(now, transaction, operation, done.version, done.value)

    def refused(self, now: int, refused: Refused) -> list[Outcome]:
        self.heard(max(refused.hint, Timestamp(refused.latest, 0)))
        transaction = self._active.get(refused.t)
        operation = None if transaction is None else transaction.open.get(refused.number)
        if transaction is None or operation is None:
            return []
        if refused.reason == "late":
            return self._refused(now, transaction, Obsolete(operation.key, refused.hint))
        return self._fail(now, transaction, CoordinatorLost(operation.key, refused.hint))

    def _commit(self, now: int, call: int, transaction: Transaction, until_ns: int) -> list[Outcome]:  # noqa: ARG002
        # All replicas have agreed to everything, so the decision is the client's alone.
        del self._active[transaction.t]
        return [*self._end(transaction, commit=True), *self._withdraw(transaction), Answered(call, None)]

    def _abort(self, now: int, transaction: Transaction) -> list[Outcome]:  # noqa: ARG002
        return self._end(transaction, commit=False)

    def _end(self, transaction: Transaction, *, commit: bool) -> list[Outcome]:
        t, lc, replicas = transaction.t, self._clock.tick(), sorted(transaction.replicas)
        traced = Traced("send", end_id(t), "commit" if commit else "abort", t, dests=tuple(replicas))
        written = {key: self._placement.of(key) for key in transaction.written}
        keys = {replica: tuple(key for key, held_at in written.items() if replica in held_at) for replica in replicas}
        return [traced, *(Post(replica, End(0, 0, lc, t, commit, keys[replica])) for replica in replicas)]

    def _claim(self, t: Timestamp, instead_of: Timestamp | None, wanted: Wanted, to: tuple[int, ...]) -> list[Outcome]:
        claim = Claim(0, 0, self._clock.tick(), t, instead_of, wanted)
        return [Post(replica, claim) for replica in to]

    def _too_late(self, operation: Operation) -> TransactionError:
        if operation.version is None:
            return ReadOnlyReplicaMissing(operation.key, min(operation.missing))
        return NoReplicaQuorum(operation.key, tuple(sorted(operation.missing)), "not all")
