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
from quire.live.groups.joining import record_group
from quire.live.load import Pace
from quire.live.observing.observer import observer_of
from quire.live.recording import Recording
from quire.live.runs.plan import Plan
from quire.live.runs.progress import PROGRESS_S, Ended, Progress, Standing, Tell, sentence
from quire.live.runs.taking_part import take_part_in
from quire.live.services.registry import SERVICES
from quire.live.settings import Settings
from quire.model.errors import BadInput, QuireError
from quire.protocols.contract import Deliver

Result = TypeVar("Result")


Source = Callable[[Group], Coroutine[Any, Any, None]]
"""Sends until there is nothing more to send or the group takes nothing more."""
Sink = Callable[[Deliver], Coroutine[Any, Any, bool]]
"""Takes a delivery, and counts the messages in it that an application sent; True when it was the last."""


MEETING_S = 5.0
"""How long a member that is to stop goes on joining when some of the others are there."""


class Member:
    """Takes part once. `stop` may be called at any time: nothing more is sent, and everything sent is delivered."""

    def __init__(self, plan: Plan, me: int, parts: Path | None, tell: Tell | None = None) -> None:
        self.plan = plan
        self.settings: Settings = plan.settings(me)
        self.sent = 0
        self.delivered = 0
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
            # Another member may have seen all of them and begun, and would take this one for lost.
            asyncio.get_running_loop().call_later(MEETING_S, self._cancel_joining)

    def _cancel_joining(self) -> None:
        if self._joining is not None:
            self._joining.cancel()

    async def take_part(self, source: Source, sink: Sink) -> Ended:
        """Join, feed the group from the source and the sink from the group, and leave when there is nothing more."""
        observer = observer_of(self.plan.network(self.settings.me))
        if self._parts is not None or observer is not None:
            tail = None if observer is None else observer.tail
            self._recording = record_group(self.settings, self._parts, self.plan.described(), tail)
        try:
            self._joining = asyncio.current_task()
            self._group = Group(self.settings, self._recording, observer=observer)
            async with self._group:
                self._joining = None
                await self._exchange(self._group, source, sink)
        except (GroupFailed, NotDelivered) as error:
            return self._ended(error=sentence(error))
        except (asyncio.CancelledError, QuireError):
            if self._joining is None or not self._stop.is_set():
                raise
            return self._ended()
        return self._ended(error=self._unrecorded())

    def _ended(self, error: str = "") -> Ended:
        # Whoever else was asked to stop may have closed the group before this member was asked.
        return Ended(self.sent, self.delivered, not error and not self._has_everything, error)

    async def _exchange(self, group: Group, source: Source, sink: Sink) -> None:
        async with asyncio.TaskGroup() as tasks:
            helpers = [tasks.create_task(self._close_when_asked(group)), tasks.create_task(self._tell_progress())]
            sending = tasks.create_task(_send(group, source))
            try:
                async with aclosing(group.runs()) as deliveries:
                    async for delivery in deliveries:
                        if await sink(delivery):
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
        if self._tell is not None:
            self._tell(Progress(self.sent, self.delivered, self._unrecorded()))

    def _unrecorded(self) -> str:
        return "" if self._recording is None else self._recording.failure

    # What members of a planned load send, and when they have everything.

    async def send_load(self, group: Group) -> None:
        """Send as many messages as planned, as fast as the group takes them or at the planned rate."""
        plan, settings = self.plan, self.settings
        if not plan.sends(settings.me):
            return
        batch, pace = plan.batch(settings.run_messages_max, settings.run_bytes_max), Pace(plan)
        while (count := await pace.take(len(batch))) and not self._stop.is_set():
            await group.multicast_many(batch[:count])
            self.sent += count

    async def count_load(self, delivery: Deliver) -> bool:
        self.delivered += delivery.run.count
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


def stop_with_parent(stop: Callable[[], None]) -> None:
    """Standard input ends when whoever started this process has gone, however it went."""
    loop = asyncio.get_running_loop()

    def watch() -> None:
        while os.read(0, 1024):
            pass
        with suppress(RuntimeError):  # The loop may be closed by now.
            loop.call_soon_threadsafe(stop)

    threading.Thread(target=watch, name="quire-parent", daemon=True).start()


def say(said: Progress | Standing | Ended) -> None:
    """Tell whoever started this process."""
    with suppress(BrokenPipeError):
        os.write(1, msgspec.json.encode(said) + b"\n")


async def take_part(plan: Plan, me: int, parts: Path | None, tell: Tell, ready: Callable[[Callable[[], None]], None]) -> Ended:
    """Take part in what is planned, as a member of a group or as a process of a service. `ready` is called once, with what
    has it end early."""
    service = SERVICES.get(plan.protocol or "")
    if service is not None:
        return await take_part_in(service, plan, me, parts, tell, ready)
    member = Member(plan, me, parts, tell)
    ready(member.stop)
    return await member.take_part(member.send_load, member.count_load)


def _ready(stop: Callable[[], None]) -> None:
    stop_on_signals(stop)
    say(Progress(0, 0))  # From now on it can be asked to stop.
    stop_with_parent(stop)


def main() -> None:
    """Take part in a planned load as a process of a fleet."""
    plan_file, me, parts = sys.argv[1:]
    try:
        plan = msgspec.json.decode(Path(plan_file).read_bytes(), type=Plan)
        ended = run(take_part(plan, int(me), Path(parts), say, _ready))
    except QuireError as error:
        ended = Ended(0, 0, error=str(error), bad_input=isinstance(error, BadInput))
    say(ended)
    sys.exit(1 if ended.error else 0)


if __name__ == "__main__":
    main()
