"""The ceiling of the benchmark: bare sockets with batched frames, without order, fault tolerance or authentication.

Every member is connected to every other and writes each frame (`length u32 | messages end to end`) to all of them. Its
throughput is what sockets and the event loop can achieve in Python; the question is how much of it is left with order, flow
control and repair.
"""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import Callable
from functools import partial
from typing import cast

from quire.bench.assignment import Assignment, Report
from quire.bench.load import Supply, Tally
from quire.bench.pipe import Pipe
from quire.live.settings import read_address

FRAME_BYTES = 1 << 16
BUFFER_BYTES = 1 << 19
RETRY_S = 0.02
_LENGTH = struct.Struct("!I")

Take = Callable[[int, memoryview], None]
"""A frame came from this member; its bytes are valid during the call."""


class Link(asyncio.BufferedProtocol):
    """One connection. The first frame of whoever connected says who that is."""

    def __init__(self, take: Take, peer: int | None, opened: Callable[[int, Link], None]) -> None:
        self._take = take
        self._peer = peer
        self._opened = opened
        self._view = memoryview(bytearray(BUFFER_BYTES))
        self._end = 0
        self.writable = asyncio.Event()
        self.writable.set()
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        if self._peer is not None:
            self._opened(self._peer, self)

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        return self._view[self._end :]

    def buffer_updated(self, count: int) -> None:
        view, start, end = self._view, 0, self._end + count
        while end - start >= _LENGTH.size:
            stop = start + _LENGTH.size + _LENGTH.unpack_from(view, start)[0]
            if stop > end:
                break
            frame = view[start + _LENGTH.size : stop]
            if self._peer is None:
                self._peer = int.from_bytes(frame, "big")
                self._opened(self._peer, self)
            else:
                self._take(self._peer, frame)
            start = stop
        self._end = end - start
        if start:
            view[: self._end] = view[start:end]

    def write(self, body: bytes) -> None:
        self.transport.writelines((_LENGTH.pack(len(body)), body))


async def connect(assignment: Assignment, take: Take) -> dict[int, Link]:
    """Links to all other members."""
    loop = asyncio.get_running_loop()
    links: dict[int, Link] = {}
    complete = asyncio.Event()

    def opened(peer: int, link: Link) -> None:
        links[peer] = link
        if len(links) == assignment.members - 1:
            complete.set()

    here = read_address(assignment.addresses[assignment.me])
    await loop.create_server(lambda: Link(take, None, opened), here.host, here.port)
    for peer in range(assignment.me):
        there = read_address(assignment.addresses[peer])
        link = Link(take, peer, opened)
        while True:
            try:
                await loop.create_connection(partial(lambda link: link, link), there.host, there.port)
                break
            except ConnectionRefusedError:
                await asyncio.sleep(RETRY_S)
        link.write(assignment.me.to_bytes(4, "big"))
    await complete.wait()
    return links


async def throughput(pipe: Pipe, *, objects: bool) -> None:
    """Send at full speed and take everything: frames as they are, or with one bytes object a message at both ends."""
    assignment = pipe.assignment
    tallies = tuple(Tally(assignment.size) for _ in range(assignment.members))
    supply = Supply(assignment, max(1, FRAME_BYTES // assignment.size))
    everything = asyncio.Event()

    def take(origin: int, frame: bytes | memoryview) -> None:
        if objects:
            data, size = bytes(frame), assignment.size
            tallies[origin].take_each([data[start : start + size] for start in range(0, len(data), size)])
        else:
            tallies[origin].take_together(frame)
        if all(tally.senders_done for tally in tallies):
            everything.set()

    links = await connect(assignment, take)
    await pipe.all_ready()
    for body in map(b"".join, supply.batches()) if objects else supply.packed_batches():
        for link in links.values():
            link.write(body)
        take(assignment.me, body)
        for link in links.values():
            await link.writable.wait()
        await asyncio.sleep(0)
    await everything.wait()
    pipe.report(await pipe.all_done(), supply.sent, tallies)


_ACKNOWLEDGEMENT = b"\x01"
"""Shorter than any message."""


async def latency(pipe: Pipe) -> None:
    """One member sends a message to all others, waits until all have acknowledged it, and sends the next."""
    assignment = pipe.assignment
    payload, took = bytes(assignment.size), []
    missing = 0
    all_there: asyncio.Future[None]
    links: dict[int, Link] = {}

    def take(origin: int, frame: memoryview) -> None:
        nonlocal missing
        if len(frame) != len(_ACKNOWLEDGEMENT):
            links[origin].write(_ACKNOWLEDGEMENT)
            return
        missing -= 1
        if not missing:
            all_there.set_result(None)

    links |= await connect(assignment, take)
    await pipe.all_ready()
    loop = asyncio.get_running_loop()
    for _ in range(assignment.own_round_trips()):
        began = time.perf_counter()
        missing, all_there = len(links), loop.create_future()
        for link in links.values():
            link.write(payload)
        await all_there
        took.append((time.perf_counter() - began) * 1e6)
    await pipe.all_done()
    pipe.say(Report(me=assignment.me, cpu_s=pipe.cpu_s(), round_trips_us=tuple(took)))
