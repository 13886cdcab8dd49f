"""One member of a changing group in a run: it goes on when others are lost, and restarts from its journal, if it has one.

Each time it writes its part of the trace.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from pathlib import Path

from quire.live.dynamic.deliveries import DeliveredRun
from quire.live.dynamic.events import Blocked, Excluded, GroupEvent, Restored, Unblocked, View
from quire.live.dynamic.group import DynamicGroup
from quire.live.dynamic.recording import record_member
from quire.live.errors import GroupClosed, GroupFailed, NotDelivered
from quire.live.observing.observer import observer_of
from quire.live.runs.exchange import Exchange
from quire.live.runs.plan import Plan
from quire.live.runs.progress import PROGRESS_S, Ended, Standing, Tell, sentence
from quire.model.errors import CannotWrite, NoQuorum, QuireError

_WORDS = {Excluded: "excluded", Blocked: "blocked", Unblocked: "unblocked", Restored: "restored"}


class DynamicMember:
    """Takes part once: until all present members have sent everything, or `until_told`. `stop` and `leave` may be called at any
    time: nothing more is sent, and then the group is closed, or goes on without this member."""

    def __init__(
        self,
        plan: Plan,
        me: int,
        parts: Path | None,
        tell: Tell,
        exchange: Exchange,
        journal: Path | None = None,
        *,
        until_told: bool = False,
    ) -> None:
        settings = plan.dynamic_settings(me, journal)
        self.exchange = exchange
        self._planned = {str(member) for member in range(len(plan.members))}
        observer = observer_of(plan.network(me))
        self._recording = record_member(settings, parts, observer, plan.described())
        self._group = DynamicGroup(settings, recording=self._recording, observer=observer)
        self._tell_others = tell
        self._until_told = until_told
        self._has_everything = False
        self._stop = asyncio.Event()
        self._leaves = False
        self._joining: asyncio.Task[Ended] | None = None
        self._view: View | None = None
        """The view that everything was read up to; None while this is no member."""

    def stop(self) -> None:
        self._stop.set()
        if self._joining is not None:
            self._joining.cancel()

    def leave(self) -> None:
        self._leaves = True
        self.stop()

    async def take_part(self) -> Ended:
        """Join, send and receive, and end when there is nothing more."""
        try:
            self._joining = asyncio.current_task()
            async with self._group:
                self._joining = None
                await self._exchange()
        except (GroupFailed, NotDelivered, NoQuorum, CannotWrite) as error:
            return self._ended(sentence(error))
        except asyncio.CancelledError:
            if not self._stop.is_set():
                raise
        return self._ended(self._unrecorded())

    async def _exchange(self) -> None:
        failure: QuireError | None = None
        async with asyncio.TaskGroup() as tasks:
            helpers = [tasks.create_task(each) for each in (self._send(), self._tell_regularly(), self._end_when_asked())]
            try:
                await self._take()
            except QuireError as error:
                failure = error
            for helper in helpers:
                helper.cancel()
        self._tell()
        if failure is not None:
            raise failure
        if not self._stop.is_set():
            await self._group.close()

    async def _take(self) -> None:
        """Receive until there is nothing more. Raises NoQuorum if this member is without a majority for too long."""
        loop, join_s = asyncio.get_running_loop(), self._group.settings.network.join_s
        try:
            async with asyncio.timeout(None) as limit, aclosing(self._group.run_events()) as happening:
                async for each in happening:
                    if isinstance(each, DeliveredRun):
                        await self.exchange.take(each.origin, each.first, each.run)
                    else:
                        self._heed(each)
                        alone = isinstance(each, Excluded | Blocked) and not self._until_told
                        limit.reschedule(loop.time() + join_s if alone else None)
                    if self._is_done():
                        self._has_everything = True
                        return
        except TimeoutError:
            raise NoQuorum(f"no majority could be reached for {join_s:g} s") from None

    def _is_done(self) -> bool:
        """Whether all present members have sent everything. Absent ones may come back, but are not waited for."""
        if self._until_told or self._view is None:
            return False
        return all(map(self.exchange.has_all_of, self._planned.intersection(self._view.members)))

    def _heed(self, event: GroupEvent) -> None:
        if isinstance(event, View | Excluded):
            self._view = event if isinstance(event, View) else None
        self._tell(_WORDS.get(type(event), ""))

    async def _send(self) -> None:
        with suppress(GroupClosed, GroupFailed):  # The receiving side gets the same error.
            await self.exchange.send(self._group)

    async def _end_when_asked(self) -> None:
        await self._stop.wait()
        with suppress(NotDelivered):  # Leaving the block says so.
            await (self._group.leave() if self._leaves else self._group.close())

    async def _tell_regularly(self) -> None:
        while True:
            self._tell()
            await asyncio.sleep(PROGRESS_S)

    def _tell(self, event: str = "") -> None:
        group, view, exchange = self._group, self._group.view, self.exchange
        number, members = (0, ()) if view is None else (view.number, view.members)
        told = (group.accepted, group.acknowledged, exchange.delivered, number, members, event, self._unrecorded())
        self._tell_others(Standing(*told))

    def _ended(self, error: str) -> Ended:
        # Another member that was asked to stop may have closed the group before this one was asked.
        return Ended(self.exchange.sent, self.exchange.delivered, not error and not self._has_everything, error)

    def _unrecorded(self) -> str:
        return "" if self._recording is None else self._recording.failure
