"""One member of a live group with a process of its own: it joins, sends what its plan says, delivers everything, and
leaves its part of the trace.

`python -m quire.live.runs.member PLAN ME PARTS` is what a fleet starts. It tells its progress as lines of JSON on its standard
output, and drains and ends on SIGINT, on SIGTERM, and when its standard input ends, so that it never outlives whoever
started it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from quire.live.errors import GroupClosed, GroupFailed, NotDelivered
from quire.live.groups.group import Group
from quire.live.runs.parts import open_spool, write_part
from quire.live.runs.plan import Plan
from quire.live.runs.progress import PROGRESS_S, Ended, Progress, Tell, sentence
from quire.live.runs.sharing import take_share
from quire.live.services.registry import SERVICES
from quire.live.settings import Settings
from quire.live.spool import Spool, spill_regularly
from quire.model.errors import BadInput, QuireError
from quire.protocols.contract import Deliver

Result = TypeVar("Result")


Source = Callable[[Group], Coroutine[Any, Any, None]]
"""Sends until there is nothing more to send or the group takes nothing more."""
Sink = Callable[[Deliver], Coroutine[Any, Any, bool]]
"""Takes a delivery; True when it was the last."""


class Member:
    """Takes part once. `stop` may be called at any time: nothing more is sent, and everything sent is delivered."""

    def __init__(self, plan: Plan, me: int, parts: Path | None, tell: Tell | None = None) -> None:
        self.plan = plan
        self.settings: Settings = plan.settings(me)
        self.sent = 0
        self.delivered = 0
        self._parts = parts
        self._tell = tell
        self._stop = asyncio.Event()
        self._joining: asyncio.Task[Any] | None = None

    def stop(self) -> None:
        self._stop.set()
        if self._joining is not None:
            self._joining.cancel()

    async def take_part(self, source: Source, sink: Sink) -> Ended:
        """Join, feed the group from the source and the sink from the group, and leave when there is nothing more."""
        spool = None if self._parts is None else open_spool(self._parts, self.plan, self.settings)
        try:
            self._joining = asyncio.current_task()
            async with Group(self.settings, spool) as group:
                self._joining = None
                await self._exchange(group, source, sink, spool)
        except (GroupFailed, NotDelivered) as error:
            if spool is not None:
                spool.discard()
            return self._ended(error=sentence(error))
        except (asyncio.CancelledError, QuireError, OSError):
            if spool is not None:
                spool.discard()
            if self._joining is None or not self._stop.is_set():
                raise
            return self._ended()
        if spool is not None and self._parts is not None:
            write_part(self._parts, self.plan, self.settings, spool.recorder, burden=group.burden())
        return self._ended()

    def _ended(self, error: str = "") -> Ended:
        return Ended(self.sent, self.delivered, self._stop.is_set(), error)

    async def _exchange(self, group: Group, source: Source, sink: Sink, spool: Spool | None) -> None:
        async with asyncio.TaskGroup() as tasks:
            helpers = [tasks.create_task(self._close_when_asked(group)), tasks.create_task(self._tell_progress())]
            if spool is not None:
                helpers.append(tasks.create_task(spill_regularly(spool)))
            sending = tasks.create_task(_send(group, source))
            try:
                async with aclosing(group.runs()) as deliveries:
                    async for delivery in deliveries:
                        self.delivered += delivery.run.count
                        if await sink(delivery):
                            break
            except GroupFailed:
                pass  # Closing the group says so, and what may not be delivered.
            for task in (*helpers, sending):
                task.cancel()
        self._told()
        await group.close()

    async def _close_when_asked(self, group: Group) -> None:
        await self._stop.wait()
        with suppress(NotDelivered):  # Closing again says so.
            await group.close()

    async def _tell_progress(self) -> None:
        while True:
            self._told()
            await asyncio.sleep(PROGRESS_S)

    def _told(self) -> None:
        if self._tell is not None:
            self._tell(Progress(self.sent, self.delivered))

    # What members of a planned load send, and when they have everything.

    async def send_load(self, group: Group) -> None:
        """Send as many messages as planned, as fast as the group takes them or at the planned rate."""
        plan, settings, loop = self.plan, self.settings, asyncio.get_running_loop()
        assert plan.messages is not None
        if not plan.sends(settings.me):
            return
        payload = (bytes(range(256)) * (plan.size // 256 + 1))[: plan.size]
        batch = [payload] * max(1, min(settings.run_messages_max, settings.run_bytes_max // max(plan.size, 1)))
        began = loop.time()
        while self.sent < plan.messages and not self._stop.is_set():
            count = min(plan.messages - self.sent, len(batch))
            if plan.rate is not None:
                due = int((loop.time() - began) * plan.rate) + 1 - self.sent
                if due <= 0:
                    await asyncio.sleep(self.sent / plan.rate - (loop.time() - began))
                    continue
                count = min(count, due)
            await group.multicast_many(batch[:count])
            self.sent += count

    async def count_load(self, delivery: Deliver) -> bool:  # noqa: ARG002
        return self.delivered == self.plan.messages_in_all()


async def _send(group: Group, source: Source) -> None:
    # Whoever takes the deliveries learns the same, and what to say about it.
    with suppress(GroupClosed, GroupFailed):
        await source(group)


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine on the fastest event loop that is here."""
    try:
        import uvloop
    except ImportError:  # Not made for every system.
        return asyncio.run(main)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


def stop_on_signals(stop: Callable[[], None]) -> None:
    """Have SIGINT and SIGTERM drain instead of kill, where the system can."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):
            loop.add_signal_handler(number, stop)


def _stop_with_parent(stop: Callable[[], None]) -> None:
    """Standard input ends when whoever started this process has gone, however it went."""
    loop = asyncio.get_running_loop()

    def watch() -> None:
        while os.read(0, 1024):
            pass
        with suppress(RuntimeError):  # The loop may be closed by now.
            loop.call_soon_threadsafe(stop)

    threading.Thread(target=watch, name="quire-parent", daemon=True).start()


def _say(said: Progress | Ended) -> None:
    with suppress(BrokenPipeError):
        os.write(1, msgspec.json.encode(said) + b"\n")


async def take_part(plan: Plan, me: int, parts: Path | None, tell: Tell, ready: Callable[[Callable[[], None]], None]) -> Ended:
    """Take part in what is planned, as a member of a group or as a process of a service. `ready` is called once, with what
    has it end early."""
    service = SERVICES.get(plan.protocol or "")
    if service is not None:
        return await take_share(service, plan, me, parts, tell, ready)
    member = Member(plan, me, parts, tell)
    ready(member.stop)
    return await member.take_part(member.send_load, member.count_load)


def _ready(stop: Callable[[], None]) -> None:
    stop_on_signals(stop)
    _say(Progress(0, 0))  # From now on it can be asked to stop.
    _stop_with_parent(stop)


def main() -> None:
    """Take part in a planned load as a process of a fleet."""
    plan_file, me, parts = sys.argv[1:]
    try:
        plan = msgspec.json.decode(Path(plan_file).read_bytes(), type=Plan)
        ended = run(take_part(plan, int(me), Path(parts), _say, _ready))
    except QuireError as error:
        ended = Ended(0, 0, error=str(error), bad_input=isinstance(error, BadInput))
    _say(ended)
    sys.exit(1 if ended.error else 0)


if __name__ == "__main__":
    main()
