"""Stores whose replicas are out of reach for a while: calls end in time, a loss is told once, who is heard is taken back."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import pytest

import quire
from quire.live.events import Event
from quire.live.network.transports.memory import MemoryNetwork
from quire.live.runs.fleet import free_addresses
from quire.protocols.transactions.errors import CommitUnknown, NoReplicaQuorum
from tests.kit.patience import PATIENCE_S
from tests.kit.virtual_time import run_in_virtual_time
from tests.live.proxy import CALM, Proxy, proxies
from tests.transactions.test_live import REPLICAS, bank

CLIENT = REPLICAS
TIMEOUT_S = 1.0
LOADED_S = 20.0
"""A deadline of a second on a machine that has much else to do."""


class Outage:
    """A store of three replicas and a client, each behind a proxy of its own, and what the client's process reported."""

    def __init__(self, ways: list[Proxy], client: quire.StoreMember, events: list[Event], news: asyncio.Event) -> None:
        self.ways = ways
        self.client = client
        self.store = client.store
        self._events = events
        self._news = news

    def cut(self, *replicas: int) -> None:
        for replica in replicas:
            self.ways[replica].block()

    def heal(self) -> None:
        for way in self.ways:
            way.heal()

    def seen(self, *kinds: str) -> list[tuple[str, int | str]]:
        return [(event.kind, peer) for event in self._events for peer in event.peers if event.kind in kinds]

    async def until(self, kind: str, *peers: int) -> None:
        """Return when the client's process has reported this of all these peers."""
        while not {(kind, peer) for peer in peers} <= set(self.seen(kind)):
            self._news.clear()
            await self._news.wait()


@asynccontextmanager
async def outage(join_s: float = 30.0) -> AsyncIterator[Outage]:
    """Replicas serve in tasks of their own until the block has ended."""
    public, private = free_addresses(REPLICAS + 1), free_addresses(REPLICAS + 1)
    events, news = list[Event](), asyncio.Event()

    def listen(event: Event) -> None:
        events.append(event)
        news.set()

    def member(me: int) -> quire.StoreMember:
        return quire.join_store(
            "outage", me=me, members=public, replicas=REPLICAS, listen=private[me], timeout_s=TIMEOUT_S, join_s=join_s,
            on_event=listen if me == CLIENT else None,
        )  # fmt: skip

    async def serve(me: int) -> None:
        async with member(me):
            pass

    async with AsyncExitStack() as stack:
        ways = await stack.enter_async_context(proxies(public, private, CALM, 1))
        replicas = [asyncio.create_task(serve(me)) for me in range(REPLICAS)]
        async with member(CLIENT) as client:
            yield Outage(ways, client, events, news)
        await asyncio.gather(*replicas)


def run(act: Callable[[Outage], Awaitable[None]], join_s: float = 30.0) -> None:
    async def main() -> None:
        async with outage(join_s) as cut:
            await act(cut)

    asyncio.run(asyncio.wait_for(main(), PATIENCE_S))


async def put(store: quire.Store, key: str, value: bytes) -> None:
    async with store.transaction() as t:
        await t.write(key, value)


async def get(store: quire.Store, key: str, timeout_s: float | None = None) -> bytes | None:
    async with store.transaction(timeout_s=timeout_s) as t:
        found: bytes | None = await t.read(key)
        return found


def test_a_client_without_a_majority_is_told_in_time_and_goes_on_when_the_partition_heals() -> None:
    async def act(cut: Outage) -> None:
        await put(cut.store, "x", b"1")
        cut.cut(1, 2)
        began = time.monotonic()
        with pytest.raises(NoReplicaQuorum, match=r"no answer from 1, 2.*run the transaction again"):
            await get(cut.store, "x")
        assert time.monotonic() - began < LOADED_S
        await cut.until("lost", 1, 2)
        with pytest.raises(NoReplicaQuorum):
            await put(cut.store, "x", b"2")
        assert cut.client.lost == {1, 2}
        assert cut.seen("recovered") == []
        cut.heal()
        await cut.until("recovered", 1, 2)
        assert cut.client.lost == set()
        await put(cut.store, "x", b"3")
        assert await get(cut.store, "x") == b"3"
        assert sorted(cut.seen("lost")) == [("lost", 1), ("lost", 2)]

    run(act)


