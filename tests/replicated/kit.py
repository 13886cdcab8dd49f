"""Boards to try things on, and groups of them in one process, in virtual time and over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar

import quire
from quire.live import Group
from tests.kit.virtual_time import run_in_virtual_time
from tests.live.running import made_of

T = TypeVar("T")


class Board(quire.Replicated):
    items: dict[str, int]
    log: list[str]
    lists: dict[str, list[int]]
    puts: int = 0

    @quire.command
    def put(self, key: str, value: int) -> int:
        """Negative values fail after everything was changed."""
        self.items[key] = value
        self.log.append(key)
        self.lists.setdefault(key, []).append(value)
        self.puts += 1
        if value < 0:
            raise ValueError(f"{key} may not be {value}")
        return len(self.items)

    @quire.command
    def remove(self, key: str) -> int:
        self.lists.pop(key, None)
        return self.items.pop(key)

    @quire.command
    def add(self, key: str, value: int = 1) -> int:
        self.items[key] = self.items.get(key, 0) + value
        return self.items[key]

    @quire.command
    def when(self) -> tuple[int, float]:
        return self.context.member, self.context.now

    @quire.query
    def get(self, key: str) -> int | None:
        return self.items.get(key)

    @quire.query
    def everything(self) -> dict[str, int]:
        return self.items


class Tape:
    """A state that is no Replicated."""

    def __init__(self) -> None:
        self.payloads: list[bytes] = []

    def apply(self, payload: bytes, context: quire.Context) -> int:
        if payload == b"bad":
            raise ValueError("bad")
        self.payloads.append(payload)
        return len(self.payloads)

    def snapshot(self) -> list[bytes]:
        return list(self.payloads)

    def restore(self, chunks: Any) -> None:
        self.payloads = list(chunks)


def member(me: int, state: quire.State | Mapping[str, quire.State] | None, members: int = 3, **chosen: Any) -> Group:
    """A member of a group that talks through memory."""
    where = [f"127.0.0.1:{7000 + number}" for number in range(members)]
    return Group(made_of(where, me, transport="memory", **chosen), state=state)


@asynccontextmanager
async def all_in(groups: Sequence[Group]) -> AsyncIterator[Sequence[Group]]:
    """All of them joined, and closed at the end."""
    async with AsyncExitStack() as stack:
        await asyncio.gather(*(stack.enter_async_context(group) for group in groups))
        yield groups
        await asyncio.gather(*(group.close() for group in groups))


def with_boards(use: Callable[[Sequence[Board], Sequence[Group]], Coroutine[Any, Any, T]], members: int = 3) -> T:
    """Run this with a group of boards in virtual time; afterwards all boards are equal."""

    async def main() -> T:
        boards = [Board() for _ in range(members)]
        async with all_in([member(me, board, members) for me, board in enumerate(boards)]) as groups:
            result = await use(boards, groups)
        assert len({board.digest() for board in boards}) == 1
        return result

    return run_in_virtual_time(main())
