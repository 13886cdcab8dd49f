"""Futures for a member's own messages, in the order in which these were accepted, which is that of their delivery here."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, Generic, TypeVar

N = TypeVar("N")


class Awaited(Generic[N]):
    """Futures by message number, each with a note for the code that will complete it."""

    def __init__(self) -> None:
        self._entries: deque[tuple[int, asyncio.Future[Any], N]] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None

    def add(self, number: int, note: N) -> asyncio.Future[Any]:
        if self._loop is None:
            # All calls belong to one loop, and finding it is a system call each time.
            self._loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = self._loop.create_future()
        self._entries.append((number, future, note))
        return future

    def are_before(self, number: int) -> bool:
        """Whether there are futures for messages before this number."""
        return bool(self._entries) and self._entries[0][0] < number

    def take(self, number: int) -> tuple[asyncio.Future[Any], N] | None:
        """Take out the future for this message, the next one to be delivered, with its note; None if it was cancelled."""
        if not self._entries or self._entries[0][0] != number:
            return None
        _, future, note = self._entries.popleft()
        return None if future.done() else (future, note)

    def fail(self, error: Exception, until: int | None = None) -> None:
        """Fail the futures, all or those for messages up to this number."""
        while self._entries and (until is None or self._entries[0][0] <= until):
            _, future, _ = self._entries.popleft()
            if not future.done():
                future.set_exception(error)
