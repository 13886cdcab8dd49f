"""Sequencers whose register is on disk: what is left when all of them are lost at once."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

import quire
from quire.live.services.sequencers import serve
from tests.kit.patience import PATIENCE_S
from tests.live.running import run
from tests.live.test_surviving import COUNT, Crew, Reader, crew, members

# Disks take real time, so that nothing here may depend on how much.


async def all_are_lost_at_once(service: Crew) -> None:
    await asyncio.gather(*map(service.lose, [*service.servers]))
    await service.start(*range(COUNT))


def test_without_backups_groups_continue_with_what_their_members_know(tmp_path: Path) -> None:
    async def main() -> None:
        async with crew(backups=0, journals=tmp_path, timeout_s=PATIENCE_S) as service, AsyncExitStack() as stack:
            clients = [service.connect() for _ in range(2)]
            readers = await members(stack, clients)
            for number in range(10):
                await clients[number % 2].multicast("tea", b"%d" % number)
            for client in clients:
                await client.flushed()
            await all_are_lost_at_once(service)
            for number in range(10, 20):
                await clients[number % 2].multicast("tea", b"%d" % number)
            for reader in readers:
                await reader.until(20)
            assert readers[0].messages == readers[1].messages
            assert sorted(int(payload) for _, payload in readers[0].messages) == [*range(20)]
            late = await stack.enter_async_context(service.connect())
            await late.join_group("tea")

    run(main())


def test_with_backups_groups_are_lost_and_everybody_is_told_so(tmp_path: Path) -> None:
    async def main() -> None:
        async with crew(backups=1, journals=tmp_path, timeout_s=PATIENCE_S) as service, AsyncExitStack() as stack:
            client = await stack.enter_async_context(service.connect())
            await client.create_group("tea")
            await client.join_group("tea")
            await client.multicast("tea", b"one")
            await client.flushed()
            await all_are_lost_at_once(service)
            with pytest.raises(quire.GroupLost, match="tea"):
                async for _ in client:
                    pass
            late = await stack.enter_async_context(service.connect())
            for ask in (client.join_group, late.create_group):
                with pytest.raises(quire.GroupLost, match="another name"):
                    await ask("tea")
            await client.create_group("cake")
            await client.join_group("cake")
            reader = Reader(client)
            await late.multicast("cake", b"two")
            await reader.until(1)
            assert reader.messages == [(late.me, b"two")]

    run(main())


def test_a_journal_of_sequencers_that_do_not_survive_is_refused(tmp_path: Path) -> None:
    with pytest.raises(quire.BadInput, match="only to sequencers that survive"):
        serve(["127.0.0.1:1"], 0, journal=tmp_path)
