"""The store as a client sees it: transactions that are retried automatically as long as that can help.

A transaction that came too late is retried under a younger timestamp: at once where keys are reserved for it, otherwise after a
random pause. `run` calls its program again. For `async with`, the reads and writes of the block so far are repeated
transparently: as long as every read gives the same value the block cannot tell the difference, and if one has changed, it gets
an error.

No call waits for ever: if the replicas do not answer in time it raises NoQuorum, or OutcomeUnknown if it may have been done.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, TypeVar

import msgspec

from quire.model.errors import BadInput, NoQuorum, TooLarge
from quire.model.payloads import PAYLOAD_BYTES_MAX, as_bytes
from quire.objects.runtime import Promise, Runtime
from quire.protocols.node import Notice
from quire.protocols.transactions.cells import Value
from quire.protocols.transactions.errors import ReadChanged, RetryLimit, TransactionError
from quire.protocols.transactions.notices import Answered, Began, Failed
from quire.protocols.transactions.processor import Processor
from quire.protocols.transactions.quorum_client import QuorumClient
from quire.protocols.transactions.requests import Begin, Finish, Get, Put, Request
from quire.protocols.transactions.settings import MILLISECOND
from quire.protocols.transactions.timestamps import Timestamp
from quire.transactions.codecs import BYTES, Codec

Result = TypeVar("Result")


class Retries(msgspec.Struct, frozen=True, kw_only=True):
    """How often a transaction is tried, and the longest pause before the second try, which doubles with each further one."""

    tries: int = 16
    pause_ns: int = 20 * MILLISECOND
    pause_ns_max: int = 1000 * MILLISECOND


class Counts(msgspec.Struct):
    """How many transactions of a store's client have ended in which way so far."""

    committed: int = 0
    aborted: int = 0
    """Transactions that ended without effect, including those that were then retried."""
    retries: int = 0


class Store:
    """A client of replicated keys. It may have any number of transactions at a time."""

    def __init__(
        self,
        node: Processor | QuorumClient,
        runtime: Runtime,
        *,
        timeout_s: float,
        codec: Codec = BYTES,
        retries: Retries | None = None,
    ) -> None:
        self.node = node
        self.codec = codec
        self.retries = retries or Retries()
        self.timeout_s = timeout_s
        """How long a call may take by default."""
        self.counts = Counts()
        self.reasons: dict[str, int] = {}
        """Why transactions were aborted, and how often."""
        self.runtime = runtime
        self._calls = 0
        self._open: dict[int, Promise] = {}
        self._over: BaseException | None = None
        """Why no request is answered any more."""

    def transaction(self, *, timeout_s: float | None = None) -> Transaction:
        """A transaction for `async with`: the end of the block commits it, an exception aborts it.

        `timeout_s` applies to the whole block; without it, each call may take as long as any call of the store. Raises
        NoQuorum if too few replicas answer in time; OutcomeUnknown if that happens at the commit; and a `retryable` error if
        what was read has changed: the block may then be run again, which is what `run` does.
        """
        return Transaction(self, None if timeout_s is None else self.until_ns(timeout_s))

    async def run(self, program: Callable[[Transaction], Awaitable[Result]], *, timeout_s: float | None = None) -> Result:
        """Call a program with a transaction, again with a new one as often as necessary, and return its result.

        `timeout_s` applies to everything together; without it, each call of the program may take as long as any call of the
        store. Raises RetryLimit after too many tries, NoQuorum and OutcomeUnknown like `transaction`, and whatever the
        program raises.
        """
        until_ns = None if timeout_s is None else self.until_ns(timeout_s)
        transaction = Transaction(self, until_ns, comes_again=True)
        while True:
            try:
                async with transaction:
                    result = await program(transaction)
            except TransactionError as error:
                if not error.retryable:
                    raise
                time_is_up = until_ns is not None and self.runtime.now() >= until_ns
                if time_is_up or transaction.tries >= self.retries.tries:
                    await self.withdraw(transaction.t)
                    if time_is_up and isinstance(error, NoQuorum):
                        raise
                    raise RetryLimit(transaction.tries, error) from error
                self.counts.retries += 1
                transaction = Transaction(self, until_ns, transaction.tries, transaction.t, comes_again=True)
            else:
                return result

    def on_notice(self, notice: Notice) -> None:
        """Handle an answer of the node."""
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
        """No request, current or later, will be answered: all raise this error."""
        self._over = error
        while self._open:
            self._open.popitem()[1].fail(error)

    def aborted(self, why: BaseException | None) -> None:
        """A transaction has ended without effect."""
        self.counts.aborted += 1
        name = type(why).__name__
        self.reasons[name] = self.reasons.get(name, 0) + 1

    async def withdraw(self, t: Timestamp, *, again: bool = False) -> None:
        """End a transaction without effect. If requests are no longer answered, this raises nothing: the transaction has no
        effect anyway, and the error that made the caller give up is more useful."""
        try:
            await self.ask(Finish(t, False, again=again))
        except BaseException as error:
            if error is not self._over:
                raise

    async def ask(self, request: Request) -> Any:
        if self._over is not None:
            raise self._over
        self._calls += 1
        promise = self._open[self._calls] = self.runtime.promise()
        self.runtime.perform(self.node.submit(self.runtime.now(), self._calls, request))
        return await promise

    def until_ns(self, timeout_s: float | None) -> int:
        """The deadline of a call that begins now and may take this long, or the default time."""
        seconds = self.timeout_s if timeout_s is None else timeout_s
        if not seconds > 0:
            raise BadInput(f"timeout_s must be more than 0 seconds, not {seconds}")
        return self.runtime.now() + int(seconds * 1_000_000_000)

    def pause_ns(self, tries: int) -> int:
        """How long to wait before the next try, after this many."""
        if not tries:
            return 0
        longest = min(self.retries.pause_ns << min(tries - 1, 30), self.retries.pause_ns_max)
        return 1 + int(self.runtime.jitter() * longest)


