"""A member that is asked to stop while it joins, when others have begun already, joins first and then closes with them."""

from __future__ import annotations

import asyncio

import pytest

from quire.live.network.gathering import Gathering
from quire.live.runs.exchange import PlannedLoad
from quire.live.runs.fixed_member import FixedMember
from quire.live.runs.fleet import free_addresses
from quire.live.runs.plan import Plan
from quire.live.runs.progress import Ended

PATIENCE_S = 60


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
