"""What is multicast faster than it leaves, leaves in whole runs, and what is left of it at the next turn of the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from quire.live import Group
from quire.live.runs.fleet import free_addresses
from quire.live.services.sequencers import connect, serve
from quire.protocols.sequencing.notices import Changed, Delivered
from tests.live.running import made_of, run

Addresses = Callable[[int], list[str]]

BATCHES = 60
BATCH = [b"x" * 16] * 1000
"""Its length is no divisor of a run's."""


def test_whoever_multicasts_faster_than_it_leaves_fills_the_runs_of_a_group(addresses: Addresses) -> None:
    async def main() -> None:
        async with Group(made_of(addresses(1), 0)) as group:
            counts: list[int] = []
            taking = asyncio.create_task(_take(group, counts))
            for _ in range(BATCHES):
                await group.multicast_many(BATCH)
            await taking
            assert len(counts) > 3
            # The first leaves at once, because nothing else is under way.
            assert set(counts[1:-1]) == {group.settings.run_messages_max}

    run(main())


async def _take(group: Group, counts: list[int]) -> None:
    async for delivery in group.runs():
        counts.append(delivery.run.count)
        if sum(counts) == BATCHES * len(BATCH):
            return


def test_whoever_multicasts_faster_than_it_leaves_fills_the_runs_of_a_client() -> None:
    async def main() -> None:
        [address] = free_addresses(1)
        async with serve([address]), connect(address) as client:
            await client.create_group("room")
            await client.join_group("room")
            counts: list[int] = []
            all_here = asyncio.Event()

            def take(delivery: Delivered | Changed) -> None:
                if isinstance(delivery, Delivered):
                    counts.append(delivery.run.count)
                    if sum(counts) == BATCHES * len(BATCH):
                        all_here.set()

            client.on_delivered = take
            for _ in range(BATCHES):
                await client.multicast_many("room", BATCH)
            await all_here.wait()
            assert len(counts) > 3
            assert set(counts[:-1]) == {8192}

    run(main())
