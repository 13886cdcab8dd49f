"""Groups whose members change as their first page shows them: founders with journals and a replicated object, and somebody who
joins through a contact."""

from __future__ import annotations

import asyncio
from pathlib import Path

import quire
from tests.live.dynamic.kit import places, run


class Board(quire.Replicated):
    items: dict[str, int]

    @quire.command
    def put(self, key: str, value: int) -> int:
        self.items[key] = value
        return len(self.items)

    @quire.query
    def get(self, key: str) -> int | None:
        return self.items.get(key)


def test_founders_events_a_replicated_object_and_somebody_who_joins(tmp_path: Path) -> None:
    async def main() -> None:
        where = places("tcp", "abcd")
        members = {name: where[name] for name in "abc"}
        put, joined = asyncio.Event(), asyncio.Event()

        async def found(me: str) -> None:
            board = Board()
            async with quire.join(
                "board", me=me, members=members, order="total", journal=tmp_path / f"{me}.journal", state=board
            ) as group:
                if me == "a":
                    assert await board.put("a", 1) == 1
                    put.set()
                await put.wait()
                assert await board.get("a") == 1
                assert board.get.local("a") == 1
                async for event in group.events():
                    match event:
                        case quire.View(members=names) if "d" in names:
                            break
                assert group.view is not None
                assert group.view.senior in "abc"
                await joined.wait()
                await group.leave() if me != "a" else await group.close()

        async def join() -> None:
            await put.wait()
            board = Board()
            async with quire.join(
                "board", me="d", at=where["d"], contact=[where["b"]], order="total", journal=tmp_path / "d.journal", state=board
            ) as group:
                assert board.get.local("a") == 1
                assert await board.put("d", 2) == 2
                assert group.view is not None
                assert set(group.view.members) == set("abcd")
                joined.set()
                await group.leave()

        await asyncio.gather(*map(found, "abc"), join())

    run("tcp", main())
