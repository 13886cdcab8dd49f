"""What a process asks for is done in its order."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import quire
from quire.views.effects import Report, Write
from tests.kit.virtual_time import run_in_virtual_time
from tests.live.dynamic.kit import founded, places


def test_what_follows_from_an_effect_is_done_after_the_rest_of_its_step(monkeypatch: Any) -> None:
    """Otherwise frames would leave in another order than that of their numbers."""
    written: list[Write] = []

    async def main() -> None:
        async with founded("memory", "a") as members:
            group = members["a"].group
            node = group._node
            monkeypatch.setitem(node._perform, Write, written.append)
            happened = group.happened

            def happen(effect: Any) -> None:
                happened(effect)
                node.do([Write([(1, (b"third",))])])

            monkeypatch.setattr(group, "happened", happen)
            node.do([Write([(1, (b"first",))]), Report("connected", "b"), Write([(1, (b"second",))])])
            await asyncio.sleep(0)

    run_in_virtual_time(main())
    assert [frame for effect in written for _, (frame,) in effect.frames] == [b"first", b"second", b"third"]


def test_whoever_ends_a_connection_at_once_is_not_complained_of_by_whoever_dialled(caplog: pytest.LogCaptureFixture) -> None:
    """It may be a member that has just left."""
    dialled = 0

    async def main() -> None:
        async def leave(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal dialled
            dialled += 1
            writer.transport.abort()

        where = places("tcp", "ab")
        host, port = where["b"].split(":")
        async with await asyncio.start_server(leave, host, int(port)):
            with pytest.raises(quire.NoQuorum):
                await quire.join("board", me="a", at=where["a"], contact=[where["b"]], order="total", join_s=0.3).__aenter__()

    asyncio.run(main())
    assert dialled
    assert "event=refused" not in caplog.text
