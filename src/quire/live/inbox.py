"""Bounded queue of deliveries that the application has not taken yet: while it is full, the member stops reading."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, TypeVar

from quire.live import clock
from quire.live.events import Event

T = TypeVar("T")
K = TypeVar("K")


class Inbox(Generic[T]):
    """Deliveries in order. After `discard`, when nobody will take them any more, they are only counted.

    It is full when it holds more messages or bytes than its limits. The member then stops reading from its peers
    (backpressure), and reports it if the application takes nothing for long.
    """

    def __init__(self, messages_max: int, bytes_max: int) -> None:
        self.messages = 0
        self.bytes = 0
        self.takers = 0
        """How many iterations over the deliveries are under way."""
        self.full_since: float | None = None
        self._messages_max = messages_max
        self._bytes_max = bytes_max
        self._deliveries: deque[tuple[T, int, int]] = deque()
        self._waiters: list[asyncio.Future[None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._discarding = False
        self._said_unread = False

    def put(self, delivery: T, messages: int, size: int) -> None:
        """Add a delivery of so many messages and bytes. The takers see it after `wake`."""
        if self._discarding:
            return
        self._deliveries.append((delivery, messages, size))
        self.messages += messages
        self.bytes += size
        if (self.messages > self._messages_max or self.bytes > self._bytes_max) and self.full_since is None:
            self.full_since = clock.now()

    def take(self) -> T | None:
        if not self._deliveries:
            return None
        delivery, messages, size = self._deliveries.popleft()
        self.messages -= messages
        self.bytes -= size
        if self.full_since is not None:
            self.full_since = None if self.has_room_again() else clock.now()
        return delivery

    def first(self, kind: type[K]) -> K | None:
        """The first delivery of this type, without taking it."""
        return next((delivery for delivery, _, _ in self._deliveries if isinstance(delivery, kind)), None)

    def is_full(self) -> bool:
        return self.messages > self._messages_max or self.bytes > self._bytes_max

    def has_room_again(self) -> bool:
        """Whether enough was taken since it was full to resume reading. A little is enough, so that an application that is slow
        but steady is not mistaken for one that takes nothing."""
        return self.messages <= self._messages_max * 15 // 16 and self.bytes <= self._bytes_max * 15 // 16

    def unread_s(self) -> float | None:
        """For how long the application has taken nothing since the inbox was full; None once it has room again."""
        return None if self.full_since is None else clock.now() - self.full_since

    def why(self) -> str:
        return (
            f"the application has not read {self.messages} delivered messages ({self.bytes} bytes); "
            "nothing more is received until it does"
        )

    def news(self, me: int | str, patience_s: float) -> Event | None:
        """An event to report, once each: that the application takes nothing for so long, and that it does again."""
        unread_s = self.unread_s()
        unread = unread_s is not None and (self._said_unread or unread_s > patience_s)
        if unread == self._said_unread:
            return None
        self._said_unread = unread
        return Event("unread", (me,), unread_s or 0.0, self.why()) if unread else Event("recovered", (me,))

    def discard(self) -> None:
        self._discarding = True
        self._deliveries.clear()
        self.messages = self.bytes = 0
        self.full_since = None

    def wake(self) -> None:
        """Let the takers look again: there is a delivery, or something else has happened."""
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()

    def changed(self) -> asyncio.Future[None]:
        """Await it to be woken."""
        # An application that keeps up waits here for every delivery: an Event would take twice as long, and finding the loop,
        # to which all calls belong, is a system call each time.
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._waiters.append(waiter)
        return waiter
