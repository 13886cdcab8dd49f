"""Group commit on an event loop: what is said to be durable is, and a failure is told once."""

from __future__ import annotations

import asyncio
import errno
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from queue import SimpleQueue

import pytest

from quire.journal.disk import File, OwnDirectory
from quire.journal.errors import JournalFull
from quire.journal.journal import Journal, Recovered
from quire.journal.records import SNAPSHOT, Entry
from quire.journal.writer import JournalWriter
from quire.model.errors import BadInput, CannotWrite, QuireError
from quire.simulation.disk import VirtualDisk
from tests.kit.effort import runs

VIEW, OP = 2, 6
PATIENCE_S = 60.0


class SlowDirectory(OwnDirectory):
    """Real files. Syncs wait until they are let through, and everything is counted."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.open_gate = threading.Event()
        self.open_gate.set()
        self.at_gate = threading.Event()
        self.slow = ".log"
        self.done: list[str] = []

    def open(self, name: str) -> File:
        file, directory = super().open(name), self

        class Slow:
            def write(self, data: bytes) -> None:
                directory.done.append("write")
                file.write(data)

            def sync(self) -> None:
                if name.endswith(directory.slow):
                    directory.at_gate.set()
                    assert directory.open_gate.wait(PATIENCE_S)
                directory.done.append("sync")
                file.sync()

            def close(self) -> None:
                file.close()

        return Slow()


class Told:
    def __init__(self) -> None:
        self.synced: list[int] = []
        self.failures: list[QuireError] = []
        self.threads: set[int] = set()
        self._changed = asyncio.Event()

    def on_synced(self, number: int) -> None:
        self.synced.append(number)
        self._note()

    def on_failed(self, failure: QuireError) -> None:
        self.failures.append(failure)
        self._note()

    def _note(self) -> None:
        self.threads.add(threading.get_ident())
        self._changed.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                self._changed.clear()
                await self._changed.wait()


def on_disk(disk: OwnDirectory | VirtualDisk, work: Callable[[JournalWriter, Told], Awaitable[None]], **options: int) -> Told:
    """Do this with a writer on that disk."""

    async def main() -> Told:
        told = Told()
        journal, _ = Journal.open(disk)
        writer = JournalWriter(journal, on_synced=told.on_synced, on_failed=told.on_failed, **options)
        await work(writer, told)
        await writer.close()
        return told

    return asyncio.run(main())


def recovered(path: Path) -> Recovered:
    with OwnDirectory(path) as directory:
        journal, found = Journal.open(directory)
        journal.close()
    return found


def ops(count: int, size: int = 20) -> list[Entry]:
    return [(OP, b"x" * size)] * count


def test_what_is_appended_while_the_disk_is_busy_is_one_write_and_one_sync(tmp_path: Path) -> None:
    async def work(writer: JournalWriter, told: Told) -> None:
        disk.open_gate.clear()
        disk.at_gate.clear()
        disk.done.clear()
        for expected in range(1, 11):
            assert writer.append(ops(1)) == expected
        await asyncio.to_thread(disk.at_gate.wait, PATIENCE_S)
        for _ in range(100):
            writer.append(ops(2))
            await asyncio.sleep(0)
        assert (told.synced, disk.done) == ([], ["write"]), "nothing is said before it is durable"
        disk.open_gate.set()
        await told.until(lambda: writer.synced == 210)
        assert disk.done == ["write", "sync", "write", "sync"]
        assert told.synced == [10, 210]
        assert told.threads == {threading.get_ident()}

    with SlowDirectory(tmp_path) as disk:
        on_disk(disk, work)
    assert len(recovered(tmp_path).records) == 210


def test_closing_makes_everything_durable(tmp_path: Path) -> None:
    async def work(writer: JournalWriter, _: Told) -> None:
        for number in range(1, 1001):
            assert writer.append([(OP, b"%d" % number)]) == number

    with OwnDirectory(tmp_path) as disk:
        told = on_disk(disk, work)
    assert told.synced[-1] == 1000
    assert told.synced == sorted(set(told.synced))
    assert [int(record.body) for record in recovered(tmp_path).records] == list(range(1, 1001))


def test_what_comes_after_closing_is_refused(tmp_path: Path) -> None:
    async def work(writer: JournalWriter, _: Told) -> None:
        writer.append(ops(1))
        await writer.close()
        for refused in (lambda: writer.append(ops(1)), lambda: writer.checkpoint([], [])):
            with pytest.raises(CannotWrite, match="the journal is closed, and nothing more is written to it"):
                refused()

    with OwnDirectory(tmp_path) as disk:
        on_disk(disk, work)
    assert len(recovered(tmp_path).records) == 1


def test_records_that_only_the_journal_writes_are_refused(tmp_path: Path) -> None:
    async def work(writer: JournalWriter, _: Told) -> None:
        own = [(VIEW, b"view"), (SNAPSHOT, b"")]
        for refused in (lambda: writer.append(own), lambda: writer.checkpoint(own, [])):
            with pytest.raises(BadInput, match="records of type snapshot are written by the journal itself"):
                refused()
        assert writer.append(ops(1)) == 1

    with OwnDirectory(tmp_path) as disk:
        on_disk(disk, work)
        journal, found = Journal.open(disk)
        for refused in (journal.append, journal.begin):
            with pytest.raises(BadInput, match="records of type snapshot are written by the journal itself"):
                refused([(SNAPSHOT, b"")])
        journal.close()
    assert len(found.records) == 1


def test_no_more_waits_for_the_disk_than_may_and_there_is_room_when_it_has_caught_up(tmp_path: Path) -> None:
    async def work(writer: JournalWriter, told: Told) -> None:
        disk.open_gate.clear()
        while not writer.full:
            writer.append(ops(1, 83))
            await asyncio.sleep(0)
        with pytest.raises(JournalFull, match="1,000 bytes wait for the disk; append again when there is room"):
            writer.append(ops(1))
        assert writer.last == 10
        waiting = asyncio.ensure_future(writer.room())
        await asyncio.sleep(0)
        assert not waiting.done()
        disk.open_gate.set()
        await asyncio.wait_for(waiting, PATIENCE_S)
        assert writer.append(ops(1)) == 11

    with SlowDirectory(tmp_path) as disk:
        on_disk(disk, work, waiting_bytes_max=1000)
    assert len(recovered(tmp_path).records) == 11


def test_records_become_durable_while_a_checkpoint_is_made(tmp_path: Path) -> None:
    async def work(writer: JournalWriter, told: Told) -> None:
        writer.append(ops(3))
        disk.slow = ".snapshot.new"
        disk.open_gate.clear()
        checkpoint = writer.checkpoint([(VIEW, b"view")], [b"state"])
        assert writer.in_checkpoint
        assert writer.append(ops(2)) == 7, "in the order of calls; the journal has a record of its own there"
        await told.until(lambda: writer.synced == 7)
        await asyncio.to_thread(disk.at_gate.wait, PATIENCE_S)
        assert not checkpoint.done()
        assert writer.append(ops(1)) == 8
        await told.until(lambda: writer.synced == 8)
        disk.open_gate.set()
        await asyncio.wait_for(checkpoint, PATIENCE_S)
        assert writer.size == 38 + 3 * 37

    with SlowDirectory(tmp_path) as disk:
        on_disk(disk, work)
    found = recovered(tmp_path)
    assert found.snapshot is not None
    assert list(found.snapshot.chunks()) == [b"state"]
    assert [record.number for record in found.records] == [4, 6, 7, 8]


def test_a_full_disk_is_told_once_and_ends_the_writer() -> None:
    async def work(writer: JournalWriter, told: Told) -> None:
        writer.append(ops(5))
        await told.until(lambda: writer.synced == 5)
        disk.capacity = 300
        writer.append(ops(50))
        checkpoint = writer.checkpoint([(VIEW, b"view")], [])
        writer.append(ops(50))
        await told.until(lambda: bool(told.failures))
        for refused in (lambda: writer.append(ops(1)), lambda: writer.checkpoint([], [])):
            with pytest.raises(CannotWrite):
                refused()
        with pytest.raises(CannotWrite):
            await checkpoint
        with pytest.raises(CannotWrite):
            await asyncio.wait_for(writer.room(), PATIENCE_S)

    disk = VirtualDisk(random.Random(1))
    told = on_disk(disk, work)

    assert [str(failure) for failure in told.failures] == ["cannot write disk/000001.log: No space left on device"]
    assert told.synced == [5]


def test_a_sync_that_fails_is_never_taken_for_one_that_did_its_work() -> None:
    async def work(writer: JournalWriter, told: Told) -> None:
        disk.failing = errno.EIO
        writer.append(ops(5))
        await told.until(lambda: bool(told.failures))

    disk = VirtualDisk(random.Random(1))
    told = on_disk(disk, work)

    assert [str(failure) for failure in told.failures] == ["cannot write disk/000001.log: Input/output error"]
    assert told.synced == []


def test_a_mistake_in_the_thread_ends_the_writer_and_is_not_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(writer: JournalWriter, told: Told) -> None:
        monkeypatch.setattr(VirtualDisk, "_room", lambda _: "a mistake")
        writer.append(ops(1))
        await told.until(lambda: bool(told.failures))

    complaints: SimpleQueue[object] = SimpleQueue()
    monkeypatch.setattr(threading, "excepthook", complaints.put)

    told = on_disk(VirtualDisk(random.Random(1)), work)

    complaints.get(timeout=PATIENCE_S)  # The thread ends only after it has told the writer.
    assert len(told.failures) == 1
    assert told.synced == []


LIMITED = """
import asyncio, pathlib, resource, sys
from quire.journal.disk import OwnDirectory
from quire.journal.journal import Journal
from quire.journal.writer import JournalWriter

