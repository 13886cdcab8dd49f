"""Cancellation of commands that take something: if the caller was cancelled meanwhile, the result is given back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from quire.model.errors import QuireError

R = TypeVar("R")


async def taken_or_given_back(call: asyncio.Future[R], give_back: Callable[[R], object]) -> R:
    """What the command returns. If this is cancelled first, the command is executed nevertheless, and its result is given
    back."""
    try:
        return await asyncio.shield(call)
    except asyncio.CancelledError:

        def too_late(done: asyncio.Future[R]) -> None:
            if not done.cancelled() and done.exception() is None:
                with suppress(QuireError):  # The group has ended, so there is nothing to give back to.
                    give_back(done.result())

        call.add_done_callback(too_late)
        raise
