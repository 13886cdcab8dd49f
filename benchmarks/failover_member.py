"""A member of `benchmarks.failover`, in a process of its own that has imported what an application of a group has, and no more.

A killed process is only gone for the others when its memory is taken down, and that takes longer the more it has.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from bisect import bisect_left
from collections.abc import Iterable
from contextlib import suppress
from itertools import pairwise
from typing import Any

import uvloop

import quire
from quire.live.dynamic.events import Restored, View

BATCHES_PER_S = 200
TIMEOUT_S = 1.0
CHUNK_BYTES = 1 << 20


class Ballast:
    """A state that is large, and does not change."""

    def __init__(self, megabytes: int) -> None:
        self.chunks = [os.urandom(CHUNK_BYTES)] * megabytes

    def snapshot(self) -> Iterable[bytes]:
        return self.chunks

    def restore(self, chunks: Iterable[bytes]) -> None:
        self.chunks = list(chunks)


class Part:
    """It does what its standard input says, and ends with it."""

    def __init__(self, task: dict[str, Any]) -> None:
        self.task = task
        self.state = Ballast(task["megabytes"]) if "megabytes" in task else None
        self.times: list[float] = []
        self.counts: list[int] = []

    async def run(self) -> None:
        task = self.task
        place = {"at": task["at"], "contact": task["contact"]} if "at" in task else {"members": task["members"]}
        began = time.monotonic()
        place["insecure"] = task["insecure"]  # Nobody else is on a network of their own.
        group = quire.join("failover", me=task["me"], order="total", state=self.state, timeout_s=TIMEOUT_S, **place)
        obeying = asyncio.create_task(self.obey())  # From the beginning: it ends when whoever started it has ended.
        async with group:
            say(joined=time.monotonic() - began)
            sending = asyncio.create_task(self.send(group))
            await self.read(group)
            sending.cancel()
            obeying.cancel()

    async def send(self, group: Any) -> None:
        batch = [bytes(64)] * max(1, self.task["rate"] // BATCHES_PER_S)
        while True:
            began = time.monotonic()
            with suppress(quire.NoQuorum):
                await group.multicast_many(batch)
            await asyncio.sleep(max(0.0, 1 / BATCHES_PER_S - (time.monotonic() - began)))

    async def read(self, group: Any) -> None:
        delivered = 0
        async for event in group.events():
            if isinstance(event, View):
                say(view=event.members, at=time.monotonic())
            elif isinstance(event, Restored):
                say(restored=time.monotonic())
            else:
                delivered += 1
                now = time.monotonic()
                if self.times and self.times[-1] == now:
                    self.counts[-1] = delivered
                else:
                    self.times.append(now)
                    self.counts.append(delivered)

    async def obey(self) -> None:
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := await reader.readline():
            start, stop = json.loads(line)
            first, last = bisect_left(self.times, start), bisect_left(self.times, stop)
            inside = [start, *self.times[first:last], stop]
            pause = max(after - before for before, after in pairwise(inside))
            count = self.counts[last - 1] - self.counts[first] if last > first else 0
            say(pause_ms=pause * 1e3, count=count)
        os._exit(0)


def say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    uvloop.run(Part(json.loads(sys.argv[1])).run())
