"""A network that misbehaves: a proxy in front of a member that splits, stalls and cuts its connections, by a seed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass

from quire.live.settings import read_address


@dataclass(frozen=True)
class Weather:
    """What happens to the bytes that pass. A connection is cut after a random number of them, in the middle of whatever
    comes then, and every piece may be held up first."""

    cut_after_bytes: int = 0
    """On average; 0 is never."""
    spared_bytes: int = 1
    """So many always pass first."""
    stall: float = 0.0
    """The probability that a piece is held up."""
    stall_s: float = 0.02
    piece_bytes: int = 1 << 16
    """The longest piece that is passed on at once."""
    deaf: float = 0.0
    """The probability that a connection, instead of being cut, stays open while nothing passes any more."""


CALM = Weather()


class Proxy:
    """Listens at one address and passes everything on to another."""

    def __init__(self, listen: str, target: str, weather: Weather, seed: int) -> None:
        self.weather = weather
        self.cuts = 0
        self.deafened = 0
        self.connections = 0
        self.heard: list[bytearray] = []
        """What each connection has sent to the target, for whoever wants to send it again."""
        self.blocked = False
        self.flip_a_bit = False
        """Set it, and one bit of the next piece is changed."""
        self._listen = read_address(listen)
        self._target = read_address(target)
        self._chance = random.Random(seed)
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._serve, self._listen.host, self._listen.port)

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    def cut_all(self) -> None:
        """Cut whatever is connected now."""
        for task in tuple(self._tasks):
            task.cancel()
            self.cuts += 1

    def block(self) -> None:
        """Cut whatever is connected, and let nothing through until `heal`."""
        self.blocked = True
        self.cut_all()

    def heal(self) -> None:
        self.blocked = False

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        writers = [writer]
        try:
            if self.blocked:
                return
            with suppress(OSError):
                onward_reader, onward_writer = await asyncio.open_connection(self._target.host, self._target.port)
                writers.append(onward_writer)
                await self._both_ways(reader, writer, onward_reader, onward_writer)
        except asyncio.CancelledError:
            pass
        finally:
            for one in writers:
                one.transport.abort()
            self._tasks.discard(task)

    async def _both_ways(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        onward_reader: asyncio.StreamReader,
        onward_writer: asyncio.StreamWriter,
    ) -> None:
        budget = _Budget(self._chance, self.weather)
        heard = bytearray()
        self.heard.append(heard)
        directions = [
            asyncio.ensure_future(self._pass(budget, reader, onward_writer, heard)),
            asyncio.ensure_future(self._pass(budget, onward_reader, writer, bytearray())),
        ]
        try:
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for direction in directions:
                direction.cancel()
            await asyncio.gather(*directions, return_exceptions=True)

    async def _pass(
        self, budget: _Budget, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, heard: bytearray
    ) -> None:
        chance, weather = self._chance, self.weather
        while data := await reader.read(1 << 16):
            if self.flip_a_bit:
                self.flip_a_bit = False
                index = chance.randrange(len(data))
                data = data[:index] + bytes([data[index] ^ 1 << chance.randrange(8)]) + data[index + 1 :]
            while data:
                size = min(chance.randint(1, weather.piece_bytes), budget.bytes)
                if chance.random() < weather.stall:
                    await asyncio.sleep(chance.random() * weather.stall_s)
                writer.write(data[:size])
                heard += data[:size]
                budget.bytes -= len(data[:size])
                data = data[size:]
                await writer.drain()
                if budget.bytes <= 0:
                    if chance.random() < weather.deaf:
                        self.deafened += 1
                        await asyncio.Event().wait()
                    self.cuts += 1
                    return


class _Budget:
    """How many bytes a connection passes before it is cut, both ways together."""

    def __init__(self, chance: random.Random, weather: Weather) -> None:
        self.bytes = 1 << 62
        if weather.cut_after_bytes:
            self.bytes = weather.spared_bytes + round(chance.expovariate(1 / weather.cut_after_bytes))


@asynccontextmanager
async def proxies(public: Sequence[str], private: Sequence[str], weather: Weather, seed: int) -> AsyncIterator[list[Proxy]]:
    """A proxy at the public address of every member, which itself listens at a private one."""
    async with AsyncExitStack() as stack:
        found = []
        for number, (listen, target) in enumerate(zip(public, private, strict=True)):
            proxy = Proxy(listen, target, weather, seed * 1000 + number)
            await proxy.open()
            stack.push_async_callback(proxy.close)
            found.append(proxy)
        yield found
