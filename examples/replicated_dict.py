"""A dictionary with a copy at every member. In one terminal each:

    python examples/replicated_dict.py 0 127.0.0.1:7000 127.0.0.1:7001
    python examples/replicated_dict.py 1 127.0.0.1:7000 127.0.0.1:7001

Type `set KEY VALUE`, `get KEY`, `delete KEY`, or `quit`. Writes go through the group in total order, so that all copies
take the same steps and never differ; reads are local and cost nothing.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress

from terminal import lines

import quire


class ReplicatedDict:
    """Read `items`, and keep `follow` running. A write returns when it is in the local copy, so that the next read sees it."""

    def __init__(self, group: quire.DynamicGroup) -> None:
        self.items: dict[str, str] = {}
        self._group = group
        self._position: tuple[int, ...] = ()
        self._moved = asyncio.Condition()

    async def set(self, key: str, value: str) -> None:
        await self._write(["set", key, value])

    async def delete(self, key: str) -> None:
        await self._write(["delete", key])

    async def _write(self, operation: list[str]) -> None:
        message = await self._group.execute(json.dumps(operation).encode())
        async with self._moved:
            await self._moved.wait_for(lambda: self._position >= (message.order_key or ()))

    async def follow(self) -> None:
        """Apply everybody's writes, in the order that all copies share, until the group ends."""
        async for message in self._group:
            match json.loads(message.payload):
                case ["set", key, value]:
                    self.items[key] = value
                case ["delete", key]:
                    self.items.pop(key, None)
            async with self._moved:
                self._position = message.order_key or ()
                self._moved.notify_all()


async def obey(group: quire.DynamicGroup, copy: ReplicatedDict) -> None:
    with suppress(quire.QuireError):  # `follow` is told as well.
        async for line in lines():
            match line.split(maxsplit=2):
                case ["set", key, value]:
                    await copy.set(key, value)
                case ["delete", key]:
                    await copy.delete(key)
                case ["get", key]:
                    print(copy.items.get(key), flush=True)
                case ["quit"]:
                    break
        await group.close()


async def main(me: int, members: list[str]) -> None:
    async with quire.join("dictionary", me=me, members=members, order="total") as group:
        copy = ReplicatedDict(group)
        obeying = asyncio.create_task(obey(group, copy))
        await copy.follow()
        obeying.cancel()
    print(json.dumps(copy.items, sort_keys=True))


if __name__ == "__main__":
    try:
        asyncio.run(main(int(sys.argv[1]), sys.argv[2:]))
    except quire.QuireError as error:
        sys.exit(f"replicated_dict: {error}")
