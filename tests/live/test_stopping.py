"""Members that are asked to stop, while others were not asked, or have begun already: all of them end, and say so."""

from __future__ import annotations

import asyncio

import pytest

from quire.live.network.gathering import Gathering
from quire.live.runs.fleet import free_addresses
from quire.live.runs.member import Member
from quire.live.runs.plan import Plan
from quire.live.runs.progress import Ended
from quire.protocols.contract import Deliver
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
        plan = Plan(members=free_addresses(2), messages=1_000_000, timeout_s=PATIENCE_S, order="total")
        members = [Member(plan, me, None) for me in range(2)]
        async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(member.take_part(member.send_load, member.count_load)) for member in members]
            while not members[0].delivered:
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


def test_a_member_with_which_others_close_the_group_says_as_they_do_that_not_everything_was_sent() -> None:
    async def run() -> list[Ended]:
        plan = Plan(members=free_addresses(2), messages=1_000_000_000, timeout_s=PATIENCE_S, order="total")
        members = [Member(plan, me, None) for me in range(2)]
        async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(member.take_part(member.send_load, member.count_load)) for member in members]
            while not members[0].delivered:
                await asyncio.sleep(0.01)
            members[1].stop()
        return [task.result() for task in running]

    assert [(ended.stopped, ended.error) for ended in asyncio.run(run())] == [(True, ""), (True, "")]


def test_a_member_that_is_asked_to_stop_when_it_has_everything_was_not_stopped() -> None:
    async def run() -> Ended:
        member = Member(Plan(members=free_addresses(1), messages=10, order="total"), 0, None)

        async def count_and_stop(delivery: Deliver) -> bool:
            if everything := await member.count_load(delivery):
                member.stop()
            return everything

        return await asyncio.wait_for(member.take_part(member.send_load, count_and_stop), PATIENCE_S)

    assert asyncio.run(run()) == Ended(sent=10, delivered=10)
