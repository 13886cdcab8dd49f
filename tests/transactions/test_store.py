"""The store as an application holds it, in virtual time: commit, abort, retries, creation and deletion of keys, codecs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from random import Random
from typing import Any

import pytest

from quire.protocols.transactions.errors import Obsolete, RetryLimit, TransactionError, TxEnded, UnknownKey
from quire.protocols.transactions.placement import Placement
from quire.protocols.transactions.processor import Processor
from quire.protocols.transactions.quorum_client import QuorumClient
from quire.protocols.transactions.quorum_replica import QuorumReplica
from quire.protocols.transactions.settings import Settings
from quire.simulation.delays import parse_delays
from quire.simulation.network import Network
from quire.simulation.transactions import add_store
from quire.simulation.world import World
from quire.transactions.codecs import JSON
from quire.transactions.store import Retries, Store, Transaction

REPLICAS, CLIENTS = 3, 4
SECOND = 1_000_000_000


class Bank:
    """Three replicas, four clients, and the programs that are to be run there."""

    def __init__(self, replication: str, placement: Placement | None = None, tries: int = 64) -> None:
        nodes = REPLICAS + CLIENTS
        self.world = World(Network(nodes, parse_delays("exponential:5", nodes), Random(1), reorder=True, loss=0.1))
        self.ended = 0
        self.failed: list[BaseException] = []
        placement = placement or Placement(REPLICAS)
        clients, draw = range(REPLICAS, nodes), Random(2).random
        for address in range(REPLICAS):
            if replication == "all":
                self.world.add(Processor(address, placement, clients, Settings(), draw), lambda _place, _notice: None)
            else:
                self.world.add(QuorumReplica(address, placement, Settings(), draw), lambda _place, _notice: None)
        self.stores: list[Store] = []
        for address in clients:
            if replication == "all":
                node: Processor | QuorumClient = Processor(address, placement, clients, Settings(), draw)
            else:
                node = QuorumClient(address, placement, Settings(), draw)
            self.stores.append(add_store(self.world, node, 3, codec=JSON, retries=Retries(tries=tries)))

    def run(self, *programs: Callable[[Store], Awaitable[Any]]) -> list[Any]:
        """The results of these programs, each at a client of its own, side by side; raises what the first one raises."""
        results: list[Any] = [None] * len(programs)
        self.ended = 0

        def start(number: int) -> None:
            store = self.stores[number]

            def done(result: Any, error: BaseException | None) -> None:
                results[number] = result if error is None else error
                self.ended += 1

            store.runtime.start(programs[number](store), done)  # type: ignore[arg-type]

        for number in range(len(programs)):
            self.world.at(self.world.now, start, number)
        assert self.world.run(self.world.now + 600 * SECOND, lambda: self.ended == len(programs))
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return results


@pytest.fixture(params=["all", "majority"])
def bank(request: pytest.FixtureRequest) -> Bank:
    return Bank(request.param)


async def deposit(store: Store, name: str, amount: int) -> None:
    async with store.transaction() as t:
        await t.write(name, amount)


def test_transfers_conserve_the_total(bank: Bank) -> None:
    names = ["alice", "bob", "carol"]

    async def open_accounts(store: Store) -> None:
        async with store.transaction() as t:
            for name in names:
                await t.write(name, 100)

    bank.run(open_accounts)

    def transfers(seed: int) -> Callable[[Store], Awaitable[None]]:
        random = Random(seed)

        async def work(store: Store) -> None:
            for _ in range(10):
                one, other = random.sample(names, 2)

                async def transfer(t: Transaction, one: str = one, other: str = other) -> None:
                    amount = random.randint(1, 10)
                    await t.write(one, await t.read(one) - amount)
                    await t.write(other, await t.read(other) + amount)

                await store.run(transfer)

        return work

    bank.run(*(transfers(seed) for seed in range(CLIENTS)))

    async def total(store: Store) -> int:
        async def add(t: Transaction) -> int:
            return sum([await t.read(name) for name in names])

        return await store.run(add)

    assert bank.run(total) == [300]
    assert sum(store.counts.retries for store in bank.stores) > 0


def test_keys_are_created_and_deleted(bank: Bank) -> None:
    async def work(store: Store) -> list[Any]:
        seen = []
        async with store.transaction() as t:
            seen.append(await t.read("new"))
            await t.write("new", {"some": "thing"})
            seen.append(await t.read("new"))
        async with store.transaction() as t:
            seen.append(await t.read("new"))
            await t.delete("new")
            seen.append(await t.read("new"))
        async with store.transaction() as t:
            seen.append(await t.read("new"))
        return seen

    assert bank.run(work) == [[None, {"some": "thing"}, {"some": "thing"}, None, None]]


async def fail(store: Store) -> None:
    with suppress(ZeroDivisionError):
        async with store.transaction() as t:
            await t.write("x", 2)
            raise ZeroDivisionError


def test_an_exception_undoes_the_transaction(bank: Bank) -> None:
    async def work(store: Store) -> Any:
        await deposit(store, "x", 1)
        await fail(store)
        async with store.transaction() as t:
            return await t.read("x")

    assert bank.run(work) == [1]
    assert bank.stores[0].counts.aborted == 1


def test_a_transaction_that_ended_is_over(bank: Bank) -> None:
    async def work(store: Store) -> None:
        async with store.transaction() as t:
            await t.write("x", 1)
        await t.read("x")

    with pytest.raises(TxEnded):
        bank.run(work)


def test_a_late_transaction_is_repeated_unless_what_it_read_has_changed() -> None:
    bank = Bank("all")

    async def late(store: Store) -> None:
        async with store.transaction() as t:
            await t.read("other")
            # Everybody else reads x under a younger timestamp meanwhile, so this write comes too late at first.
            for _ in range(5):
                await t.read("other")
            await t.write("x", 1)

    async def young(store: Store) -> None:
        for _ in range(4):
            await store.run(lambda t: t.read("x"))

    bank.run(late, young, young, young)
    assert bank.stores[0].counts.committed == 1
    assert bank.stores[0].counts.retries > 0


def test_what_cannot_be_is_said_by_a_typed_error() -> None:
    bank = Bank("all", Placement(REPLICAS, table={"x": (0, 2)}))

    async def unknown(store: Store) -> None:
        async with store.transaction() as t:
            await t.read("y")

    with pytest.raises(UnknownKey):
        bank.run(unknown)

    hopeless = Bank("all", tries=1)

    async def never(store: Store) -> None:
        async def program(t: Transaction) -> None:
            raise Obsolete("x", t.t)

        await store.run(program)

    with pytest.raises(RetryLimit) as limit:
        hopeless.run(never)
    assert isinstance(limit.value.__cause__, TransactionError)
