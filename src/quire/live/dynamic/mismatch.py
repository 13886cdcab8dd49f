"""How founders whose settings do not fit together give up: each tells the others, so that none waits in vain.

A founder that finds a mismatch, or is told of one, sends a notice on all its connections before it closes them, and stays for a
moment to tell founders that are just connecting.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from quire.live.dynamic.connection import NamedConnection
from quire.live.dynamic.joining import DynamicSettings
from quire.model.errors import BadInput
from quire.wire.frames import GAVE_UP

STAY_S = 1.0
"""How long a process stays to tell founders that do not know yet."""


class MismatchNotice:
    """The notice that a founder that gives up sends to the others."""

    def __init__(self, settings: DynamicSettings) -> None:
        self._settings = settings
        self._untold = set(settings.addresses) - {settings.me} if settings.founds else set()
        self._mismatch = ""
        self._news = asyncio.Event()

    def begin(self, name: str, why: str, *, reported: bool) -> BadInput | None:
        """The process `name` does not fit or, if `reported`, has given up because another one does not. Returns the error with
        which this process, which is no member yet, fails; None if it can go on without that one."""
        if not self._settings.counts(name) or (reported and not self._settings.founds):
            return None
        self._mismatch = why
        self._untold.discard(name)
        return BadInput(f"{why} (reported by {name!r})" if reported else why)

    def say(self, connection: NamedConnection) -> None:
        if not self._mismatch:
            connection.refuse("this process ends")
            return
        connection.refuse(self._mismatch, GAVE_UP)
        self._untold.discard(connection.name)
        self._news.set()

    async def stay(self) -> None:
        """Wait until all founders know why the group cannot begin, or a moment has passed."""
        with suppress(TimeoutError):
            async with asyncio.timeout(STAY_S):
                while self._mismatch and self._untold:
                    self._news.clear()
                    await self._news.wait()
