"""Somebody who connects to a member of a group and says whatever it likes."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec

from quire.live.network.handshake import NONCE_BYTES, Handshake
from quire.live.settings import Introduction, Settings, read_address
from quire.wire.frames import (
    ALIVE,
    INTRODUCTION,
    REFUSED,
    WELCOME,
    Reader,
    control_frame,
)
from tests.live.running import chatting, made_of, run, trusted

Addresses = Callable[[int], list[str]]
Attack = Callable[["Stranger"], Awaitable[None]]


class Stranger:
    """Somebody who has connected to a member and says whatever it likes, as the `me` it claims to be."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, settings: Settings) -> None:
        self.reader = reader
        self.writer = writer
        self.settings = settings
        self.incarnation = 42
        self.handshake = Handshake(
            initiator=True,
            me=settings.me,
            members=len(settings.members),
            peer=0,
            trust=settings.trust,
            nonce=os.urandom(NONCE_BYTES),
            secret=settings.secret,
        )
        self._frames = Reader()

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def shake_hands(self) -> None:
        self.send(self.handshake.start())
        self.send(self.handshake.receive(await self.reader.readexactly(self.handshake.wanted)))

    def introduction(self, received: int = 0, **other: object) -> bytes:
        own = Introduction(
            self.settings.group,
            self.settings.protocol,
            self.settings.options_shown(),
            tuple(map(str, self.settings.members)),
            0,
            self.incarnation,
            received,
        )
        return control_frame(INTRODUCTION, msgspec.msgpack.encode(msgspec.structs.replace(own, **other)))

    async def frame(self) -> tuple[int, bytes]:
        """The kind and the body of the next frame that is no sign of life."""
        while True:
            for frame in self._frames.frames():
                if frame.kind != ALIVE:
                    return frame.kind, bytes(frame.body)
            data = await self.reader.read(1 << 16)
            if not data:
                raise EOFError
            self._frames.feed(data)

    async def become_member(self, received: int = 0) -> None:
        await self.shake_hands()
        self.send(self.introduction(received) + control_frame(WELCOME))
        assert (await self.frame())[0] == INTRODUCTION
        assert (await self.frame())[0] == WELCOME

    async def refusal(self) -> str:
        """The reason that it is given."""
        while True:
            kind, body = await self.frame()
            if kind == REFUSED:
                return body.decode()

    async def is_gone(self) -> None:
        """Wait until the member has closed the connection."""
        with suppress(ConnectionError):
            while await self.reader.read(1 << 16):
                pass

    def leave(self) -> None:
        self.writer.transport.abort()


@asynccontextmanager
async def stranger(settings: Settings, context: ssl.SSLContext | None = None, at: str | None = None) -> AsyncIterator[Stranger]:
    address = settings.members[0] if at is None else read_address(at)
    reader, writer = await asyncio.open_connection(address.host, address.port, ssl=context)
    found = Stranger(reader, writer, settings)
    try:
        yield found
    finally:
        found.leave()


def attacked(where: list[str], attack: Attack, loop: str = "asyncio", kind: str = "open", folders: Path = Path()) -> None:
    """Let a stranger who claims to be member 2 talk to member 0 of a group that goes on, and wait until it is gone."""

    async def main() -> None:
        members = [made_of(where, me, handshake_s=0.4, **trusted(kind, folders, me)) for me in range(3)]
        async with chatting(members) as chat, stranger(members[2]) as one:
            await attack(one)
            await chat.goes_on()
            await one.is_gone()
            await chat.goes_on()

    run(main(), loop)
