"""Members that are asked to stop, while others were not asked, or have begun already: all of them end, and say so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from quire.live.network.gathering import Gathering
from quire.live.runs.exchange import PlannedLoad
from quire.live.runs.fixed_member import FixedMember
from quire.live.runs.fleet import free_addresses
from quire.live.runs.member import make_member
from quire.live.runs.plan import Plan
from quire.live.runs.progress import Ended
from quire.model.messages import Run
from tests.kit.patience import PATIENCE_S


def test_a_member_that_is_the_last_to_notice_that_all_are_there_is_not_lost_to_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    late, wait = asyncio.Event(), Gathering.wait
    waiting: list[Gathering] = []

    async def wait_late(gathering: Gathering) -> None:
        waiting.append(gathering)
        await wait(gathering)
        if gathering is waiting[1]:
            await late.wait()

    async def run() -> list[Ended]:
        plan = Plan(members=free_addresses(2), messages=1_000_000, timeout_s=PATIENCE_S, protocol="two-phase")
        members = [FixedMember(plan, me, None, lambda _: None, PlannedLoad(plan, me)) for me in range(2)]
        async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(member.take_part()) for member in members]
            while not members[0].exchange.delivered:
                await asyncio.sleep(0.01)
            for member in members:
                member.stop()
            late.set()
        return [task.result() for task in running]

    monkeypatch.setattr(Gathering, "wait", wait_late)
    first, second = asyncio.run(run())

    assert (first.error, second.error) == ("", "")
    assert first.sent > 0
    assert first.delivered == first.sent + second.sent


@pytest.mark.parametrize("protocol", ["single-phase", "two-phase"])
def test_a_member_with_which_others_close_the_group_says_as_they_do_that_not_everything_was_sent(protocol: str) -> None:
    async def run() -> list[Ended]:
        plan = Plan(members=free_addresses(2), messages=1_000_000_000, timeout_s=PATIENCE_S, protocol=protocol)
        members = [make_member(plan, me, None, lambda _: None, PlannedLoad(plan, me)) for me in range(2)]
        async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(member.take_part()) for member in members]
            while not members[0].exchange.delivered:
                await asyncio.sleep(0.01)
            members[1].stop()
        return [task.result() for task in running]

    assert [(ended.stopped, ended.error) for ended in asyncio.run(run())] == [(True, ""), (True, "")]


class StopsAtTheEnd(PlannedLoad):
    """Asks its member to stop when everything has come."""

    stop: Callable[[], None]

    async def take(self, origin: str, first: int, run: Run) -> None:
        await super().take(origin, first, run)
        if self.has_all_of(origin):
            self.stop()


@pytest.mark.parametrize("protocol", ["single-phase", "two-phase"])
def test_a_member_that_is_asked_to_stop_when_it_has_everything_was_not_stopped(protocol: str) -> None:
    async def run() -> Ended:
        plan = Plan(members=free_addresses(1), messages=10, protocol=protocol)
        load = StopsAtTheEnd(plan, 0)
        member = make_member(plan, 0, None, lambda _: None, load)
        load.stop = member.stop
        return await asyncio.wait_for(member.take_part(), PATIENCE_S)

    assert asyncio.run(run()) == Ended(sent=10, delivered=10)