async def main():
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
    failed = asyncio.get_running_loop().create_future()
    with OwnDirectory(pathlib.Path(sys.argv[1])) as directory:
        journal, _ = Journal.open(directory)
        writer = JournalWriter(journal, on_synced=lambda number: print(number), on_failed=failed.set_result)
        while not failed.done():
            writer.append([(6, b"x" * 1000)])
            await asyncio.sleep(0)
            await asyncio.wait([failed], timeout=0.01)
        print(failed.result())
        await writer.close()

asyncio.run(main())
"""


def test_a_real_file_that_may_not_grow_ends_the_writer_and_nothing_durable_is_lost(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", LIMITED, tmp_path], capture_output=True, text=True, check=True, timeout=300)

    *synced, sentence = done.stdout.splitlines()
    assert sentence == f"cannot write {tmp_path / '000001.log'}: File too large"
    assert len(recovered(tmp_path).records) >= int(synced[-1]) >= 1


BUSY = """
import asyncio, os, pathlib, sys
from quire.journal.disk import OwnDirectory
from quire.journal.journal import Journal
from quire.journal.writer import JournalWriter

async def main():
    with OwnDirectory(pathlib.Path(sys.argv[1])) as directory:
        journal, _ = Journal.open(directory)
        writer = JournalWriter(journal, on_synced=lambda number: os.write(1, b"%d\\n" % number), on_failed=print)
        while True:
            await writer.room()
            number = writer.append([(6, b"x" * 100)] * 5)
            if number % 3 == 0 and not writer.in_checkpoint:
                writer.checkpoint([(2, b"view")], [b"%d" % number])
            await asyncio.sleep(0)

asyncio.run(main())
"""


def test_whatever_a_killed_process_said_to_be_durable_is_there(tmp_path: Path) -> None:
    chance = random.Random(1)
    snapshots = 0
    for run in range(runs(3, 30)):
        path = tmp_path / f"{run}"
        process = subprocess.Popen([sys.executable, "-c", BUSY, path], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        for _ in range(chance.randint(1, 60)):
            process.stdout.readline()
        os.kill(process.pid, signal.SIGKILL)
        told = process.communicate()[0].splitlines()

        found = recovered(path)

        state = int(b"".join(found.snapshot.chunks())) if found.snapshot is not None else 0
        snapshots += bool(state)
        assert max([state, *(record.number for record in found.records)]) >= int(told[-1] if told else 0)
    assert snapshots
