"""A host of objects that calls objects at all hosts all the time, until it ends or the others go on without it."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import quire
from tests.faults.chaos.worker import Notes, run, say

PAUSE_S = 0.03
SHARED = ("shared-0", "shared-1")
"""Objects with a replica at every host."""


class Ledger(quire.Object):
    """All of its operations conflict. It notes which calls it has run, and taken back, in their order; and that is its
    state."""

    notes: Notes
    name: str

    def __init__(self) -> None:
        self.done: list[list[Any]] = []

    def __getstate__(self) -> list[list[Any]]:
        return self.done

    def __setstate__(self, state: list[list[Any]]) -> None:
        self.done = state

    @quire.operation(calls=False)
    async def enter(self, call: quire.Call, caller: int, number: int) -> None:
        self._note("ran", caller, number)

    @enter.undo
    def erase(self, call: quire.Call, caller: int, number: int) -> None:
        self._note("undone", caller, number)

    def _note(self, what: str, caller: int, number: int) -> None:
        self.done.append([what, self.name, caller, number])
        self.notes(what, self.name, caller, number)

    @quire.operation
    async def pass_on(self, call: quire.Call, to: str, caller: int, number: int) -> None:
        await call.invoke(to, "enter", caller, number)


def own(host: int) -> str:
    """The object that lives at this host alone."""
    return f"own-{host}"


def by_way_of(host: int, name: str) -> str:
    """A call of that object which the host's own one makes."""
    return f"{own(host)}>{name}"


class Host:
    def __init__(self, group: quire.ObjectGroup, hosts: int, notes: Notes, over: asyncio.Event, first: int) -> None:
        """`first`: it numbers its calls from here on."""
        self._first = first
        self._group = group
        self._notes = notes
        self._over = over
        self._names = [*SHARED, *(own(host) for host in range(hosts))]
        self._names += [by_way_of(host, name) for host in range(hosts) for name in SHARED]
        self._choose = random.Random(group.me)
        self._calls: set[asyncio.Task[None]] = set()

    async def work(self) -> None:
        watching = asyncio.create_task(self._watch())
        try:
            number = self._first
            while not self._over.is_set() and not self._group._host.ended:
                call = asyncio.create_task(self._call(self._choose.choice(self._names), number))
                self._calls.add(call)
                call.add_done_callback(self._calls.discard)
                number += 1
                await asyncio.sleep(PAUSE_S)
            await asyncio.gather(*self._calls)
        finally:
            watching.cancel()

    async def _call(self, name: str, number: int) -> None:
        self._notes("began", name, number)
        first, _, then = name.partition(">")
        try:
            if then:
                await self._group.invoke(first, "pass_on", then, self._group.me, number)
            else:
                await self._group.invoke(first, "enter", self._group.me, number)
        except quire.HostLost as error:
            if first != own(error.host):
                say(wrong=f"a call of {name} failed with host {error.host}")
            self._notes("failed", name, number)
        except quire.GroupFailed:
            self._notes("unknown", name, number)  # The others went on without this host.
        else:
            self._notes("answered", name, number)

    async def _watch(self) -> None:
        """Say who is there, as the hosts have agreed."""
        assert self._group._group is not None
        before: tuple[str, ...] = ()
        while True:
            view = self._group._group.view
            if view is not None and view.members != before:
                before = view.members
                say(view=sorted(map(int, before)))
            await asyncio.sleep(PAUSE_S)


async def main(given: dict[str, Any], over: asyncio.Event) -> None:
    me, hosts = given["me"], len(given["members"])
    notes = Notes(Path(given["notes"], f"{me}-{given['start']}"))
    objects = {name: quire.place(Ledger, *range(hosts)) for name in SHARED}
    objects |= {own(host): quire.place(Ledger, host) for host in range(hosts)}
    joining = quire.join_objects(
        "ledgers", me=me, members=given["members"], views=given["views"], objects=objects, timeout_s=given["timeout_s"],
        join_s=600, insecure=True, trace=given["trace"],
    )  # fmt: skip
    for name, ledger in joining.objects.items():
        assert isinstance(ledger, Ledger)
        ledger.notes, ledger.name = notes, name
    try:
        async with joining as group:
            say(ready=True)
            await Host(group, hosts, notes, over, given["start"] * 1_000_000).work()
            say(idle=True)
        for name in SHARED:
            state = group.objects[name]
            assert isinstance(state, Ledger)
            notes("state", name, state.done)
    except (quire.GroupFailed, quire.NotDelivered) as error:
        say(excluded=str(error.__cause__ or error))


if __name__ == "__main__":
    run(main)
