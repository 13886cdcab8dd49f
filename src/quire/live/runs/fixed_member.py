"""One member of a fixed group in a run: it takes part until everything that was planned is delivered."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any

from quire.live.errors import GroupClosed, GroupFailed, NotDelivered
from quire.live.groups.group import Group
from quire.live.groups.joining import record_group
from quire.live.observing.observer import observer_of
from quire.live.recording import Recording
from quire.live.runs.exchange import Exchange
from quire.live.runs.plan import Plan
from quire.live.runs.progress import PROGRESS_S, Ended, Progress, Tell, sentence
from quire.live.settings import Settings
from quire.model.errors import QuireError

MEETING_S = 5.0
"""How long a member that was asked to stop still tries to join when some of the others are there."""


class FixedMember:
    """Takes part once. `stop` may be called at any time: nothing more is sent, and everything sent is delivered."""

    def __init__(self, plan: Plan, me: int, parts: Path | None, tell: Tell, exchange: Exchange) -> None:
        self.settings: Settings = plan.settings(me)
        self.exchange = exchange
        self._plan = plan
        self._parts = parts
        self._recording: Recording | None = None
        self._tell = tell
        self._stop = asyncio.Event()
        self._has_everything = False
        self._joining: asyncio.Task[Any] | None = None
        self._group: Group | None = None

    def stop(self) -> None:
        self._stop.set()
        if self._joining is None:
            return
        present = 1 if self._group is None else self._group.present()
        if present == 1:
            self._cancel_joining()
        elif present < len(self.settings.members):
            # Another member may have seen all members and started, and would take this one for lost.
            asyncio.get_running_loop().call_later(MEETING_S, self._cancel_joining)

    def _cancel_joining(self) -> None:
        if self._joining is not None:
            self._joining.cancel()

    async def take_part(self) -> Ended:
        """Join, send and receive, and leave when there is nothing more."""
        observer = observer_of(self._plan.network(self.settings.me))
        if self._parts is not None or observer is not None:
            tail = None if observer is None else observer.tail
            self._recording = record_group(self.settings, self._parts, self._plan.described(), tail)
        try:
            self._joining = asyncio.current_task()
            self._group = Group(self.settings, self._recording, observer=observer)
            async with self._group:
                self._joining = None
                await self._exchange(self._group)
        except (GroupFailed, NotDelivered) as error:
            return self._ended(error=sentence(error))
        except (asyncio.CancelledError, QuireError):
            if self._joining is None or not self._stop.is_set():
                raise
            return self._ended()
        return self._ended(error=self._unrecorded())

    def _ended(self, error: str = "") -> Ended:
        # Another member that was asked to stop may have closed the group before this one was asked.
        return Ended(self.exchange.sent, self.exchange.delivered, not error and not self._has_everything, error)

    async def _exchange(self, group: Group) -> None:
        members = [str(member) for member in range(len(self.settings.members))]
        async with asyncio.TaskGroup() as tasks:
            helpers = [tasks.create_task(self._close_when_asked(group)), tasks.create_task(self._tell_progress())]
            sending = tasks.create_task(_send(group, self.exchange))
            try:
                async with aclosing(group.runs()) as deliveries:
                    async for delivery in deliveries:
                        run = delivery.run
                        await self.exchange.take(str(run.origin), run.first, run)
                        if all(map(self.exchange.has_all_of, members)):
                            self._has_everything = True
                            break
            except GroupFailed:
                pass  # Closing the group says so, and what may not be delivered.
            for task in (*helpers, sending):
                task.cancel()
        self._report_progress()
        await group.close()

    async def _close_when_asked(self, group: Group) -> None:
        await self._stop.wait()
        with suppress(NotDelivered):  # Closing again says so.
            await group.close()

    async def _tell_progress(self) -> None:
        while True:
            self._report_progress()
            await asyncio.sleep(PROGRESS_S)

    def _report_progress(self) -> None:
        self._tell(Progress(self.exchange.sent, self.exchange.delivered, self._unrecorded()))

    def _unrecorded(self) -> str:
        return "" if self._recording is None else self._recording.failure


async def _send(group: Group, exchange: Exchange) -> None:
    # The receiving side gets the same error, and reports it.
    with suppress(GroupClosed, GroupFailed):
        await exchange.send(group)
