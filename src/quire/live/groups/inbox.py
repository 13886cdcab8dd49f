"""What was delivered and waits for the application, with a bound that the member's reading heeds."""

from __future__ import annotations

import asyncio
from collections import deque

from quire.protocols.contract import Deliver


class Inbox:
    """Deliveries in order. Once nobody will ever take them (`discard`), they are only counted."""

    def __init__(self, messages_max: int) -> None:
        self.messages = 0
        self.takers = 0
        """How many iterations over the deliveries are under way."""
        self._max = messages_max
        self._deliveries: deque[Deliver] = deque()
        self._waiters: list[asyncio.Future[None]] = []
        self._discarding = False

    def put(self, delivery: Deliver) -> None:
        if self._discarding:
            return
        self._deliveries.append(delivery)
        self.messages += delivery.run.count
        if self._waiters:
            self.wake()

    def take(self) -> Deliver | None:
        if not self._deliveries:
            return None
        delivery = self._deliveries.popleft()
        self.messages -= delivery.run.count
        return delivery

    def is_full(self) -> bool:
        return self.messages > self._max

    def has_room_again(self) -> bool:
        """Whether so much was taken since it was full that reading on is worth while."""
        return self.messages <= self._max // 2

    def discard(self) -> None:
        self._discarding = True
        self._deliveries.clear()
        self.messages = 0

    def wake(self) -> None:
        """Let the takers look again: there is a delivery, or something else has happened."""
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()

    async def changed(self) -> None:
        # This is on the way of every delivery to an application that keeps up, and an Event would take twice as long.
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        await waiter
