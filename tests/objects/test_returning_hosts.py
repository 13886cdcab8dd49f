"""Live groups of objects to which lost members come back: they have what the others have, and take part."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import pytest

import quire
from quire.live.runs.collecting import collect
from quire.objects.call import Call
from quire.pipeline.auditing.auditor import audit_here
from tests.kit.virtual_time import run_in_virtual_time
from tests.objects.test_surviving import LOST, Hosts


class Returning(Hosts):
    """Members in one event loop, each of which can be lost, and another process started in its place."""

    def __init__(self, members: int = 3, trace: Path | None = None, objects: dict[str, Any] | None = None) -> None:
        self.extra = objects or {}
        super().__init__(members, trace)
        self.serving: dict[int, asyncio.Task[None]] = {}

    def start(self, me: int) -> None:
        self.serving[me] = asyncio.create_task(self.serve(me))

    async def lose(self, member: int) -> None:
        """As if its process were killed; returns when the others go on without it."""
        lost = len(self.evicted())
        self.cut_off(member)
        self.serving[member].cancel()
        with suppress(asyncio.CancelledError):
            await self.serving[member]
        while len(self.evicted()) == lost:
            await asyncio.sleep(0.05)

    def evicted(self) -> list[int]:
        return [int(peer) for event in self.events if event.kind == "evicted" for peer in event.peers]

    async def come_back(self, member: int, apart_from: int | None = None) -> quire.ObjectGroup:
        """Returns when it takes part."""
        self.mend(member)
        if apart_from is not None:
            self.part(member, apart_from)
        self.groups[member] = self._join(member)
        began = asyncio.Event()

        async def serve() -> None:
            async with self.groups[member]:
                began.set()
                await self.ended.wait()

        self.serving[member] = asyncio.create_task(serve())
        waits = asyncio.create_task(began.wait())
        await asyncio.wait((self.serving[member], waits), return_when=asyncio.FIRST_COMPLETED)
        if not began.is_set():
            waits.cancel()
            await self.serving[member]
        return self.groups[member]

    def _objects(self) -> dict[str, Any]:
        return super()._objects() | self.extra


def run(
    act: Callable[[Returning, quire.ObjectGroup], Awaitable[None]],
    members: int = 3,
    trace: Path | None = None,
    objects: dict[str, Any] | None = None,
) -> Returning:
    made: list[Returning] = []

    async def main() -> None:
        hosts = Returning(members, trace, objects)
        made.append(hosts)
        for me in range(1, members):
            hosts.start(me)
        async with hosts.groups[0] as group:
            await act(hosts, group)
            hosts.ended.set()
        await asyncio.gather(*hosts.serving.values())

    run_in_virtual_time(main())
    return made[0]


def balance(hosts: Returning, member: int, name: str = "shared") -> int:
    return hosts.groups[member].objects[name].balance  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize("lost", [1, LOST])
def test_a_host_that_comes_back_has_the_state_of_its_replicas_and_takes_part(lost: int) -> None:
    async def act(hosts: Returning, group: quire.ObjectGroup) -> None:
        for number in range(5):
            assert await group.invoke("shared", "deposit", 1) == number + 1
        await hosts.lose(lost)
        assert await group.invoke("shared", "deposit", 10) == 15
        again = await hosts.come_back(lost)
        assert balance(hosts, lost) == 15
        assert await group.invoke("shared", "deposit", 100) == 115
        assert await again.invoke("shared", "deposit", 1000) == 1115
        assert await again.invoke("alice", "deposit", 1) == 1

    hosts = run(act)
    assert [balance(hosts, me) for me in range(3)] == [1115] * 3
    assert hosts.evicted() == [lost]


def test_a_host_that_was_lost_before_another_that_came_back_had_met_it_comes_back_to_both() -> None:
    async def act(hosts: Returning, group: quire.ObjectGroup) -> None:
        await hosts.lose(1)
        await hosts.come_back(1, apart_from=LOST)
        await hosts.lose(LOST)
        await hosts.come_back(LOST)
        answered, late = await asyncio.wait([asyncio.ensure_future(group.invoke("shared", "deposit", 1))], timeout=100)
        assert not late
        assert [each.result() for each in answered] == [1]

    hosts = run(act)
    assert [balance(hosts, me) for me in range(3)] == [1] * 3


def test_what_lived_only_there_stays_lost() -> None:
    async def act(hosts: Returning, group: quire.ObjectGroup) -> None:
        await group.invoke("carol", "deposit", 7)
        await hosts.lose(LOST)
        again = await hosts.come_back(LOST)
        for each in (group, again):
            with pytest.raises(quire.CallFailed, match="carol is gone with its host, member 2"):
                await each.invoke("carol", "deposit", 1)

    run(act)


def test_calls_go_on_while_a_host_comes_back_and_none_is_lost_or_run_twice() -> None:
    async def act(hosts: Returning, group: quire.ObjectGroup) -> None:
        async def work(host: quire.ObjectGroup) -> None:
            for _ in range(60):
                await host.invoke("everywhere", "deposit", 1)
                await asyncio.sleep(0.05)

        working = [asyncio.create_task(work(host)) for host in hosts.groups[:2]]
        await hosts.lose(LOST)
        await hosts.come_back(LOST)
        await hosts.lose(LOST)
        await hosts.come_back(LOST)
        await asyncio.gather(*working)

    hosts = run(act)
    assert [balance(hosts, me, "everywhere") for me in range(3)] == [120] * 3


def test_two_hosts_come_back_at_once_and_then_the_one_that_handed_over_is_lost() -> None:
    async def act(hosts: Returning, group: quire.ObjectGroup) -> None:
        await group.invoke("everywhere", "deposit", 5)
        await hosts.lose(3)
        await hosts.lose(4)
        await asyncio.gather(hosts.come_back(3), hosts.come_back(4))
        await hosts.lose(1)
        await hosts.lose(2)
        assert await hosts.groups[4].invoke("everywhere", "deposit", 1) == 6
        await asyncio.gather(hosts.come_back(1), hosts.come_back(2))
        assert await hosts.groups[2].invoke("everywhere", "deposit", 1) == 7

    hosts = run(act, members=5)
    assert [balance(hosts, me, "everywhere") for me in range(5)] == [7] * 5


class Tupled(quire.Object):
    compatible: ClassVar = {("put", "put")}

    def __init__(self) -> None:
        self.pairs: list[tuple[int, int]] = [(0, 0)]

    @quire.operation
    async def put(self, call: Call, number: int) -> None:
        self.pairs.append((number, number))


def test_a_state_that_is_not_plain_data_is_refused_at_the_host_that_comes_back() -> None:
    async def act(hosts: Returning, group: quire.ObjectGroup) -> None:
        await hosts.lose(LOST)
        with pytest.raises(quire.BadInput, match=r"pairs cannot be handed over.*Tupled is not plain data"):
            await hosts.come_back(LOST)
        hosts.serving.pop(LOST)
        await group.invoke("shared", "deposit", 1)

    run(act, objects={"pairs": quire.place(Tupled, 0, 1, 2)})


def test_the_trace_of_members_that_came_back_proves_the_order(tmp_path: Path) -> None:
    async def act(hosts: Returning, group: quire.ObjectGroup) -> None:
        for _ in range(5):
            await group.invoke("shared", "deposit", 1)
        await hosts.lose(LOST)
        await group.invoke("shared", "deposit", 1)
        again = await hosts.come_back(LOST)
        for _ in range(5):
            await again.invoke(["alice", "shared"], "deposit", 1)
            await group.invoke("shared", "deposit", 1)

    run(act, trace=tmp_path / "parts")
    collect(tmp_path / "parts", tmp_path / "run")
    audit = audit_here(tmp_path / "run")
    assert {name: audit.checks[name].because for name in audit.expected if audit.checks[name].verdict != "holds"} == {}
