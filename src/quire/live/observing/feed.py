"""The event feed of a process: events are numbered, the last of them kept, and all sent at once to listeners.

No listener is waited for: one that falls behind by more than is kept misses some events, and sees that from the numbers.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator

import msgspec

from quire.live import clock

KEPT = 1024


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    time_ns: int
    kind: str
    """The kind of an Event, or view, blocked, unblocked, excluded, restored, ended."""
    peers: tuple[str, ...] = ()
    for_s: float = 0.0
    why: str = ""
    view: int | None = None


class Feed:
    def __init__(self) -> None:
        self._kept: deque[Observation] = deque(maxlen=KEPT)
        self._next = 0
        self._more = asyncio.Event()

    def tell(
        self, kind: str, peers: tuple[str, ...] = (), *, for_s: float = 0.0, why: str = "", view: int | None = None
    ) -> None:
        self._kept.append(
            Observation(number=self._next, time_ns=clock.wall_ns(), kind=kind, peers=peers, for_s=for_s, why=why, view=view)
        )
        self._next += 1
        self._more.set()

    def since(self, number: int) -> list[Observation]:
        """The events that are kept, from this number on."""
        return [each for each in self._kept if each.number >= number]

    async def listen(self, number: int = 0) -> AsyncGenerator[list[Observation], None]:
        """All events from this number on, as they come, and an empty list now and then, so that a listener that has gone is
        noticed."""
        while True:
            if found := self.since(number):
                number = found[-1].number + 1
                yield found
                continue
            self._more.clear()
            try:
                async with asyncio.timeout(BEAT_S):
                    await self._more.wait()
            except TimeoutError:
                yield []


BEAT_S = 5.0
