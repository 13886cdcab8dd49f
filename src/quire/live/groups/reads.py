"""Batches reads into rounds: one round serves all reads that began before it, and reads that come meanwhile share the next.

The caller provides the round: an operation after which this member has everything that was executed anywhere before it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


class Reads:
    def __init__(self, make_round: Callable[[], Awaitable[object]]) -> None:
        self._make_round = make_round
        self._next: list[asyncio.Future[None]] = []
        self._rounds: asyncio.Task[None] | None = None

    def barrier(self) -> asyncio.Future[None]:
        """Done when a round has ended that began after this call."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._next.append(waiter)
        if self._rounds is None:
            self._rounds = asyncio.get_running_loop().create_task(self._make_rounds())
        return waiter

    async def _make_rounds(self) -> None:
        try:
            while self._next:
                waiters, self._next = self._next, []
                try:
                    await self._make_round()
                except Exception as error:  # noqa: BLE001 - It is for those who wait.
                    for waiter in _waiting(waiters):
                        waiter.set_exception(error)
                else:
                    for waiter in _waiting(waiters):
                        waiter.set_result(None)
        finally:
            self._rounds = None


def _waiting(waiters: list[asyncio.Future[None]]) -> list[asyncio.Future[None]]:
    return [waiter for waiter in waiters if not waiter.done()]
