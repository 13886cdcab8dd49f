"""Every way into a live service takes a transport: whole services with their clients in memory and in virtual time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any

import msgspec
import pytest

import quire
from quire.live.network.transports.memory import MemoryNetwork
from quire.live.runs.plan import Plan
from quire.live.services.registry import SERVICES
from quire.live.services.sequencers import Connected
from quire.live.services.session import GroupMessage, Membership
from quire.live.settings import Address
from tests.kit.virtual_time import run_in_virtual_time

SEQUENCERS = ["127.0.0.1:7000", "127.0.0.1:7001"]
MEMBERS = ["127.0.0.1:7000", "127.0.0.1:7001", "127.0.0.1:7002"]
CLIENTS = 3
MESSAGES = 20
TIMEOUT_S = 10.0
LOOK_S = 1.0
"""How often a sequencer looks who is silent."""

Told = list[tuple[str, int, bytes]]


async def served(stack: AsyncExitStack, **more: Any) -> list[Connected]:
    """A service of two sequencers, and its clients, which are in the same two groups."""
    given: dict[str, Any] = {"transport": "memory", "timeout_s": TIMEOUT_S, **more}
    sequencers = [quire.serve(SEQUENCERS, me, **given) for me in range(2)]
    await asyncio.gather(*map(stack.enter_async_context, sequencers))
    clients = [quire.connect(SEQUENCERS, me=me, **given) for me in range(CLIENTS)]
    await asyncio.gather(*map(stack.enter_async_context, clients))
    for group in ("tea", "cake"):
        await clients[0].create_group(group)
        for client in clients:
            await client.join_group(group)
    return clients


async def delivered(client: Connected, count: int) -> Told:
    found: Told = []
    async for one in client:
        if isinstance(one, GroupMessage):
            found.append((one.group, one.origin, one.payload))
            if len(found) == count:
                break
    return found


async def talk(clients: Sequence[Connected]) -> list[Told]:
    """Every client sends to both groups; what each of them delivers."""
    for number in range(MESSAGES):
        for client in clients:
            await client.multicast(("tea", "cake")[number % 2], b"%d" % number)
    return await asyncio.gather(*(delivered(client, MESSAGES * CLIENTS) for client in clients))


@pytest.mark.parametrize("options", [{}, {"bodies": "direct"}], ids=["relayed", "direct"])
def test_a_sequencing_service_runs_in_memory_and_all_clients_deliver_in_the_same_order(
    options: dict[str, object],
) -> None:
    async def main() -> list[Told]:
        async with AsyncExitStack() as stack:
            return await talk(await served(stack, options=options))

    logs = run_in_virtual_time(main())
    assert len(set(logs[0])) == MESSAGES * CLIENTS
    assert logs[0] == logs[1] == logs[2]


def test_a_client_that_falls_silent_is_evicted_after_the_timeout_of_virtual_time_and_the_others_go_on() -> None:
    async def main() -> float:
        loop = asyncio.get_running_loop()
        async with AsyncExitStack() as stack:
            clients = await served(stack)
            await talk(clients)
            silent, began = clients[2], loop.time()
            MemoryNetwork.of(loop).cut_off(Address("visitor", silent.me))
            left = 0
            async for one in clients[0]:
                left += isinstance(one, Membership) and (one.change, one.who) == ("leave", silent.me)
                if left == 2:
                    break
            took_s = loop.time() - began
            await clients[0].multicast("tea", b"still here")
            assert await delivered(clients[1], 1) == [("tea", clients[0].me, b"still here")]
            with pytest.raises(quire.QuireError):
                await delivered(silent, 1)
            stack.pop_all()
            for client in clients[:2]:
                await client.__aexit__(None, None, None)
            return took_s

    began = time.perf_counter()
    took_s = run_in_virtual_time(main())
    assert TIMEOUT_S < took_s <= TIMEOUT_S + 3 * LOOK_S
    assert time.perf_counter() - began < TIMEOUT_S, "nobody waits real seconds"


class Counter(quire.Object):
    conflicts = frozenset({("add", "add")})

    def __init__(self) -> None:
        self.value = 0

    @quire.operation
    async def add(self, call: quire.Call) -> None:
        self.value += 1


PLACED = {"sold": quire.place(Counter, 0, 1, 2)}


def test_objects_run_in_memory() -> None:
    async def member(me: int) -> int:
        async with quire.join_objects("shop", me=me, members=MEMBERS, objects=PLACED, transport="memory") as group:
            await group.invoke("sold", "add")
        counter = group.objects["sold"]
        assert isinstance(counter, Counter)
        return counter.value

    async def main() -> list[int]:
        return await asyncio.gather(*map(member, range(3)))

    assert run_in_virtual_time(main()) == [3, 3, 3]


def test_a_store_runs_in_memory() -> None:
    async def increment(transaction: quire.Transaction) -> int:
        sold: int = (await transaction.read("sold") or 0) + 1
        await transaction.write("sold", sold)
        return sold

    async def process(me: int) -> list[int]:
        async with quire.join_store("shop", me=me, members=MEMBERS, replicas=1, codec=quire.JSON, transport="memory") as member:
            return [await member.store.run(increment) for _ in range(5 if me else 0)]

    async def main() -> list[list[int]]:
        return await asyncio.gather(*map(process, range(3)))

    assert sorted(number for numbers in run_in_virtual_time(main()) for number in numbers) == list(range(1, 11))


def ways_in(transport: str) -> dict[str, Callable[[], object]]:
    return {
        "join": lambda: quire.join("board", me=0, members=MEMBERS, order="total", transport=transport),
        "join_objects": lambda: quire.join_objects("shop", me=0, members=MEMBERS, objects=PLACED, transport=transport),
        "join_store": lambda: quire.join_store("shop", me=0, members=MEMBERS, replicas=2, transport=transport),
        "serve": lambda: quire.serve(SEQUENCERS, 0, transport=transport),
        "connect": lambda: quire.connect(SEQUENCERS, transport=transport),
    }


@pytest.mark.parametrize("way", ways_in(""))
def test_a_transport_that_does_not_exist_is_refused_with_those_that_do(way: str) -> None:
    with pytest.raises(quire.BadInput, match="there is no transport 'pigeon'; choose one of tcp, memory"):
        ways_in("pigeon")[way]()
    assert ways_in("memory")[way]() is not None


@pytest.mark.parametrize(("protocol", "options"), [("sequencer", {"sequencers": "1"}), ("objects", {})])
def test_processes_that_have_nothing_to_do_serve_the_others_for_longer_than_the_timeout(
    protocol: str, options: dict[str, object]
) -> None:
    plan = Plan(
        members=tuple(MEMBERS), protocol=protocol, options=options, messages=100, rate=2.0, senders=(0,), timeout_s=TIMEOUT_S
    )
    settings = [msgspec.structs.replace(plan.settings(me), transport="memory") for me in range(len(MEMBERS))]
    roles = [SERVICES[protocol].role(plan, each, None, None) for each in settings]

    async def main() -> float:
        began = asyncio.get_running_loop().time()
        await asyncio.gather(*(role.take_part() for role in roles))
        return asyncio.get_running_loop().time() - began

    assert run_in_virtual_time(main()) > 4 * TIMEOUT_S
    assert [role.sent for role in roles] == [100, 0, 0]


@pytest.mark.parametrize("replication", ["majority", "all"])
def test_a_client_of_a_store_may_leave_long_before_the_others(replication: str) -> None:
    async def process(me: int) -> int:
        options = {"replication": replication}
        written = 0
        async with quire.join_store(
            "shop", me=me, members=MEMBERS, replicas=1, transport="memory", options=options, timeout_s=TIMEOUT_S
        ) as member:
            for _ in range(100 if me == 2 else 0):
                await member.store.run(lambda t: t.write("sold", b"one more"))
                await asyncio.sleep(TIMEOUT_S / 10)
                written += 1
        return written

    async def main() -> list[int]:
        return await asyncio.gather(*map(process, range(3)))

    assert run_in_virtual_time(main()) == [0, 0, 100]
