"""The disk of a node: whoever is started again knows which process was there before it, beside what its node knew."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from quire.journal.records import TYPES
from quire.live.services.disk import NodeDisk
from quire.protocols.node import Effects, Notice, Save
from tests.kit.patience import PATIENCE_S

DECISION = 1 + TYPES.index("decision")
ME = 2


class Decided(msgspec.Struct, frozen=True):
    """What a node must not forget."""

    body: bytes


class Written(Notice, frozen=True):
    """Everything before it is on the disk."""


def open_disk(path: Path) -> NodeDisk[list[bytes]]:
    return NodeDisk(path, lambda found: [record.body for record in found.records], lambda record: (DECISION, record.body))


async def write(disk: NodeDisk[list[bytes]], incarnation: int, body: bytes) -> None:
    """As a process of this incarnation does, which is then no more."""
    written = asyncio.Event()

    def perform(effects: Effects) -> None:
        if effects:
            written.set()

    disk.begin(incarnation, perform, _raise)
    disk.admit(disk.clock, [Save(Decided(body)), Written()])
    await asyncio.wait_for(written.wait(), PATIENCE_S)
    await disk.close()


@pytest.mark.parametrize("anew", [False, True])
def test_a_process_knows_the_one_before_it_also_when_the_journal_began_anew(tmp_path: Path, *, anew: bool) -> None:
    async def main() -> None:
        disk = open_disk(tmp_path)
        assert disk.earlier(ME) == {}
        if anew:
            disk._journal.is_long = lambda: True  # type: ignore[method-assign]
            disk.checkpoint = lambda: ((), iter([b"all"]))
        await write(disk, 111, b"one")
        disk = open_disk(tmp_path)
        assert disk.earlier(ME) == {ME: 111}
        assert disk.found == ([] if anew else [b"one"])
        await write(disk, 222, b"two")
        disk = open_disk(tmp_path)
        assert disk.earlier(ME) == {ME: 222}
        await disk.close()

    asyncio.run(main())


def test_a_process_that_wrote_nothing_leaves_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        disk = open_disk(tmp_path)
        disk.begin(111, lambda _: None, _raise)
        await disk.close()
        disk = open_disk(tmp_path)
        assert (disk.earlier(ME), disk.found) == ({}, [])
        await disk.close()

    asyncio.run(main())


def _raise(error: Exception) -> None:
    raise error