def test_replicas_that_lost_every_client_wait_for_them_and_serve_them_again() -> None:
    async def act(cut: Outage) -> None:
        await put(cut.store, "x", b"1")
        cut.cut(0, 1, 2)
        await cut.until("lost", 0, 1, 2)
        with pytest.raises(NoReplicaQuorum):
            await get(cut.store, "x")
        cut.heal()
        await cut.until("recovered", 0, 1, 2)
        assert await get(cut.store, "x") == b"1"

    run(act)


def test_a_commit_that_no_majority_answers_has_an_unknown_outcome_that_can_be_read_later() -> None:
    async def act(cut: Outage) -> None:
        async def program(t: quire.Transaction) -> None:
            await t.write("x", b"1")
            cut.cut(1, 2)
            await t.commit(timeout_s=TIMEOUT_S / 2)

        with pytest.raises(CommitUnknown, match="read what it wrote"):
            await cut.store.run(program)
        cut.heal()
        await cut.until("connected", 1, 2)
        with suppress(NoReplicaQuorum):  # A read has to wait for the replicas to decide.
            assert await get(cut.store, "x") in (None, b"1")

    run(act)


async def read_in_time(t: quire.Transaction) -> None:
    await t.read("x", timeout_s=0.1)


WAYS: dict[str, Callable[[quire.Store], Awaitable[object]]] = {
    "read": lambda store: store.run(read_in_time),
    "transaction": lambda store: get(store, "x", timeout_s=0.1),
    "run": lambda store: store.run(lambda t: t.read("x"), timeout_s=0.1),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_call_may_have_a_deadline_of_its_own(way: str) -> None:
    async def act(cut: Outage) -> None:
        cut.store.timeout_s = 1000.0
        cut.cut(1, 2)
        began = time.monotonic()
        with pytest.raises(NoReplicaQuorum):
            await WAYS[way](cut.store)
        assert time.monotonic() - began < LOADED_S
        cut.heal()
        await cut.until("connected", 1, 2)

    run(act)


def test_a_dead_replica_is_lost_once_and_has_never_recovered() -> None:
    async def main() -> None:
        addresses, events = free_addresses(REPLICAS + 1), list[Event]()
        died = asyncio.Event()

        async def serve(me: int) -> None:
            with suppress(ConnectionError):
                async with quire.join_store("dying", me=me, members=addresses, replicas=REPLICAS, timeout_s=TIMEOUT_S):
                    if me == 2:
                        await died.wait()
                        raise ConnectionError

        replicas = [asyncio.create_task(serve(me)) for me in range(REPLICAS)]
        client = quire.join_store(
            "dying", me=CLIENT, members=addresses, replicas=REPLICAS, timeout_s=TIMEOUT_S, on_event=events.append
        )
        async with client:
            died.set()
            while "lost" not in {event.kind for event in events}:
                await put(client.store, "x", b"1")
            until = time.monotonic() + 2 * TIMEOUT_S
            while time.monotonic() < until:
                await put(client.store, "x", b"2")
        await asyncio.gather(*replicas)
        about_it = [event.kind for event in events if event.peers == (2,) and event.kind in ("stalled", "lost", "recovered")]
        assert about_it == ["lost"], "it says itself that it leaves, and nobody has to find out"

    asyncio.run(asyncio.wait_for(main(), PATIENCE_S))


@asynccontextmanager
async def all_must_agree() -> AsyncIterator[tuple[quire.StoreMember, asyncio.Event]]:
    """A client of two replicas that must both agree, in memory, and what has one of them leave without a word of goodbye."""
    addresses, leave = ["127.0.0.1:7000", "127.0.0.1:7001", "127.0.0.1:7002"], asyncio.Event()

    def member(me: int) -> quire.StoreMember:
        options = {"replication": "all"}
        return quire.join_store("all", me=me, members=addresses, replicas=2, transport="memory", options=options)

    async def serve(me: int) -> None:
        with suppress(ConnectionError, quire.NotDelivered):
            async with member(me):
                if me == 1:
                    await leave.wait()
                    raise ConnectionError

    replicas = [asyncio.create_task(serve(me)) for me in range(2)]
    client = await member(2).__aenter__()
    await put(client.store, "x", b"1")
    yield client, leave
    with pytest.raises(quire.NotDelivered):
        await client.__aexit__(None, None, None)
    await asyncio.gather(*replicas)


async def write_for_ever(t: quire.Transaction) -> None:
    while True:
        await t.write("x", b"2")


async def read_for_ever(store: quire.Store) -> None:
    """At one replica or the other."""
    while True:
        await store.run(lambda t: t.read("x"), timeout_s=0.1)


async def error_of(call: Awaitable[object]) -> BaseException | None:
    """What a call raises, which must not wait for ever."""
    calling = asyncio.ensure_future(call)
    await asyncio.wait([calling], timeout=PATIENCE_S)
    assert calling.done()
    return calling.exception()


def test_where_all_must_agree_every_call_after_a_loss_says_that_the_store_has_failed() -> None:
    async def main() -> None:
        async with all_must_agree() as (client, leave):
            opened = client.store.transaction()
            await opened.__aenter__()
            leave.set()
            lost = await error_of(write_for_ever(opened))
            assert isinstance(lost, quire.GroupFailed)
            assert "member 1" in str(lost)
            assert await error_of(opened.commit()) is lost
            for _ in range(2):
                assert await error_of(put(client.store, "x", b"3")) is lost
                assert await error_of(client.store.run(lambda t: t.read("x"))) is lost

    run_in_virtual_time(main())


def test_what_a_block_raises_comes_out_of_it_when_the_store_has_failed_meanwhile() -> None:
    async def main() -> None:
        async with all_must_agree() as (client, leave):

            async def divide(t: quire.Transaction) -> None:
                await t.write("x", b"2")
                leave.set()
                await client._host.until_ended()
                raise ZeroDivisionError

            with pytest.raises(ZeroDivisionError):
                await client.store.run(divide)

    run_in_virtual_time(asyncio.wait_for(main(), PATIENCE_S))


def test_where_all_must_agree_a_call_that_not_all_answer_in_time_says_who_did_not() -> None:
    """The others have not noticed yet that anybody is lost."""

    async def main() -> None:
        async with all_must_agree() as (client, leave):
            network, replica = MemoryNetwork.of(asyncio.get_running_loop()), client.settings.members[1]
            network.cut_off(replica)
            with pytest.raises(
                NoReplicaQuorum, match="not all of the replicas of 'x' answered in time; no answer from 1,"
            ) as e:
                await client.store.run(lambda t: t.write("x", b"2"), timeout_s=1)
            assert e.value.silent == (1,)
            with pytest.raises(quire.NoQuorum, match="replica 1 did not answer a read of 'x' in time"):
                await read_for_ever(client.store)
            network.mend(replica)
            await put(client.store, "x", b"3")
            leave.set()

    run_in_virtual_time(asyncio.wait_for(main(), PATIENCE_S))


def test_a_majority_that_was_stopped_and_goes_on_is_used_again() -> None:
    with bank() as processes:
        teller = processes[REPLICAS]
        teller.type("open alice 100")
        assert teller.line() == "alice has 100"
        for stopped in processes[1:REPLICAS]:
            os.kill(stopped.process.pid, signal.SIGSTOP)
        began = time.monotonic()
        teller.type("show alice")
        assert "no majority of the replicas of 'alice' answered in time" in teller.line()
        assert time.monotonic() - began < LOADED_S
        teller.type("show alice")  # By now they count as lost.
        assert "no majority" in teller.line()
        for stopped in processes[1:REPLICAS]:
            os.kill(stopped.process.pid, signal.SIGCONT)
        answer, until = "no majority", time.monotonic() + LOADED_S
        while "no majority" in answer and time.monotonic() < until:
            teller.type("show alice")
            answer = teller.line()
        assert answer == "alice has 100"
        for each in processes[REPLICAS:]:
            each.type("quit")
        for process in processes:
            process.process.communicate(timeout=PATIENCE_S)
            assert process.process.returncode == 0
