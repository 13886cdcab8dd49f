"""Live groups of objects that go on without members that are lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import pytest

import quire
from quire.live.events import Event
from quire.live.network.transports.memory import MemoryNetwork
from quire.live.settings import read_address
from quire.objects.call import Call
from tests.kit.virtual_time import run_in_virtual_time

MEMBERS = [f"127.0.0.1:{7000 + number}" for number in range(3)]
VIEWS = [f"127.0.0.1:{7100 + number}" for number in range(3)]
LOST = 2


class Account(quire.Object):
    def __init__(self) -> None:
        self.balance = 0

    @quire.operation
    async def deposit(self, call: Call, amount: int) -> int:
        self.balance += amount
        return self.balance

    @quire.operation
    async def wait(self, call: Call) -> None:
        await asyncio.sleep(1e6)

    @quire.operation
    async def have(self, call: Call, whom: str) -> None:
        await call.invoke(whom, "wait")


class Board(quire.Object):
    compatible: ClassVar = {("note", "note")}

    def __init__(self) -> None:
        self.notes: list[str] = []

    @quire.operation
    async def note(self, call: Call, text: str) -> None:
        self.notes.append(text)


OBJECTS = {
    "alice": quire.place(Account, 0),
    "bob": quire.place(Account, 1),
    "carol": quire.place(Account, LOST),
    "shared": quire.place(Account, 0, 1, LOST),
    "board": quire.place(Board, 0, 1, LOST),
}


class Hosts:
    """Members in one event loop."""

    def __init__(self, members: int = 3, trace: Path | None = None) -> None:
        self.events: list[Event] = []
        self.trace = trace
        self.members = [f"127.0.0.1:{7000 + number}" for number in range(members)]
        self.views = [f"127.0.0.1:{7100 + number}" for number in range(members)]
        self.groups = [self._join(me) for me in range(members)]
        self.ended = asyncio.Event()
        self.errors: list[BaseException] = []

    def _objects(self) -> dict[str, Any]:
        return OBJECTS | {"everywhere": quire.place(Account, *range(len(self.members)))}

    def _join(self, me: int) -> quire.ObjectGroup:
        return quire.join_objects(
            "hosts", me=me, members=self.members, views=self.views, objects=self._objects(), transport="memory",
            trace=self.trace, on_event=self.events.append if me == 0 else None,
        )  # fmt: skip

    async def serve(self, me: int) -> None:
        try:
            async with self.groups[me]:
                await self.ended.wait()
        except quire.QuireError as error:
            self.errors.append(error)

    def part(self, one: int, other: int) -> None:
        """They do not reach each other, but still agree."""
        network = MemoryNetwork.of(asyncio.get_running_loop())
        network.part(read_address(self.members[one]), read_address(self.members[other]))

    def cut_off(self, member: int) -> None:
        network = MemoryNetwork.of(asyncio.get_running_loop())
        for address in (self.members[member], self.views[member]):
            network.cut_off(read_address(address))

    def mend(self, member: int) -> None:
        network = MemoryNetwork.of(asyncio.get_running_loop())
        for address in (self.members[member], self.views[member]):
            network.mend(read_address(address))


def run(
    act: Callable[[Hosts, quire.ObjectGroup], Awaitable[None]], members: int = 3, lost: int = 1, trace: Path | None = None
) -> Hosts:
    """Everybody serves until member 0 has acted; the last of them may be lost then."""
    made: list[Hosts] = []

    async def main() -> None:
        hosts = Hosts(members, trace)
        made.append(hosts)
        others = [asyncio.create_task(hosts.serve(me)) for me in range(1, members)]
        async with hosts.groups[0] as group:
            await act(hosts, group)
            hosts.ended.set()
        await asyncio.gather(*others[:-lost])
        for each in others[-lost:]:
            each.cancel()
            with suppress(asyncio.CancelledError):
                await each

    run_in_virtual_time(main())
    return made[0]


def test_a_call_whose_host_is_lost_fails_and_the_others_go_on() -> None:
    async def act(hosts: Hosts, group: quire.ObjectGroup) -> None:
        assert await group.invoke("shared", "deposit", 1) == 1
        waits = asyncio.ensure_future(group.invoke("carol", "wait"))
        by_way_of_it = asyncio.ensure_future(group.invoke("bob", "have", "carol"))
        await asyncio.sleep(0.1)
        hosts.cut_off(LOST)
        with pytest.raises(quire.CallFailed, match="carol is gone with its host, member 2") as e:
            await waits
        assert e.value.host == LOST  # type: ignore[attr-defined]
        with pytest.raises(quire.CallAborted, match="carol is gone"):
            await by_way_of_it
        with pytest.raises(quire.CallFailed, match="member 2"):
            await group.invoke("carol", "deposit", 1)
        assert await group.invoke("bob", "deposit", 5) == 5
        assert await group.invoke("shared", "deposit", 1) == 2
        assert await group.invoke(["alice", "bob", "shared"], "deposit", 1) == {"alice": 1, "bob": 6, "shared": 3}

    hosts = run(act)
    assert [event.peers for event in hosts.events if event.kind == "evicted"] == [(LOST,)]
    assert [hosts.groups[me].objects["shared"].balance for me in (0, 1)] == [3, 3]  # type: ignore[attr-defined]
    assert hosts.errors == []


def test_nothing_is_lost_where_nobody_is() -> None:
    async def act(hosts: Hosts, group: quire.ObjectGroup) -> None:
        for number in range(20):
            assert await group.invoke("shared", "deposit", 1) == number + 1
        hosts.ended.set()

    hosts = run(act)
    assert not [event for event in hosts.events if event.kind in ("lost", "evicted")]
    assert hosts.errors == []


def test_a_host_that_was_cut_off_learns_that_the_others_went_on_and_answers_nothing() -> None:
    async def act(hosts: Hosts, group: quire.ObjectGroup) -> None:
        hosts.cut_off(LOST)
        late = asyncio.ensure_future(hosts.groups[LOST].invoke("shared", "deposit", 100))
        while not any(event.kind == "evicted" for event in hosts.events):
            await asyncio.sleep(0.1)
        assert await group.invoke("shared", "deposit", 1) == 1
        hosts.mend(LOST)
        with pytest.raises(quire.GroupFailed, match="the group continued without this member"):
            await late
        assert await group.invoke("shared", "deposit", 1) == 2

    hosts = run(act)
    assert [hosts.groups[me].objects["shared"].balance for me in (0, 1)] == [2, 2]  # type: ignore[attr-defined]


@pytest.mark.parametrize("other", [0, 1])
def test_what_came_to_one_of_those_who_go_on_comes_to_the_other(other: int) -> None:
    """The one that is lost could reach only one of them before."""

    async def act(hosts: Hosts, group: quire.ObjectGroup) -> None:
        hosts.part(LOST, 1 - other)
        last = asyncio.create_task(hosts.groups[LOST].invoke("shared", "deposit", 5))
        while not hosts.groups[other].objects["shared"].balance:  # type: ignore[attr-defined]
            await asyncio.sleep(0.01)
        hosts.cut_off(LOST)
        assert await group.invoke("shared", "deposit", 1) == 6
        last.cancel()

    hosts = run(act)
    assert [hosts.groups[me].objects["shared"].balance for me in (0, 1)] == [6, 6]  # type: ignore[attr-defined]


@pytest.mark.parametrize("apart_s", [0.0, 0.6, 1.05, 1.1, 2.5])
def test_several_are_lost_one_while_the_others_agree_about_another(apart_s: float) -> None:
    async def act(hosts: Hosts, group: quire.ObjectGroup) -> None:
        async def work(host: quire.ObjectGroup) -> None:
            for _ in range(40):
                await host.invoke("everywhere", "deposit", 1)
                await asyncio.sleep(0.1)

        working = [asyncio.create_task(work(host)) for host in hosts.groups]
        await asyncio.sleep(0.5)
        hosts.cut_off(4)
        await asyncio.sleep(apart_s)
        hosts.cut_off(3)
        await asyncio.gather(*working[:3])
        for task in working[3:]:
            task.cancel()

    hosts = run(act, members=5, lost=2)
    assert sorted(peer for event in hosts.events if event.kind == "evicted" for peer in event.peers) == [3, 4]
    balances = [hosts.groups[me].objects["everywhere"].balance for me in range(3)]  # type: ignore[attr-defined]
    assert balances[0] == balances[1] == balances[2] >= 3 * 40
    assert hosts.errors == []


@pytest.mark.parametrize(
    ("views", "why"),
    [
        (VIEWS[:2], "views needs a list of 3 addresses"),
        (VIEWS[0], "views needs a list of 3 addresses"),
        ([MEMBERS[0], *VIEWS[1:]], "addresses of their own"),
    ],
)
def test_addresses_of_views_that_cannot_be_are_refused(views: list[str], why: str) -> None:
    with pytest.raises(quire.BadInput, match=why):
        quire.join_objects("hosts", me=0, members=MEMBERS, views=views, objects=OBJECTS)
