"""Topology to leave the sequencing service, one after the other in a process of its own: none may leave a word of complaint.

Run by `test_leaving`, in asyncio's debug mode, where whatever nobody looked at is complained of when it is thrown away.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress

import quire
from quire.live.runs.fleet import free_addresses
from quire.live.services.sequencers import Connected, connect, serve
from quire.live.services.visiting import HubHost
from tests.kit.patience import PATIENCE_S


async def read(client: Connected) -> None:
    async for _ in client:
        pass


async def joined(client: Connected) -> Connected:
    await client.create_group("room")
    await client.join_group("room")
    return client


async def while_somebody_reads(address: str, _: HubHost) -> None:
    async with connect(address) as client:
        reading = asyncio.create_task(read(await joined(client)))
        await client.multicast("room", b"hello")
    await reading


async def while_somebody_reads_and_nobody_looks_after_it(address: str, _: HubHost) -> None:
    tasks = set()
    async with connect(address) as client:
        tasks.add(asyncio.create_task(read(await joined(client))))
        await client.multicast("room", b"hello")


async def by_an_exception(address: str, _: HubHost) -> None:
    with suppress(KeyError):
        async with connect(address) as client:
            reading = asyncio.create_task(read(await joined(client)))
            await asyncio.sleep(0)
            raise KeyError
    await reading


async def by_being_cancelled(address: str, _: HubHost) -> None:
    ready = asyncio.Event()

    async def work() -> None:
        async with connect(address) as client:
            await joined(client)
            ready.set()
            await read(client)

    working = asyncio.create_task(work())
    await ready.wait()
    working.cancel()
    await asyncio.wait([working])


async def while_somebody_sends(address: str, _: HubHost) -> None:
    async with connect(address) as client:
        await joined(client)

        async def send() -> None:
            with suppress(quire.QuireError):
                while True:
                    await client.multicast("room", bytes(1000))
                    await asyncio.sleep(0)

        sending = asyncio.create_task(send())
        await client.flushed()
    await sending


async def after_some_of_the_deliveries(address: str, _: HubHost) -> None:
    async with connect(address) as client:
        await joined(client)
        await client.multicast("room", b"hello")
        async for _delivery in client:
            break


async def after_waiting_in_vain(address: str, _: HubHost) -> None:
    async with connect(address) as client:
        await joined(client)
        deliveries = aiter(client)
        await anext(deliveries)
        with suppress(TimeoutError):
            await asyncio.wait_for(anext(deliveries), 0.01)


async def while_a_question_is_open(address: str, _: HubHost) -> None:
    async with connect(address) as client:
        asking = asyncio.create_task(client.find_group("nowhere"))
        await asyncio.sleep(0)
        asking.cancel()
        with suppress(quire.QuireError):
            await client.find_group("nowhere")
    async with connect(address) as client:
        asking = asyncio.create_task(client.find_group("nowhere"))
        await asyncio.sleep(0)
    await asyncio.wait([asking])
    asking.exception()


async def when_it_was_evicted(address: str, server: HubHost) -> None:
    client = connect(address)
    await client.__aenter__()
    reading = asyncio.create_task(read(await joined(client)))
    server.dismiss(client.me, "for a test")
    await asyncio.wait([reading])
    assert isinstance(reading.exception(), quire.QuireError)
    with suppress(quire.QuireError):
        await client.__aexit__(None, None, None)


async def when_the_service_has_gone(_: str, __: HubHost) -> None:
    [address] = free_addresses(1)
    async with serve([address]):
        client = connect(address, timeout_s=0.5)
        await client.__aenter__()
        reading = asyncio.create_task(read(await joined(client)))
    await asyncio.wait([reading])
    assert isinstance(reading.exception(), quire.QuireError)
    with suppress(quire.QuireError):
        await client.__aexit__(None, None, None)


async def when_there_never_was_a_service(_: str, __: HubHost) -> None:
    with suppress(quire.QuireError):
        async with connect(free_addresses(1)[0], join_s=0.2):
            pass


async def with_links_to_others(_: str, __: HubHost) -> None:
    [address] = free_addresses(1)
    options = {"bodies": "direct"}
    async with serve([address], options=options):
        async with connect(address, options=options) as one, connect(address, options=options) as other:
            await joined(one)
            reading = asyncio.create_task(read(await joined(other)))
            while not one._roster.linked:
                await asyncio.sleep(0.01)
            await one.multicast("room", b"hello")
        await reading


WAYS: list[Callable[[str, HubHost], Awaitable[None]]] = [
    while_somebody_reads,
    while_somebody_reads_and_nobody_looks_after_it,
    by_an_exception,
    by_being_cancelled,
    while_somebody_sends,
    after_some_of_the_deliveries,
    after_waiting_in_vain,
    while_a_question_is_open,
    when_it_was_evicted,
    when_the_service_has_gone,
    when_there_never_was_a_service,
    with_links_to_others,
]


async def leave(way: Callable[[str, HubHost], Awaitable[None]]) -> None:
    # A loaded machine is not what this is about.
    asyncio.get_running_loop().slow_callback_duration = 60
    [address] = free_addresses(1)
    server = serve([address])
    assert isinstance(server, HubHost)
    async with server, asyncio.timeout(PATIENCE_S):
        await way(address, server)


def main() -> None:
    logging.getLogger("quire").setLevel(logging.CRITICAL)
    for way in WAYS:
        asyncio.run(leave(way), debug=True)
        gc.collect()
        sys.stdout.write(way.__name__ + "\n")


if __name__ == "__main__":
    main()
