"""Runs a member that a user started: shows its progress, and sends standard input and prints deliveries, line by line."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from pathlib import Path

from rich.console import Console

from quire.live.dynamic.group import DynamicGroup
from quire.live.groups.group import Group
from quire.live.runs.dynamic_member import DynamicMember
from quire.live.runs.exchange import PlannedLoad, multicast_patiently
from quire.live.runs.member import make_member, stop_on_signals, take_part
from quire.live.runs.plan import Plan
from quire.live.runs.progress import Ended, Progress, Running, Standing
from quire.live.services.registry import SERVICES
from quire.model.errors import BadInput, QuireError
from quire.model.messages import Run

_READ_BYTES = 1 << 16

END = b""
"""The message that a member sends when its input has ended; a line always has its newline, so it is never empty."""


async def take_part_here(plan: Plan, me: int, parts: Path | None, *, json: bool) -> tuple[Ended, bool]:
    """Take part with the planned load, or with the lines of standard input if there is none. Returns how it ended, and whether
    it was interrupted here, since the group may also be closed by others."""
    interrupted = False

    def heed(stop: Callable[[], None]) -> None:
        def interrupt() -> None:
            nonlocal interrupted
            interrupted = True
            stop()

        stop_on_signals(interrupt)

    console = Console(stderr=True, highlight=False)
    status = console.status(f"member {me} waits for the others") if console.is_terminal and not json else None

    def tell(progress: Progress | Standing | Running) -> None:
        if isinstance(progress, Running):
            return
        if status is not None and plan.messages is not None:
            status.update(f"member {me}: {progress.sent:,} sent, {progress.delivered:,} delivered")
        elif status is not None:
            status.stop()

    if status is not None:
        status.start()
    try:
        if plan.protocol in SERVICES:
            if plan.messages is None:
                raise BadInput(f"{plan.protocol} runs a fixed load only; give --messages")
            return await take_part(plan, me, parts, tell, heed), interrupted
        exchange = _Lines(plan, me) if plan.messages is None else PlannedLoad(plan, me)
        member = make_member(plan, me, parts, tell, exchange)
        heed(member.leave if isinstance(member, DynamicMember) else member.stop)
        return await member.take_part(), interrupted
    finally:
        if status is not None:
            status.stop()


class _Lines:
    """Sends the lines of standard input as messages, and writes deliveries to standard output."""

    def __init__(self, plan: Plan, me: int) -> None:
        self.sent = 0
        self.delivered = 0
        self._reads = plan.sends(me)
        self._ended: set[str] = set()
        """Members whose input has ended."""
        self._over = asyncio.Event()

    async def send(self, group: Group | DynamicGroup) -> None:
        """Read in a thread, because files and terminals cannot be awaited otherwise; it waits under the group's
        backpressure."""
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, args=(group, loop), name="quire-input", daemon=True).start()
        await self._over.wait()

    async def take(self, origin: str, first: int, run: Run) -> None:
        text = bytearray()
        for seq, payload in enumerate(run.payloads(), first):
            if payload == END:
                self._ended.add(origin)
            else:
                self.delivered += 1
                text += f"{origin}:{seq} ".encode() + payload
        if text:
            await asyncio.to_thread(_write, text)

    def has_all_of(self, member: str) -> bool:
        return member in self._ended

    def _read(self, group: Group | DynamicGroup, loop: asyncio.AbstractEventLoop) -> None:
        # The group may have ended meanwhile; that is reported where deliveries are taken.
        with suppress(QuireError, CancelledError, RuntimeError):
            rest = b""
            while self._reads and (data := os.read(0, _READ_BYTES)):
                *lines, rest = (rest + data).split(b"\n")
                self._multicast(group, loop, lines)
            self._multicast(group, loop, [rest] if rest else [])
            asyncio.run_coroutine_threadsafe(multicast_patiently(group, [END]), loop).result()

    def _multicast(self, group: Group | DynamicGroup, loop: asyncio.AbstractEventLoop, lines: list[bytes]) -> None:
        if lines:
            asyncio.run_coroutine_threadsafe(multicast_patiently(group, [line + b"\n" for line in lines]), loop).result()
            self.sent += len(lines)


def _write(text: bytes | bytearray) -> None:
    sys.stdout.buffer.write(text)
    sys.stdout.buffer.flush()
