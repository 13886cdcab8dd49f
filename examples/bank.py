"""A bank whose accounts are replicated, and tellers who transfer money at the same time. In one terminal each:

    python examples/bank.py 0 3 127.0.0.1:7000 127.0.0.1:7001 127.0.0.1:7002 127.0.0.1:7003 127.0.0.1:7004
    python examples/bank.py 1 3 … (the same addresses), and so on up to 4

The first three processes keep the accounts; any one of them may be killed, and started again. With `--journal DIR` at the end
they keep them on disk, each in a directory of its own, so that all may be killed. The others are tellers.

Type `open NAME AMOUNT`, `show NAME`, `move FROM TO AMOUNT`, `shuffle COUNT` (random transfers between all accounts), `total`,
or `quit`.
"""

from __future__ import annotations

import asyncio
import random
import sys

from terminal import lines

import quire

ACCOUNTS = "accounts"
"""The key under which the names of all accounts are kept."""


class Teller:
    def __init__(self, store: quire.Store) -> None:
        self._store = store

    async def open(self, name: str, amount: int) -> str:
        async def program(t: quire.Transaction) -> str:
            names = await t.read(ACCOUNTS) or []
            if name in names:
                return f"{name} has an account already"
            await t.write(ACCOUNTS, [*names, name])
            await t.write(name, amount)
            return f"{name} has {amount}"

        return await self._store.run(program)

    async def show(self, name: str) -> str:
        async with self._store.transaction() as t:
            return f"{name} has {await t.read(name)}"

    async def move(self, one: str, other: str, amount: int) -> str:
        async def program(t: quire.Transaction) -> str:
            here, there = await t.read(one), await t.read(other)
            if here is None or there is None or here < amount:
                return "that cannot be"
            await t.write(one, here - amount)
            await t.write(other, there + amount)
            return f"moved {amount} from {one} to {other}"

        return await self._store.run(program)

    async def names(self) -> list[str]:
        return await self._store.run(lambda t: t.read(ACCOUNTS)) or []

    async def shuffle(self, count: int) -> str:
        names = await self.names()
        for _ in range(count):
            one, other = random.sample(names, 2)
            await self.move(one, other, random.randint(1, 10))  # noqa: S311
        return f"made {count} transfers"

    async def total(self) -> str:
        async def program(t: quire.Transaction) -> int:
            return sum([await t.read(name) for name in await t.read(ACCOUNTS) or []])

        return f"all accounts together hold {await self._store.run(program)}"


async def obey(teller: Teller) -> None:
    async for line in lines():
        try:
            match line.split():
                case ["open", name, amount]:
                    print(await teller.open(name, int(amount)), flush=True)
                case ["show", name]:
                    print(await teller.show(name), flush=True)
                case ["move", one, other, amount]:
                    print(await teller.move(one, other, int(amount)), flush=True)
                case ["shuffle", count]:
                    print(await teller.shuffle(int(count)), flush=True)
                case ["total"]:
                    print(await teller.total(), flush=True)
                case ["quit"]:
                    return
                case _:
                    print("open NAME AMOUNT, show NAME, move FROM TO AMOUNT, shuffle COUNT, total, quit", flush=True)
        except (quire.TransactionError, ValueError) as error:
            print(error, flush=True)


async def main(me: int, replicas: int, members: list[str]) -> None:
    journal = None
    if "--journal" in members:
        *members, _, journal = members
    member = quire.join_store("bank", me=me, members=members, replicas=replicas, codec=quire.JSON, timeout_s=5, journal=journal)
    async with member:
        print("Everybody is here.", flush=True)
        if me >= replicas:
            await obey(Teller(member.store))


if __name__ == "__main__":
    try:
        asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))
    except (quire.QuireError, IndexError, ValueError) as error:
        sys.exit(f"bank: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