class Transaction:
    """One transaction, under as many timestamps as it takes. `refused`: the refused transaction that it replaces, after this
    many tries. `comes_again`: whether the caller retries it if that may help."""

    def __init__(
        self,
        store: Store,
        until_ns: int | None = None,
        tries: int = 0,
        refused: Timestamp | None = None,
        *,
        comes_again: bool = False,
    ) -> None:
        self._store = store
        self._until_ns = until_ns
        self.tries = tries
        self._t = refused
        self._comes_again = comes_again
        self._committed = False
        self._did: list[tuple[str, Value, bool]] = []
        """What its program has read and written so far: key, value, and whether it was written."""
        self._sizes: dict[str, int] = {}
        self._bytes = 0
        """How much it writes, by key and in all."""

    @property
    def t(self) -> Timestamp:
        """Its current timestamp."""
        assert self._t is not None, "a transaction begins with `async with`"
        return self._t

    async def __aenter__(self) -> Transaction:
        await self._begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and not self._committed:
            await self.commit()
        elif kind is not None and not isinstance(error, GeneratorExit):
            # If the coroutine itself is being discarded, nobody is left to wait for an answer.
            if not isinstance(error, TransactionError):
                self._store.aborted(error)
            again = self._comes_again and isinstance(error, TransactionError) and error.retryable
            await self._store.withdraw(self.t, again=again)

    async def read(self, key: str, *, timeout_s: float | None = None) -> Any:
        """The value of a key; None if the key does not exist."""
        value: Value = await self._persist(lambda until_ns: self._store.ask(Get(self.t, key, until_ns)), timeout_s)
        self._did.append((key, value, False))
        return None if value is None else self._store.codec.decode(value)

    async def write(self, key: str, value: Any, *, timeout_s: float | None = None) -> None:
        """Set the value of a key, creating it if necessary. Others see it when the transaction is committed.

        Raises BadInput if the codec does not return bytes, and TooLarge if the transaction would write too much.
        """
        await self._put(key, as_bytes(self._store.codec.encode(value), "an encoded value"), timeout_s)

    async def delete(self, key: str, *, timeout_s: float | None = None) -> None:
        """Delete a key: reads find nothing there from then on."""
        await self._put(key, None, timeout_s)

    async def commit(self, *, timeout_s: float | None = None) -> None:
        """Commit before the block ends; the end of the block then does nothing."""
        await self._persist(lambda until_ns: self._store.ask(Finish(self.t, True, until_ns)), timeout_s)
        self._committed = True
        self._store.counts.committed += 1

    async def _put(self, key: str, value: Value, timeout_s: float | None) -> None:
        # All writes of a transaction are decided at once, and sent together.
        size = len(key.encode()) + len(value or b"")
        total = self._bytes - self._sizes.get(key, 0) + size
        if total > PAYLOAD_BYTES_MAX:
            raise TooLarge("what a transaction writes", total, PAYLOAD_BYTES_MAX)
        await self._persist(lambda until_ns: self._store.ask(Put(self.t, key, value, until_ns)), timeout_s)
        self._did.append((key, value, True))
        self._sizes[key], self._bytes = size, total

    async def _begin(self) -> None:
        self._t = await self._store.ask(Begin(self._store.pause_ns(self.tries), self._t))
        self.tries += 1

    async def _persist(self, ask: Callable[[int], Awaitable[Any]], timeout_s: float | None) -> Any:
        """Ask until it succeeds, under ever younger timestamps, or until the time is up."""
        until_ns = self._store.until_ns(timeout_s)
        until_ns = until_ns if self._until_ns is None else min(until_ns, self._until_ns)
        again = False
        while True:
            try:
                if again:
                    await self._repeat(until_ns)
                return await ask(until_ns)
            except TransactionError as error:
                self._store.aborted(error)
                hopeless = not error.retryable or isinstance(error, ReadChanged)
                if hopeless or self._comes_again or self._store.runtime.now() >= until_ns:
                    raise
                if self.tries >= self._store.retries.tries:
                    raise RetryLimit(self.tries, error) from error
                self._store.counts.retries += 1
                again = True

    async def _repeat(self, until_ns: int) -> None:
        """Start again under a new timestamp, and repeat all reads and writes so far."""
        await self._begin()
        for key, value, written in self._did:
            if written:
                await self._store.ask(Put(self.t, key, value, until_ns))
            elif await self._store.ask(Get(self.t, key, until_ns)) != value:
                await self._store.withdraw(self.t)
                raise ReadChanged(key)
