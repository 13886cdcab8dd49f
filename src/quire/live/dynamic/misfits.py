"""How founders part whose settings do not fit together: each who knows tells the others, so that none waits for the rest.

Whoever finds that out, or is told, says so on all its connections before it ends them, and stays for a moment to tell those
who are just coming.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from quire.live.dynamic.connection import NamedConnection
from quire.live.dynamic.joining import DynamicSettings
from quire.model.errors import BadInput
from quire.wire.frames import GAVE_UP

STAY_S = 1.0
"""How long a process stays for those who do not know yet."""


class MisfitNotice:
    """What a founder that gives up says to the others."""

    def __init__(self, settings: DynamicSettings) -> None:
        self._settings = settings
        self._untold = set(settings.addresses) - {settings.me} if settings.founds else set()
        self._misfit = ""
        self._news = asyncio.Event()

    def begin(self, name: str, why: str, *, reported: bool) -> BadInput | None:
        """That process does not fit, or, `reported`, gives up founding the group because another one does not. What this one
        fails with, which is no member yet; None if it can wait for others."""
        if not self._settings.counts(name) or (reported and not self._settings.founds):
            return None
        self._misfit = why
        self._untold.discard(name)
        return BadInput(f"{why} (reported by {name!r})" if reported else why)

    def say(self, connection: NamedConnection) -> None:
        if not self._misfit:
            connection.refuse("this process ends")
            return
        connection.refuse(self._misfit, GAVE_UP)
        self._untold.discard(connection.name)
        self._news.set()

    async def stay(self) -> None:
        """Until all founders know why the group cannot be, or a moment has passed."""
        with suppress(TimeoutError):
            async with asyncio.timeout(STAY_S):
                while self._misfit and self._untold:
                    self._news.clear()
                    await self._news.wait()
