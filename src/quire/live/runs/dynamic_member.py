"""One member of a group that changes with a process of its own: it sends what its plan says, comes back where it was when it is
started again, and leaves its part of the trace each time.

`python -m quire.live.runs.dynamic_member PLAN ME PARTS JOURNAL` is what a fleet starts. It tells how things stand as lines of
JSON on its standard output, and closes the group on SIGINT, on SIGTERM, and when its standard input ends.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from pathlib import Path

import msgspec

from quire.live.dynamic.events import Blocked, Excluded, GroupEvent, Restored, Unblocked, View, ViewMessage
from quire.live.dynamic.group import DynamicGroup
from quire.live.dynamic.joining import DynamicSettings, read_dynamic_settings
from quire.live.dynamic.recording import MemberRecording
from quire.live.errors import GroupClosed, GroupFailed, NotDelivered
from quire.live.load import Pace
from quire.live.observing.observer import observer_of
from quire.live.runs.member import run, say, stop_on_signals, stop_with_parent
from quire.live.runs.plan import Plan
from quire.live.runs.progress import PROGRESS_S, Ended, Standing, sentence
from quire.model.errors import BadInput, NoQuorum, QuireError

_WORDS = {Excluded: "excluded", Blocked: "blocked", Unblocked: "unblocked", Restored: "restored"}


def dynamic_settings(plan: Plan, me: int, journal: Path | None) -> DynamicSettings:
    """What a member of a planned group that changes needs to join; raises BadInput where the plan makes no sense."""
    return read_dynamic_settings(
        plan.group,
        str(me),
        members={str(number): address for number, address in enumerate(plan.members)},
        at=None,
        contact=(),
        order=plan.order,
        protocol=plan.protocol,
        options=plan.options,
        journal=journal,
        delivery=None,
        weights=None,
        rejoin=True,
        network=plan.network(me),
    )


class DynamicMember:
    """Takes part once. `stop` may be called at any time: nothing more is sent, and the group is closed."""

    def __init__(self, plan: Plan, me: int, parts: Path, journal: Path) -> None:
        self._plan = plan
        self._me = me
        settings = dynamic_settings(plan, me, journal)
        observer = observer_of(plan.network(me))
        tail = None if observer is None else observer.tail
        self._recording = MemberRecording(settings, parts, plan.described(), tail)
        self._group = DynamicGroup(settings, recording=self._recording, observer=observer)
        self._delivered = 0
        self._stop = asyncio.Event()
        self._joining: asyncio.Task[Ended] | None = None

    def stop(self) -> None:
        self._stop.set()
        if self._joining is not None:
            self._joining.cancel()

    async def take_part(self) -> Ended:
        try:
            self._joining = asyncio.current_task()
            async with self._group:
                self._joining = None
                await self._exchange()
        except (GroupFailed, NotDelivered) as error:
            return self._ended(sentence(error))
        except asyncio.CancelledError:
            if not self._stop.is_set():
                raise
        return self._ended(self._recording.failure)

    async def _exchange(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            helpers = [tasks.create_task(each) for each in (self._send(), self._tell_regularly(), self._close_when_asked())]
            async for event in self._group.events():
                self._take(event)
            for helper in helpers:
                helper.cancel()

    def _take(self, event: GroupEvent) -> None:
        if isinstance(event, ViewMessage):
            self._delivered += 1
        elif isinstance(event, View):
            self._tell()
        else:
            self._tell(_WORDS[type(event)])

    async def _send(self) -> None:
        """Send what is left of the plan."""
        plan, group = self._plan, self._group
        left = msgspec.structs.replace(plan, messages=max(0, (plan.messages or 0) - group.accepted))
        if not plan.sends(self._me):
            return
        batch, pace = plan.batch(1 << 10, 1 << 20), Pace(left)
        while (count := await pace.take(len(batch))) and not self._stop.is_set():
            with suppress(GroupClosed):
                await self._multicast(batch[:count])

    async def _multicast(self, messages: list[bytes]) -> None:
        while True:
            try:
                await self._group.multicast_many(messages)
            except NoQuorum:
                await asyncio.sleep(PROGRESS_S)  # They are not accepted, and so they are sent later.
            else:
                return

    async def _close_when_asked(self) -> None:
        await self._stop.wait()
        with suppress(NotDelivered):  # Leaving the block says so.
            await self._group.close()

    async def _tell_regularly(self) -> None:
        while True:
            self._tell()
            await asyncio.sleep(PROGRESS_S)

    def _tell(self, event: str = "") -> None:
        group, view = self._group, self._group.view
        number, members = (0, ()) if view is None else (view.number, view.members)
        unrecorded = self._recording.failure
        say(Standing(group.accepted, group.acknowledged, self._delivered, number, members, event, unrecorded))

    def _ended(self, error: str) -> Ended:
        return Ended(self._group.accepted, self._delivered, self._stop.is_set(), error)


async def _take_part(plan: Plan, me: int, parts: Path, journal: Path) -> Ended:
    member = DynamicMember(plan, me, parts, journal)
    stop_on_signals(member.stop)
    stop_with_parent(member.stop)
    say(Standing(0, 0, 0, 0, ()))  # From now on it can be asked to stop.
    return await member.take_part()


def main() -> None:
    plan_file, me, parts, journal = sys.argv[1:]
    try:
        plan = msgspec.json.decode(Path(plan_file).read_bytes(), type=Plan)
        ended = run(_take_part(plan, int(me), Path(parts), Path(journal)))
    except QuireError as error:
        ended = Ended(0, 0, error=str(error), bad_input=isinstance(error, BadInput))
    say(ended)
    sys.exit(1 if ended.error else 0)


if __name__ == "__main__":
    main()
