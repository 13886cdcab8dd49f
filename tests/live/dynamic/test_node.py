"""What a process asks for is done in its order."""

from __future__ import annotations

import asyncio
from typing import Any

from quire.views.effects import Report, Write
from tests.kit.virtual_time import run_in_virtual_time
from tests.live.dynamic.kit import founded


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
                node.do([Write(1, (b"third",))])

            monkeypatch.setattr(group, "happened", happen)
            node.do([Write(1, (b"first",)), Report("connected", "b"), Write(1, (b"second",))])
            await asyncio.sleep(0)

    run_in_virtual_time(main())
    assert [effect.parts for effect in written] == [(b"first",), (b"second",), (b"third",)]
