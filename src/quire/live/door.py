"""The door: where others connect, and where those wait that nobody knows yet.

Only so many may wait. When one more comes, the one that has waited longest is sent away: a member is known within a
round trip, so that whoever stays is most likely none, and holding connections open cannot keep the members out.
Everybody who is turned away gets one line in the log; in a flood the rest is only counted.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from quire.live.connection import Connection
from quire.live.settings import Settings
from quire.model.errors import BadInput

log = logging.getLogger("quire.live")

STRANGERS_MAX = 256
LINES_PER_SECOND_MAX = 20


class Door:
    def __init__(self, settings: Settings, make: Callable[[], Connection]) -> None:
        self._settings = settings
        self._make = make
        self._server: asyncio.Server | None = None
        self._strangers: dict[Connection, None] = {}
        self._second_began_at = 0.0
        self._lines = 0
        self._unsaid = 0

    async def open(self) -> None:
        """Listen; raises BadInput where that is impossible."""
        address = self._settings.listen
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(self._make, address.host, address.port)
        except OSError as error:
            why = error.strerror or error
            raise BadInput(f"member {self._settings.me} cannot listen at {address}: {why}") from error

    def shut(self) -> None:
        """Let nobody in any more, and send away those who wait."""
        if self._server is not None:
            self._server.close()
        for connection in tuple(self._strangers):
            connection.close("this member has left", at_once=True)
        self._sum_up()

    async def closed(self) -> None:
        if self._server is not None:
            await self._server.wait_closed()

    def knocked(self, connection: Connection) -> None:
        """Somebody has connected, and waits until `left`."""
        self._strangers[connection] = None
        if len(self._strangers) > STRANGERS_MAX:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.close("too many others wait to introduce themselves", at_once=True)

    def left(self, connection: Connection) -> None:
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

    def _sum_up(self) -> None:
        if self._unsaid:
            log.warning("group=%s member=%d event=refused more=%d", self._settings.group, self._settings.me, self._unsaid)
            self._unsaid = 0
