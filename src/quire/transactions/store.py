"""The store that a client holds: transactions that are tried again by themselves as long as that can help.

A transaction that came too late is begun anew under a younger timestamp, after a random pause. What its program did so far
is done again behind its back: as long as every read gives the same value, the program cannot tell the difference. Where a
value has changed, only the program can go on: `async with` raises then, and `run` calls the program once more.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, TypeVar

import msgspec

from quire.objects.runtime import Promise, Runtime
from quire.protocols.node import Notice
from quire.protocols.transactions.cells import Value
from quire.protocols.transactions.errors import RetryLimit, TransactionError
from quire.protocols.transactions.notices import Answered, Began, Failed
from quire.protocols.transactions.processor import Processor
from quire.protocols.transactions.quorum_client import QuorumClient
from quire.protocols.transactions.requests import Begin, Finish, Get, Put, Request
from quire.protocols.transactions.settings import MILLISECOND
from quire.protocols.transactions.timestamps import Timestamp
from quire.transactions.codecs import BYTES, Codec

Result = TypeVar("Result")


class Retries(msgspec.Struct, frozen=True, kw_only=True):
    """How often a transaction is tried, and how long at most it pauses before the second time; twice as long each time."""

    tries: int = 16
    pause_ns: int = 20 * MILLISECOND
    pause_ns_max: int = 1000 * MILLISECOND


class Counts(msgspec.Struct):
    committed: int = 0
    aborted: int = 0
    """Transactions that ended without effect, those that were then tried again among them."""
    retries: int = 0


class Store:
    """A client of replicated keys. One may have any number of transactions at a time."""

    def __init__(
        self, node: Processor | QuorumClient, runtime: Runtime, *, codec: Codec = BYTES, retries: Retries | None = None
    ) -> None:
        self.node = node
        self.codec = codec
        self.retries = retries or Retries()
        self.counts = Counts()
        self.runtime = runtime
        self._calls = 0
        self._open: dict[int, Promise] = {}

    def transaction(self) -> Transaction:
        """To be used in `async with`, whose end commits, unless by an exception, which aborts.

        Raises an error that is `retryable` where what was read has changed meanwhile; the block may then be run again, which
        is what `run` does.
        """
        return Transaction(self)

    async def run(self, program: Callable[[Transaction], Awaitable[Result]]) -> Result:
        """The result of a program that is called with a transaction, and again with another as often as it takes.

        Raises RetryLimit after too many tries, and whatever the program raises.
        """
        tries = 0
        while True:
            transaction = Transaction(self, tries)
            try:
                async with transaction:
                    result = await program(transaction)
            except TransactionError as error:
                tries = transaction.tries
                if not error.retryable:
                    raise
                if tries >= self.retries.tries:
                    raise RetryLimit(tries) from error
                self.counts.retries += 1
            else:
                return result

    def told(self, notice: Notice) -> None:
        """What the node answers."""
        match notice:
            case Began(call=call, t=t):
                self._keep(call, t)
            case Answered(call=call, value=value):
                self._keep(call, value)
            case Failed(call=call, error=error):
                promise = self._open.pop(call, None)
                if promise is not None:
                    promise.fail(error)

    def _keep(self, call: int, value: object) -> None:
        promise = self._open.pop(call, None)
        if promise is not None:
            promise.keep(value)

    def give_up(self, error: BaseException) -> None:
        """Nothing will be answered any more."""
        while self._open:
            self._open.popitem()[1].fail(error)

    async def ask(self, request: Request) -> Any:
        self._calls += 1
        promise = self._open[self._calls] = self.runtime.promise()
        self.runtime.perform(self.node.submit(self.runtime.now(), self._calls, request))
        return await promise

    def pause_ns(self, tries: int) -> int:
        """How long to wait before one more try, after so many."""
        if not tries:
            return 0
        longest = min(self.retries.pause_ns << min(tries - 1, 30), self.retries.pause_ns_max)
        return 1 + int(self.runtime.jitter() * longest)


class Transaction:
    """One transaction, under as many timestamps as it takes."""

    def __init__(self, store: Store, tries: int = 0) -> None:
        self._store = store
        self.tries = tries
        self._t: Timestamp | None = None
        self._did: list[tuple[str, Value, bool]] = []
        """What its program has read and written so far: key, value, and whether it was written."""

    @property
    def t(self) -> Timestamp:
        """The timestamp under which it runs now."""
        assert self._t is not None, "a transaction begins with `async with`"
        return self._t

    async def __aenter__(self) -> Transaction:
        await self._begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            await self._persist(lambda: self._store.ask(Finish(self.t, True)))
            self._store.counts.committed += 1
        elif not isinstance(error, GeneratorExit):
            # Where the coroutine itself is thrown away there is nobody left to wait for an answer.
            self._store.counts.aborted += not isinstance(error, TransactionError)
            await self._store.ask(Finish(self.t, False))

    async def read(self, key: str) -> Any:
        """The value of a key; None if there is no such key."""
        value: Value = await self._persist(lambda: self._store.ask(Get(self.t, key)))
        self._did.append((key, value, False))
        return None if value is None else self._store.codec.decode(value)

    async def write(self, key: str, value: Any) -> None:
        """Give a key a value, and create it if need be. Others see it when the transaction has committed."""
        await self._put(key, self._store.codec.encode(value))

    async def delete(self, key: str) -> None:
        """Remove a key; reads find nothing there from then on."""
        await self._put(key, None)

    async def _put(self, key: str, value: Value) -> None:
        await self._persist(lambda: self._store.ask(Put(self.t, key, value)))
        self._did.append((key, value, True))

    async def _begin(self) -> None:
        self._t = await self._store.ask(Begin(self._store.pause_ns(self.tries)))
        self.tries += 1

    async def _persist(self, ask: Callable[[], Awaitable[Any]]) -> Any:
        """Ask until it is answered well, under younger and younger timestamps."""
        again = False
        while True:
            try:
                if again:
                    await self._repeat()
                return await ask()
            except TransactionError as error:
                self._store.counts.aborted += 1
                if not error.retryable or isinstance(error, _Changed):
                    raise
                if self.tries >= self._store.retries.tries:
                    raise RetryLimit(self.tries) from error
                self._store.counts.retries += 1
                again = True

    async def _repeat(self) -> None:
        """Begin anew, and do again what was done."""
        await self._begin()
        for key, value, written in self._did:
            if written:
                await self._store.ask(Put(self.t, key, value))
            elif await self._store.ask(Get(self.t, key)) != value:
                await self._store.ask(Finish(self.t, False))
                raise _Changed(key)


class _Changed(TransactionError):
    """What the program has read is not what it would read now: the program has to decide anew."""

    retryable = True

    def __init__(self, key: str) -> None:
        super().__init__(f"{key!r} has changed since the transaction read it; run the transaction again")
