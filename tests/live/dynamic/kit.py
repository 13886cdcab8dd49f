"""Groups whose members change, within one event loop: over memory in virtual time, or over sockets of this machine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any

import quire
from quire.live.dynamic.events import GroupEvent
from quire.live.network.transports.memory import MemoryNetwork
from quire.live.runs.fleet import free_addresses
from quire.live.settings import read_address
from tests.kit.patience import PATIENCE_S
from tests.kit.virtual_time import run_in_virtual_time

WAYS = ("memory", "tcp")


def run(way: str, main: Coroutine[Any, Any, None]) -> None:
    if way == "memory":
        run_in_virtual_time(asyncio.wait_for(main, 100_000))
    else:
        asyncio.run(asyncio.wait_for(main, PATIENCE_S))


def places(way: str, names: Iterable[str]) -> dict[str, str]:
    """An address for each."""
    names = list(names)
    if way == "memory":
        return {name: f"127.0.0.1:{7000 + number}" for number, name in enumerate(names)}
    return dict(zip(names, free_addresses(len(names)), strict=True))


class Member:
    """A group and everything that it told its application, as it comes."""

    def __init__(self, group: quire.DynamicGroup) -> None:
        self.group = group
        self.events: list[GroupEvent] = []
        self.view: quire.View | None = None
        """The last that it was told of, after everything that was delivered before."""
        self.error: BaseException | None = None
        self._news = asyncio.Event()
        self.reading = asyncio.get_running_loop().create_task(self._read())

    async def _read(self) -> None:
        try:
            async for event in self.group.events():
                self.events.append(event)
                self.view = event if isinstance(event, quire.View) else self.view
                self._news.set()
        except quire.QuireError as error:
            self.error = error
        finally:
            self._news.set()

    @property
    def payloads(self) -> list[bytes]:
        return [event.payload for event in self.events if isinstance(event, quire.ViewMessage)]

    @property
    def order(self) -> list[tuple[str, int]]:
        return [(event.origin, event.seq) for event in self.events if isinstance(event, quire.ViewMessage)]

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    async def until(self, condition: Callable[[Member], bool]) -> None:
        """Return when this is so."""
        while not condition(self):
            if self.reading.done():
                raise AssertionError(f"{self.group.me} has ended, with {self.error!r}, after {self.events[-5:]}")
            self._news.clear()
            await self._news.wait()

    async def has(self, *payloads: bytes) -> None:
        await self.until(lambda member: set(payloads) <= set(member.payloads))

    async def is_in(self, *names: str) -> None:
        """Return when exactly these are in the view, and its application was told so."""

        def is_so(member: Member) -> bool:
            return member.view is not None and member.view == member.group.view and set(member.view.members) == set(names)

        await self.until(is_so)

    async def told(self, kind: type) -> None:
        await self.until(lambda member: bool(member.of(kind)))


@asynccontextmanager
async def together(groups: Iterable[quire.DynamicGroup]) -> AsyncIterator[dict[str, Member]]:
    """Members that come at the same time; at the end whoever is left goes without a word."""
    groups = list(groups)
    entering = [asyncio.ensure_future(group.__aenter__()) for group in groups]
    try:
        await asyncio.gather(*entering)
        members = {group.me: Member(group) for group in groups}
        await asyncio.sleep(0)  # They begin to read.
        yield members
    finally:
        for each in entering:
            each.cancel()
        for group in groups:
            await crash(group)


@asynccontextmanager
async def founded(way: str, names: str = "abc", **chosen: Any) -> AsyncIterator[dict[str, Member]]:
    settings: dict[str, Any] = {"order": "total", "transport": way} | chosen
    if "protocol" in settings:
        del settings["order"]
    where = places(way, names)
    async with together(quire.join("test", me=name, members=where, **settings) for name in names) as members:
        yield members


async def crash(group: quire.DynamicGroup) -> None:
    """Have a member end as a process does that is killed: its connections end, and nobody listens at its address."""
    with suppress(quire.QuireError):
        await group.__aexit__(RuntimeError, RuntimeError(), None)


def cut_off(address: str) -> None:
    """Nothing more arrives from or at whoever is there, and nobody is told."""
    MemoryNetwork.of(asyncio.get_running_loop()).cut_off(read_address(address))


def part(one: str, other: str) -> None:
    """Nothing more arrives from either at the other."""
    MemoryNetwork.of(asyncio.get_running_loop()).part(read_address(one), read_address(other))


def mend(address: str) -> None:
    MemoryNetwork.of(asyncio.get_running_loop()).mend(read_address(address))


async def talk(members: Iterable[Member], stop: asyncio.Event, pause_s: float = 0.001) -> dict[str, int]:
    """Have each send one message after the other until it is told to stop; returns how many each has sent."""

    async def one(member: Member) -> int:
        count = 0
        while not stop.is_set():
            await member.group.multicast(f"{member.group.me}:{count}".encode())
            count += 1
            await asyncio.sleep(pause_s)
        return count

    members = list(members)
    counts = await asyncio.gather(*(one(member) for member in members))
    return {member.group.me: count for member, count in zip(members, counts, strict=True)}


Act = Callable[[dict[str, Member]], Awaitable[None]]
