"""Which reads a round serves."""

from __future__ import annotations

import asyncio

import pytest

from quire.live.groups.reads import Reads


class Rounds:
    """Rounds that end when the test says so."""

    def __init__(self) -> None:
        self.begun: list[asyncio.Future[None]] = []

    async def make(self) -> None:
        self.begun.append(asyncio.get_running_loop().create_future())
        await self.begun[-1]


async def settle() -> None:
    """Let everything happen that can."""
    for _ in range(5):
        await asyncio.sleep(0)


def test_a_round_serves_those_who_came_before_it_began_and_no_others() -> None:
    async def main() -> None:
        rounds = Rounds()
        reads = Reads(rounds.make)
        early = [reads.barrier(), reads.barrier()]
        await settle()
        assert len(rounds.begun) == 1
        late = [reads.barrier(), reads.barrier()]
        await settle()
        rounds.begun[0].set_result(None)
        await settle()
        assert [each.done() for each in (*early, *late)] == [True, True, False, False]
        assert len(rounds.begun) == 2
        rounds.begun[1].set_result(None)
        await asyncio.gather(*late)
        assert len(rounds.begun) == 2

    asyncio.run(main())


def test_a_round_that_fails_fails_those_whom_it_would_have_served_and_the_next_one_is_made() -> None:
    async def main() -> None:
        rounds = Rounds()
        reads = Reads(rounds.make)
        first = reads.barrier()
        await settle()
        gone, second = reads.barrier(), reads.barrier()
        gone.cancel()
        rounds.begun[0].set_exception(ValueError("over"))
        with pytest.raises(ValueError, match="over"):
            await first
        await settle()
        rounds.begun[1].set_result(None)
        await second

    asyncio.run(main())
