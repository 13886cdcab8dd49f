"""A replica of a bank with a journal, or a teller that transfers money all the time, counts its transfers and adds up."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import quire
from quire.protocols.transactions.quorum_replica import QuorumReplica
from tests.faults.chaos.worker import Notes, run, say

REPLICAS = 3
ACCOUNTS = [f"account-{number}" for number in range(6)]
OPENED = 100
PAUSE_S = 0.02
UNCHANGED = (quire.NoQuorum, quire.RetryLimit)
"""What a transaction raises that has changed nothing."""

T = TypeVar("T")


async def serve(member: quire.StoreMember, over: asyncio.Event) -> None:
    node = member._host.node
    assert isinstance(node, QuorumReplica)
    while not over.is_set() and member._host.failure is None:
        if not node.recovering:
            say(begun=True)
            await asyncio.wait(
                [asyncio.ensure_future(each) for each in (over.wait(), member._host.until_ended())],
                return_when=asyncio.FIRST_COMPLETED,
            )
        await asyncio.sleep(PAUSE_S)


class Teller:
    """What it knows of its own transfers it notes at once; `counted` is the key under which the store counts them."""

    def __init__(self, me: int, store: quire.Store, notes: Notes, over: asyncio.Event) -> None:
        self.counted = counted(me)
        self._store = store
        self._notes = notes
        self._over = over
        self._choose = random.Random(me)
        self._number = 0

    async def open(self) -> None:
        """The accounts, if nobody has yet."""

        async def program(t: quire.Transaction) -> None:
            if await t.read(ACCOUNTS[0]) is None:
                for account in ACCOUNTS:
                    await t.write(account, OPENED)

        await self._until_done(program)

    async def work(self) -> None:
        while not self._over.is_set():
            await (self.add_up if self._choose.random() < 0.2 else self._transfer)()
            await asyncio.sleep(PAUSE_S)

    async def add_up(self) -> None:
        """The sum is right at every moment."""

        async def program(t: quire.Transaction) -> int:
            return sum([await t.read(account) for account in ACCOUNTS])

        if (total := await self._until_done(program)) != OPENED * len(ACCOUNTS):
            say(wrong=f"all accounts together hold {total}")

    async def _transfer(self) -> None:
        one, other = self._choose.sample(ACCOUNTS, 2)
        number, amount = self._number, self._choose.randint(1, 10)
        self._number += 1

        async def program(t: quire.Transaction) -> None:
            count, _ = await t.read(self.counted) or (0, 0)
            await t.write(one, await t.read(one) - amount)
            await t.write(other, await t.read(other) + amount)
            await t.write(self.counted, (count + 1, number))

        self._notes("began", number)
        try:
            await self._store.run(program)
        except quire.OutcomeUnknown:
            last = await self._until_done(lambda t: t.read(self.counted))
            self._notes("committed" if last is not None and last[1] == number else "aborted", number)
        except UNCHANGED:
            self._notes("aborted", number)
        else:
            self._notes("committed", number)

    async def count(self, tellers: range) -> dict[str, Any]:
        """How many transfers the store has of each, and which was the last."""

        async def program(t: quire.Transaction) -> dict[str, Any]:
            return {counted(me): await t.read(counted(me)) for me in tellers}

        return await self._until_done(program)

    async def _until_done(self, program: Callable[[quire.Transaction], Awaitable[T]]) -> T:
        """Of a program that may be run more than once."""
        while True:
            try:
                return await self._store.run(program)
            except (*UNCHANGED, quire.OutcomeUnknown):
                await asyncio.sleep(PAUSE_S)


def counted(teller: int) -> str:
    return f"transfers of {teller}"


async def main(given: dict[str, Any], over: asyncio.Event) -> None:
    me, members = given["me"], given["members"]
    joining = quire.join_store(
        "bank", me=me, members=members, replicas=REPLICAS, codec=quire.JSON, journal=given["journal"], trace=given["trace"],
        timeout_s=given["timeout_s"], join_s=600, insecure=True,
    )  # fmt: skip
    async with joining as member:
        if me < REPLICAS:
            say(ready=True)
            await serve(member, over)
            return
        teller = Teller(me, member.store, Notes(Path(given["notes"], str(me))), over)
        await teller.open()
        say(ready=True)
        await teller.work()
        await teller.add_up()
        say(idle=True, counts=await teller.count(range(REPLICAS, len(members))))


if __name__ == "__main__":
    run(main)
