"""A process of a service, to be watched: `python -m tests.watch.service WHAT ME MEMBERS OBSERVE`, with MEMBERS as JSON.

WHAT is `client` (of sequencers: it sends, and has its groups moved), `store` (two replicas come first; clients write the same
keys, and some transactions end by an error) or `objects` (a call that never ends, and others that wait for it). It ends when
its standard input does.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import suppress

import quire

REPLICAS = 2


class Counter(quire.Object):
    @quire.operation(calls=False)
    async def add(self, call: quire.Call) -> None:
        await asyncio.Event().wait()

    @quire.operation(calls=False)
    async def look(self, call: quire.Call) -> None:
        """Conflicts with everything, as all operations do of which nothing else is said."""


async def until_told_to_end() -> None:
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(0, lambda: None if os.read(0, 1024) else ended.set())
    print("in", flush=True)
    await ended.wait()


async def be_client(me: int, sequencers: list[str], observe: str) -> None:
    async with quire.connect(sequencers, me=me, observe=observe) as client:
        for group in ("tea", "coffee"):
            await client.create_group(group)
            await client.join_group(group)
        reading = asyncio.create_task(read(client))
        sending = asyncio.create_task(send(client, len(sequencers) if me == 0 else 0))
        await until_told_to_end()
        reading.cancel()
        sending.cancel()


async def read(client: quire.Connected) -> None:
    async for _ in client:
        pass


async def send(client: quire.Connected, sequencers: int) -> None:
    number = 0
    while True:
        for group in ("tea", "coffee"):
            await client.multicast(group, b"hello")
        if sequencers and number % 50 == 49:
            client.move_group("tea", number // 50 % sequencers)
        number += 1
        await asyncio.sleep(0.01)


async def be_store(me: int, members: list[str], observe: str) -> None:
    async with quire.join_store("shop", me=me, members=members, replicas=REPLICAS, observe=observe) as member:
        working = asyncio.create_task(work(member.store)) if me >= REPLICAS else None
        await until_told_to_end()
        if working is not None:
            working.cancel()


async def work(store: quire.Store) -> None:
    number = 0
    while True:
        number += 1
        with suppress(ZeroDivisionError, quire.QuireError):
            async with store.transaction() as transaction:
                await transaction.read("a")
                await transaction.write("a", b"%d" % number)
                await transaction.write("b", b"%d" % (number // (number % 5)))
        await asyncio.sleep(0.01)


async def be_objects(me: int, members: list[str], observe: str) -> None:
    placed = {"counter": quire.place(Counter, 0), "other": quire.place(Counter, 1)}
    async with quire.join_objects("calls", me=me, members=members, objects=placed, observe=observe) as group:
        waiting = [asyncio.create_task(group.invoke("counter", "add"))]
        calling = asyncio.create_task(call(group))
        await until_told_to_end()
        for each in (*waiting, calling):
            each.cancel()


async def call(group: quire.ObjectGroup) -> None:
    while True:
        await group.invoke("other", "look")
        await asyncio.sleep(0.02)


if __name__ == "__main__":
    be = {"client": be_client, "store": be_store, "objects": be_objects}[sys.argv[1]]
    asyncio.run(be(int(sys.argv[2]), json.loads(sys.argv[3]), sys.argv[4]))
