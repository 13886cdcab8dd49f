"""Base class of the clients of a store: the state of their transactions, however the store is replicated.

A transaction reads and writes under the timestamp that it took at its start. For each key it remembers the version that it read
or wrote last (the transaction's vector V of the paper): no later read may give an older one. Any failure fails the whole
transaction.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from quire.protocols.node import Notice
from quire.protocols.transactions.cells import Value
from quire.protocols.transactions.claims import Wanted
from quire.protocols.transactions.errors import StaleVersion, TransactionError, TxEnded
from quire.protocols.transactions.notices import Answered, Began, Failed, Traced
from quire.protocols.transactions.placement import Placement
from quire.protocols.transactions.requests import Begin, Finish, Get, Put, Request
from quire.protocols.transactions.settings import Settings
from quire.protocols.transactions.timestamps import OPERATIONS_MAX, UNWRITTEN, Timestamp, Version, read_id, write_id

Draw = Callable[[], float]
"""Returns a random number from 0 up to 1, from a stream that the driver of the node has chosen."""

REFUSALS_MAX = 2
"""A transaction that was refused so often, and is refused once more, claims all keys that it may come to ask for."""

Effect = TypeVar("Effect")


class Operation(msgspec.Struct):
    """A read or write without an answer yet. `version`: what a write writes."""

    number: int
    call: int
    key: str
    version: Version | None
    missing: set[int]
    """The replicas that have not answered yet."""
    until_ns: int = 0


class Transaction(msgspec.Struct):
    t: Timestamp
    numbers: int = 0
    """How many operations it had, and how many of them were writes."""
    writes: int = 0
    read: set[str] = set()
    seen: dict[str, Version] = {}
    written: dict[str, tuple[Version, Value]] = {}
    replicas: set[int] = set()
    """Those that may hold something of it."""
    open: dict[int, Operation] = {}
    refusals: int = 0
    """How often it was refused before, under other timestamps."""
    claimed: Wanted = Wanted()
    """What it holds others up at because of that."""

    def wanted(self) -> Wanted:
        """Everything that it has asked for. A transaction that writes may well come to write what it has read."""
        writes = bool(self.written) or self.claimed.writes != ()
        if self.refusals >= REFUSALS_MAX:
            return Wanted(None, None if writes else ())
        asked = (operation.key for operation in self.open.values() if operation.version is None)
        reads = (*self.read, *asked)
        return self.claimed | Wanted(reads, (*reads, *self.written) if writes else ())


class Coordinator(ABC, Generic[Effect]):
    """Begins, ends and forgets transactions."""

    def __init__(self, address: int, placement: Placement, settings: Settings, draw: Draw) -> None:
        self.address = address
        self._placement = placement
        self._settings = settings
        self._draw = draw
        self.tid = 0
        self._active: dict[Timestamp, Transaction] = {}
        self._starts: list[tuple[int, int]] = []
        self._again: dict[Timestamp, tuple[int, Transaction]] = {}
        """In the place of those that were refused, what may come, and until when the place is kept."""

    def open_transactions(self) -> int:
        """How many transactions have begun and not ended."""
        return len(self._active)

    def heard(self, t: Timestamp) -> None:
        """Every transaction that starts here from now on is younger than this."""
        self.tid = max(self.tid, t.tid)

    def submit(self, now: int, call: int, request: Request) -> list[Effect | Notice]:
        """Handle a request of the application; the answer carries `call`, the application's number for it."""
        match request:
            case Begin(delay_ns=delay, instead_of=refused):
                if refused in self._again:
                    _, again = self._again.pop(refused)
                    self._active[again.t] = again
                    return [Began(call, again.t)]
                if not delay:
                    return self._begin(call)
                self._starts.append((now + delay, call))
                return []
            case Finish(t=t, commit=False, again=again):
                return [*self._give_up(now, t, again=again), Answered(call, None)]
        transaction = self._active.get(request.t)
        if transaction is None:
            return [Failed(call, TxEnded(request.t))]
        try:
            return self._operate(now, call, transaction, request)
        except TransactionError as error:
            return [*self._fail(now, transaction, error), Failed(call, error)]

    def _begin(self, call: int) -> list[Effect | Notice]:
        t = self._next()
        self._active[t] = Transaction(t)
        return [Began(call, t)]

    def _next(self) -> Timestamp:
        self.tid += 1
        return Timestamp(self.tid, self.address)

    def _give_up(self, now: int, t: Timestamp, *, again: bool) -> list[Effect | Notice]:
        """The application does not continue with a transaction, whether or not it has already failed."""
        transaction = self._active.get(t)
        if transaction is None:
            return [] if again else self._let_go(t)
        return (self._refused if again else self._fail)(now, transaction, TxEnded(t))

    def _let_go(self, refused: Timestamp) -> list[Effect | Notice]:
        """Nothing replaces a transaction that was refused."""
        return self._withdraw(self._again.pop(refused)[1]) if refused in self._again else []

    def _refused(self, now: int, transaction: Transaction, error: TransactionError) -> list[Effect | Notice]:
        """A younger transaction was first: abort this one, and claim a place for the one that replaces it, if any."""
        again = Transaction(self._next(), refusals=transaction.refusals + 1, claimed=transaction.wanted())
        self._again[transaction.t] = now + self._settings.lease_ns, again
        claim = self._claim(again.t, transaction.t, again.claimed, self._replicas_of(again.claimed))
        transaction.claimed = Wanted()  # It has passed them on.
        return [*claim, *self._fail(now, transaction, error)]

    def _withdraw(self, transaction: Transaction) -> list[Effect | Notice]:
        """Nothing has to wait for it any more."""
        claimed, transaction.claimed = transaction.claimed, Wanted()
        return self._claim(transaction.t, None, Wanted(), self._replicas_of(claimed)) if claimed else []

    def _replicas_of(self, wanted: Wanted) -> tuple[int, ...]:
        if wanted.reads is None or wanted.writes is None:
            return self._placement.replicas
        keys = {*wanted.reads, *wanted.writes}
        return tuple(sorted({replica for key in keys for replica in self._placement.of(key)}))

    def _operate(self, now: int, call: int, transaction: Transaction, request: Get | Put | Finish) -> list[Effect | Notice]:
        until_ns = now + self._settings.patience_ns if request.until_ns is None else request.until_ns
        if isinstance(request, Finish):
            if transaction.open:
                raise TransactionError(f"transaction {request.t} cannot commit before its reads and writes are answered")
            return self._commit(now, call, transaction, until_ns)
        if transaction.numbers >= OPERATIONS_MAX:
            raise TransactionError(f"a transaction may have at most {OPERATIONS_MAX} reads and writes")
        replicas = self._placement.of(request.key)
        transaction.numbers += 1
        if isinstance(request, Get):
            effects = self._read(now, call, transaction, request.key, replicas)
        else:
            effects = self._write(now, call, transaction, request.key, request.value, replicas)
        operation = transaction.open.get(transaction.numbers)
        if operation is not None:
            operation.until_ns = until_ns
        return effects

    def _new_read(self, call: int, transaction: Transaction, key: str, replicas: tuple[int, ...]) -> Traced:
        number = transaction.numbers
        transaction.open[number] = Operation(number, call, key, None, set(replicas))
        return Traced("send", read_id(transaction.t, number), "r", transaction.t, key, replicas)

    def _new_write(self, call: int, transaction: Transaction, key: str, value: Value, replicas: tuple[int, ...]) -> Traced:
        transaction.writes += 1
        number, version = transaction.numbers, Version(*transaction.t, transaction.writes)
        transaction.open[number] = Operation(number, call, key, version, set(replicas))
        transaction.written[key] = version, value
        transaction.seen[key] = version
        transaction.replicas.update(replicas)
        return Traced("send", write_id(version), "w", transaction.t, key, replicas, len(value or b""))

    def _saw(
        self, now: int, transaction: Transaction, operation: Operation, version: Version, value: Value
    ) -> list[Effect | Notice]:
        """A read was answered with this version."""
        self.heard(version.writer)
        seen = transaction.seen.get(operation.key, UNWRITTEN)
        if version < seen:
            return self._fail(now, transaction, StaleVersion(operation.key, version, seen))
        transaction.seen[operation.key] = version
        transaction.read.add(operation.key)
        # A read of what nobody wrote names its own request: there is no other message to name.
        seen_id = write_id(version) if version != UNWRITTEN else read_id(transaction.t, operation.number)
        traced = Traced("view", seen_id, "r", transaction.t, operation.key, size=len(value or b""))
        return [traced, Answered(operation.call, value)]

    def _fail(self, now: int, transaction: Transaction, error: TransactionError) -> list[Effect | Notice]:
        """Abort a transaction that cannot have been committed, and fail its pending requests."""
        self._active.pop(transaction.t, None)
        failures = [Failed(operation.call, error) for operation in transaction.open.values()]
        return [*self._abort(now, transaction), *self._withdraw(transaction), *failures]

    def wake(self, now: int) -> list[Effect | Notice]:
        """Begin transactions that are due, and give up those that have taken too long."""
        effects: list[Effect | Notice] = []
        for start in sorted(start for start in self._starts if start[0] <= now):
            self._starts.remove(start)
            effects += self._begin(start[1])
        for transaction in list(self._active.values()):
            late = [operation for operation in transaction.open.values() if operation.until_ns <= now]
            if late:
                effects += self._fail(now, transaction, self._too_late(late[0]))
        for refused in [t for t, (until_ns, _) in self._again.items() if until_ns <= now]:
            effects += self._let_go(refused)
        return effects

    def due(self) -> int | None:
        starts = (time for time, _ in self._starts)
        operations = (operation.until_ns for transaction in self._active.values() for operation in transaction.open.values())
        reservations = (until_ns for until_ns, _ in self._again.values())
        return min((*starts, *operations, *reservations), default=None)

    def idle(self) -> bool:
        return not self._active and not self._starts

    @abstractmethod
    def _read(
        self, now: int, call: int, transaction: Transaction, key: str, replicas: tuple[int, ...]
    ) -> list[Effect | Notice]: ...

    @abstractmethod
    def _write(
        self, now: int, call: int, transaction: Transaction, key: str, value: Value, replicas: tuple[int, ...]
    ) -> list[Effect | Notice]: ...

    @abstractmethod
    def _commit(self, now: int, call: int, transaction: Transaction, until_ns: int) -> list[Effect | Notice]: ...

    @abstractmethod
    def _abort(self, now: int, transaction: Transaction) -> list[Effect | Notice]: ...

    @abstractmethod
    def _claim(
        self, t: Timestamp, instead_of: Timestamp | None, wanted: Wanted, to: tuple[int, ...]
    ) -> list[Effect | Notice]: ...

    @abstractmethod
    def _too_late(self, operation: Operation) -> TransactionError: ...
