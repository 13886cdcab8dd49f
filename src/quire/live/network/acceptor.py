"""The acceptor: listens for connections, and holds those that have not authenticated yet.

Only a bounded number may be unauthenticated. When one more comes, the oldest is closed: a member authenticates within a round
trip, so a connection that lingers is most likely not from a member, and holding connections open cannot keep members out.
Every refused connection gets one line in the log; in a flood, the rest are only counted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from quire.live import clock
from quire.live.network.buffered import TOO_LATE, BufferedConnection
from quire.live.network.transports.contract import Endpoint, Stranger, Transport
from quire.live.settings import Settings
from quire.model.errors import BadInput

log = logging.getLogger("quire.live")

STRANGERS_MAX = 256
LINES_PER_SECOND_MAX = 20
ACCEPT_AGAIN_S = 0.1
"""How long to wait when the machine cannot accept another connection."""


class Acceptor:
    def __init__(self, settings: Settings, make: Callable[[], BufferedConnection], transport: Transport) -> None:
        self._settings = settings
        self._make = make
        self._transport = transport
        self.port: int | None = None
        """The port that it listens on, if it does."""
        self._endpoints: list[Endpoint] = []
        self._accepting: list[asyncio.Task[None]] = []
        # In order of arrival, each with the task that begins the handshake.
        self._strangers: dict[BufferedConnection, asyncio.Task[None]] = {}
        # The strangers themselves, until that task has begun and owns them.
        self._accepted: set[Stranger] = set()
        self._second_began_at = 0.0
        self._lines = 0
        self._unsaid = 0

    async def open(self) -> None:
        """Listen, if this member does; raises BadInput where that is impossible."""
        address, loop = self._settings.listen, asyncio.get_running_loop()
        if address is None:
            return
        try:
            self._endpoints = list(await self._transport.listen(address))
        except OSError as error:
            why = error.strerror or error
            raise BadInput(f"member {self._settings.who} cannot listen at {address}: {why}") from error
        self.port = self._endpoints[0].port
        self._accepting = [loop.create_task(self._accept(endpoint)) for endpoint in self._endpoints]

    def addresses(self) -> tuple[str, ...]:
        """Where it listens."""
        return tuple(endpoint.address for endpoint in self._endpoints)

    async def close(self) -> None:
        """Accept no more connections, and close those that are not authenticated."""
        tasks = [*self._accepting, *self._strangers.values()]
        for connection in tuple(self._strangers):
            self._send_away(connection, "this member has left")
        for task in tasks:
            task.cancel()
        try:
            await asyncio.gather(*tasks, return_exceptions=True)
        finally:  # No socket is left open even if this is cancelled.
            for stranger in self._accepted:
                stranger.close()
            self._stop_listening()
            self._sum_up()

    def left(self, connection: BufferedConnection) -> None:
        """A connection has authenticated, or has ended."""
        self._strangers.pop(connection, None)

    def refused(self, connection: BufferedConnection, reason: str) -> None:
        """Log that a connection was refused."""
        now = clock.now()
        if now - self._second_began_at >= 1:
            self._sum_up()
            self._second_began_at, self._lines = now, 0
        if self._lines >= LINES_PER_SECOND_MAX:
            self._unsaid += 1
            return
        self._lines += 1
        log.warning(
            "group=%s member=%s event=refused from=%s why=%r",
            self._settings.group, self._settings.who, connection.address, reason,
        )  # fmt: skip

    async def _accept(self, endpoint: Endpoint) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                stranger = await endpoint.accept()
            except OSError:
                await asyncio.sleep(ACCEPT_AGAIN_S)
                continue
            connection = self._make()
            connection.address = stranger.address
            self._accepted.add(stranger)
            self._strangers[connection] = loop.create_task(self._talk_to(stranger, connection))
            if len(self._strangers) > STRANGERS_MAX:
                self._send_away(next(iter(self._strangers)), "too many connections wait for their handshake")

    async def _talk_to(self, stranger: Stranger, connection: BufferedConnection) -> None:
        self._accepted.discard(stranger)
        try:
            if not await stranger.talk(connection):
                self.left(connection)
        except TimeoutError:
            connection.give_up(TOO_LATE)
        except OSError as error:
            connection.connection_lost(error)

    def _send_away(self, connection: BufferedConnection, reason: str) -> None:
        task = self._strangers.pop(connection)
        if task.done():
            connection.close(reason, at_once=True)
        else:
            task.cancel()
            connection.give_up(reason)

    def _stop_listening(self) -> None:
        for endpoint in self._endpoints:
            endpoint.close()
        self._endpoints.clear()

    def _sum_up(self) -> None:
        if self._unsaid:
            log.warning("group=%s member=%s event=refused more=%d", self._settings.group, self._settings.who, self._unsaid)
            self._unsaid = 0
