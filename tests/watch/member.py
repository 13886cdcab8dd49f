"""A member of a group in a process of its own, to be watched: it sends a little all the time, and reads, or does not.

`python -m tests.watch.member NAME MEMBERS OBSERVE HOW`, with MEMBERS as JSON; HOW is `reads`, `lazy` (its application reads
nothing), or `faulty` (it delivers, by what it records, in another order than the others). It ends when its standard input does.
Where it is observed from beyond this machine, TOKEN is asked for.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import quire
from quire.trace.log import EventLog

TOKEN = "only for tests of quire"


def swap_deliveries() -> None:
    """Plant a fault: two deliveries of different members in a row change places in what is recorded."""
    honest, kept = dict[str, Any](), list[tuple[Any, ...]]()
    for name in ("deliver", "send", "view"):
        honest[name] = getattr(EventLog, name)

    def flush() -> None:
        if kept:
            honest["deliver"](*kept.pop())

    def deliver(log: EventLog, origin: int, first: int, count: int, lamport: int, *rest: Any) -> None:
        if kept and kept[0][1] != origin and lamport == kept[0][4] + kept[0][3]:
            _, before, number, size, at, *its_rest = kept.pop()
            honest["deliver"](log, origin, first, count, at, *its_rest)
            honest["deliver"](log, before, number, size, at + count, *rest)
            return
        flush()
        kept.append((log, origin, first, count, lamport, *rest))

    def after_flushing(name: str) -> Callable[..., None]:
        def record(*given: Any) -> None:
            flush()
            honest[name](*given)

        return record

    # A fault is no part of the type.
    setattr(EventLog, "deliver", deliver)  # noqa: B010
    for name in ("send", "view"):
        setattr(EventLog, name, after_flushing(name))


async def main(name: str, members: dict[str, str], observe: str, how: str) -> None:
    if how == "faulty":
        swap_deliveries()
    token = None if observe.startswith("127.") else TOKEN
    group = quire.join(
        "board", me=name, members=members, order="total", timeout_s=1.0, insecure=token is not None, observe=observe,
        observe_token=token,
    )  # fmt: skip
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(0, lambda: None if os.read(0, 1024) else ended.set())
    async with group:
        tasks = [asyncio.create_task(send(group, 4096 if how == "lazy" else 1))]
        if how != "lazy":
            tasks.append(asyncio.create_task(read(group)))
        print("in", flush=True)
        await ended.wait()
        for task in tasks:
            task.cancel()
        with suppress(quire.QuireError, TimeoutError):
            async with asyncio.timeout(1):
                await group.close()


async def send(group: quire.DynamicGroup, batch: int) -> None:
    while True:
        with suppress(quire.NoQuorum):
            await group.multicast_many([b"x" * 32] * batch)
        await asyncio.sleep(0.01)


async def read(group: quire.DynamicGroup) -> None:
    async for _ in group:
        pass


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], json.loads(sys.argv[2]), sys.argv[3], sys.argv[4]))
