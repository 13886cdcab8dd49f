"""The door: where others connect, and where those wait that nobody knows yet.

Only so many may wait. When one more comes, the one that has waited longest is sent away: a member is known within a
round trip, so that whoever stays is most likely none, and holding connections open cannot keep the members out.
Everybody who is turned away gets one line in the log; in a flood the rest is only counted.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import time
from collections.abc import Callable

from quire.live.network.connection import CLOSE_S, Connection, shown
from quire.live.settings import Settings
from quire.model.errors import BadInput

log = logging.getLogger("quire.live")

STRANGERS_MAX = 256
LINES_PER_SECOND_MAX = 20
ACCEPT_AGAIN_S = 0.1
"""How long to wait when the machine has no room for another connection."""


class Door:
    def __init__(self, settings: Settings, make: Callable[[], Connection], tls: ssl.SSLContext | None) -> None:
        self._settings = settings
        self._make = make
        self._tls = tls
        self.port: int | None = None
        """At which port it listens, if it does."""
        self._listening: list[socket.socket] = []
        self._accepting: list[asyncio.Task[None]] = []
        # In order of arrival, each with the task that starts to talk to it.
        self._strangers: dict[Connection, asyncio.Task[None]] = {}
        self._second_began_at = 0.0
        self._lines = 0
        self._unsaid = 0

    async def open(self) -> None:
        """Listen, if this member does; raises BadInput where that is impossible."""
        address, loop = self._settings.listen, asyncio.get_running_loop()
        if address is None:
            return
        try:
            for family, _, _, _, where in await loop.getaddrinfo(
                address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            ):
                listening = socket.create_server(where[:2], family=family)
                listening.setblocking(False)
                self._listening.append(listening)
        except OSError as error:
            self._stop_listening()
            why = error.strerror or error
            raise BadInput(f"member {self._settings.me} cannot listen at {address}: {why}") from error
        self.port = self._listening[0].getsockname()[1]
        self._accepting = [loop.create_task(self._accept(listening)) for listening in self._listening]

    async def close(self) -> None:
        """Let nobody in any more, and send away those who wait."""
        tasks = [*self._accepting, *self._strangers.values()]
        for connection in tuple(self._strangers):
            self._send_away(connection, "this member has left")
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._stop_listening()
        self._sum_up()

    def left(self, connection: Connection) -> None:
        """A connection is known now, or gone."""
        self._strangers.pop(connection, None)

    def refused(self, connection: Connection, reason: str) -> None:
        """Say in the log that a connection came to nothing."""
        now = time.monotonic()
        if now - self._second_began_at >= 1:
            self._sum_up()
            self._second_began_at, self._lines = now, 0
        if self._lines >= LINES_PER_SECOND_MAX:
            self._unsaid += 1
            return
        self._lines += 1
        log.warning(
            "group=%s member=%d event=refused from=%s why=%r",
            self._settings.group, self._settings.me, connection.address, reason,
        )  # fmt: skip

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                stranger, address = await loop.sock_accept(listening)
            except OSError:
                await asyncio.sleep(ACCEPT_AGAIN_S)
                continue
            stranger.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = self._make()
            connection.address = shown(address)
            self._strangers[connection] = loop.create_task(self._talk_to(stranger, connection))
            if len(self._strangers) > STRANGERS_MAX:
                self._send_away(next(iter(self._strangers)), "too many others wait to introduce themselves")

    async def _talk_to(self, stranger: socket.socket, connection: Connection) -> None:
        loop, tls = asyncio.get_running_loop(), self._tls
        try:
            if tls is None:
                await loop.connect_accepted_socket(lambda: connection, stranger)
            else:
                await loop.connect_accepted_socket(
                    lambda: connection,
                    stranger,
                    ssl=tls,
                    ssl_handshake_timeout=self._settings.handshake_s,
                    ssl_shutdown_timeout=CLOSE_S,
                )
        except OSError as error:
            connection.connection_lost(error)

    def _send_away(self, connection: Connection, reason: str) -> None:
        task = self._strangers.pop(connection)
        if task.done():
            connection.close(reason, at_once=True)
        else:
            task.cancel()
            connection.give_up(reason)

    def _stop_listening(self) -> None:
        for listening in self._listening:
            listening.close()
        self._listening.clear()

    def _sum_up(self) -> None:
        if self._unsaid:
            log.warning("group=%s member=%d event=refused more=%d", self._settings.group, self._settings.me, self._unsaid)
            self._unsaid = 0
