"""Journals of live members: whose they are, what comes back from them, and that they stay short."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import quire
from quire.journal.summary import summarise
from tests.live.dynamic.kit import crash, places, run, together
from tests.live.dynamic.test_states import Board, Tape


def founders(folder: Path, where: dict[str, str], state: Any = None, **chosen: Any) -> list[quire.DynamicGroup]:
    settings: dict[str, Any] = {"order": "total", "timeout_s": 2.0} | chosen
    return [
        quire.join("test", me=name, members=where, journal=folder / name, state=state and state[name], **settings)
        for name in where
    ]


def test_everybody_comes_back_from_their_journals_with_their_state(tmp_path: Path) -> None:
    async def main() -> None:
        where = places("tcp", "abc")
        boards = {name: Board() for name in where}
        async with together(founders(tmp_path, where, boards)) as members:
            for number in range(20):
                await boards["b"].put(f"key {number}", number)
            assert members["a"].group.view is not None
            number = members["a"].group.view.number
        again = {name: Board() for name in where}
        async with together(founders(tmp_path, where, again)) as members:
            for board in again.values():
                assert await board.get("key 19") == 19
                assert board.items == boards["b"].items
            assert members["a"].group.view is not None
            assert members["a"].group.view.number > number
            assert await again["a"].put("key 20", 20) == 21
            assert await again["c"].get("key 20") == 20

    run("tcp", main())


def test_a_journal_is_shortened_as_it_grows_and_brings_everything_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quire.live.journals.CHECKPOINT_BYTES", 20_000)

    async def main() -> None:
        where = places("tcp", "ab")
        boards = {name: Board() for name in where}
        async with together(founders(tmp_path, where, boards)):
            written = 0
            while not (tmp_path / "a" / "000003.log").exists():
                await asyncio.gather(*(boards["a"].put(f"key {key}", written) for key in range(50)))
                written += 1
            await boards["b"].put("last", 1)
        size = summarise(tmp_path / "a").records
        assert size < 50 * written
        again = {name: Board() for name in where}
        async with together(founders(tmp_path, where, again)):
            assert await again["b"].get("last") == 1
            for board in again.values():
                assert await board.get("last") == 1
                assert board.items == boards["b"].items
            await again["a"].put("and on", 1)

    run("tcp", main())


def test_a_state_that_the_application_keeps_comes_back_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quire.live.journals.CHECKPOINT_BYTES", 20_000)

    async def keep(group: quire.DynamicGroup, tape: Tape) -> None:
        async for message in group:
            tape.lines.append(message.payload)

    async def main() -> None:
        where = places("tcp", "a")
        (group,) = founders(tmp_path, where, {"a": (tape := Tape())})
        await group.__aenter__()
        keeping = asyncio.ensure_future(keep(group, tape))
        number = 0
        while not (tmp_path / "a" / "000003.log").exists():
            for _ in range(20):
                await group.execute(b"line %d" % number)
                number += 1
        await crash(group)
        await keeping
        assert len(tape.lines) == number
        (group,) = founders(tmp_path, where, {"a": (again := Tape())})
        await group.__aenter__()
        keeping = asyncio.ensure_future(keep(group, again))
        await group.execute(b"end")
        await group.close()
        await keeping
        assert again.lines == [*tape.lines, b"end"]

    run("tcp", main())


def test_a_journal_belongs_to_one_process_at_a_time(tmp_path: Path) -> None:
    async def main() -> None:
        where = places("tcp", "a")
        async with together(founders(tmp_path, where)):
            (second,) = founders(tmp_path, where)
            with pytest.raises(quire.BadInput, match="is in use by process"):
                await second.__aenter__()
        (third,) = founders(tmp_path, where)
        async with third:
            await third.execute(b"after the first has ended")

    run("tcp", main())


def test_a_damaged_journal_is_refused_and_says_what_to_do(tmp_path: Path) -> None:
    async def main() -> None:
        where = places("tcp", "a")
        async with together(founders(tmp_path, where)) as members:
            for number in range(5):
                await members["a"].group.execute(b"%d" % number)
        log = tmp_path / "a" / "000001.log"
        data = bytearray(log.read_bytes())
        data[len(data) // 3] ^= 255
        log.write_bytes(data)
        (group,) = founders(tmp_path, where)
        with pytest.raises(quire.JournalCorrupt, match="start without it, as a new member"):
            await group.__aenter__()
        assert log.read_bytes() == data

    run("tcp", main())


def test_a_group_with_a_journal_lets_nobody_in_without_one(tmp_path: Path) -> None:
    async def main() -> None:
        where = places("tcp", "ad")
        first = {"a": where["a"]}
        async with together(founders(tmp_path, first)):
            other = quire.join("test", me="d", at=where["d"], contact=[where["a"]], order="total", timeout_s=2)
            with pytest.raises(quire.BadInput, match="without a journal"):
                await other.__aenter__()

    run("tcp", main())


def test_somebody_who_joined_comes_back_from_its_journal(tmp_path: Path) -> None:
    async def main() -> None:
        where = places("tcp", "ad")
        first = {"a": where["a"]}
        boards = {name: Board() for name in "ad"}

        def late(board: Board) -> quire.DynamicGroup:
            settings: dict[str, Any] = {"order": "total", "timeout_s": 2.0, "journal": tmp_path / "d"}
            return quire.join("test", me="d", at=where["d"], contact=[where["a"]], state=board, **settings)

        async with together(founders(tmp_path, first, boards)) as members:
            await boards["a"].put("before", 1)
            async with together([late(boards["d"])]):
                await boards["d"].put("from d", 2)
            await members["a"].is_in("a")
            again = Board()
            async with together([late(again)]) as back:
                await members["a"].is_in("a", "d")
                assert await again.get("from d") == 2
                assert again.items == {"before": 1, "from d": 2}
                assert back["d"].group.view is not None

    run("tcp", main())
