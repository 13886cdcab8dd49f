"""Crashes at every step: on virtual disks that lose and tear what was not synced, and of real processes that are killed."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from quire.journal.disk import Disk, File, OwnDirectory
from quire.journal.journal import Journal, Recovered
from quire.journal.reading import read_journal
from quire.journal.records import SNAPSHOT
from quire.model.errors import CannotWrite
from quire.simulation.disk import PowerFailed, VirtualDisk
from tests.kit.effort import runs

VIEW, OP = 2, 6
GOES_ON = b"goes on"


class Application:
    """It writes numbers, one after the other; all of them are its state."""

    def __init__(self, disk: Disk, told: Callable[[int], object]) -> None:
        self.journal, recovered = Journal.open(disk)
        self.count = len(numbers(recovered))
        self.told = told
        self.told(self.count)  # What is read is acted upon.

    def write(self, count: int, size: int = 10) -> None:
        entries = [(OP, b"%d" % number + b"." * size) for number in range(self.count, self.count + count)]
        self.journal.append(entries)
        self.count += count

    def sync(self) -> None:
        self.journal.sync()
        self.told(self.count)

    def begin(self) -> Callable[[], None]:
        """Half of a checkpoint; call what it returns for the rest."""
        state = [b"%d." % number for number in range(self.count)]
        point = self.journal.begin([(VIEW, b"view"), (OP, b"again %d" % self.count)])
        self.told(self.count)
        return lambda: self.journal.keep(point, state)


def numbers(recovered: Recovered) -> list[int]:
    """What was written, by its snapshot and its records."""
    state = b"".join(recovered.snapshot.chunks()) if recovered.snapshot is not None else b""
    found = [int(number) for number in state.split(b".")[:-1]]
    for record in recovered.records:
        assert record.type != SNAPSHOT
        if record.body.startswith(b"again"):
            assert int(record.body.split()[1]) == len(found), "said again only to whoever has not read it"
            assert recovered.snapshot is not None
        elif record.type == OP and record.body != GOES_ON:
            found.append(int(record.body.partition(b".")[0]))
    return found


def live(disk: Disk, told: Callable[[int], object]) -> None:
    """Everything that is done to a journal: batches, two checkpoints, one of them with records while it is made, a restart."""
    one = Application(disk, told)
    one.write(3)
    one.sync()
    one.write(2)
    one.write(1)
    one.sync()
    keep = one.begin()
    one.write(2)
    one.sync()
    keep()
    one.write(1)
    one.journal.close()
    other = Application(disk, told)
    other.write(4, size=700)
    other.begin()()
    other.write(1)
    other.sync()
    other.journal.close()


def steps_of_a_life() -> int:
    disk = VirtualDisk(Random(0))
    live(disk, lambda _: None)
    return disk.steps


def check(disk: Disk, told: int) -> Recovered:
    assert read_journal(disk).damage is None
    journal, recovered = Journal.open(disk)
    found = numbers(recovered)
    assert found == list(range(len(found))), "nothing invented, nothing lost in between"
    assert len(found) >= told, "nothing lost that was durable"
    assert journal.append([(OP, GOES_ON)]) == journal.sync()
    journal.close()
    return recovered


@pytest.mark.parametrize("step", range(steps_of_a_life()))
def test_a_power_failure_at_any_step_loses_nothing_that_was_durable(step: int) -> None:
    torn = snapshots = 0
    for seed in range(runs(20, 200)):
        disk, told = VirtualDisk(Random(f"{step}/{seed}")), [0]
        disk.power_fails_at = step
        with pytest.raises(PowerFailed):
            live(disk, told.append)
        disk.crash()

        recovered = check(disk, told[-1])

        assert not [name for name in disk.names() if name.endswith(".new")]
        torn += recovered.torn is not None
        snapshots += recovered.snapshot is not None
    if step == steps_of_a_life() - 1:
        assert torn
        assert snapshots


def test_a_seed_replays_what_a_crash_leaves() -> None:
    def left(seed: int) -> dict[str, bytes]:
        disk = VirtualDisk(Random(seed))
        live(disk, lambda _: None)
        Application(disk, lambda _: None).write(20, size=300)
        disk.crash()
        return {name: disk.read(name, 0, disk.size(name)) for name in disk.names()}

    assert left(1) == left(1)
    assert len({repr(left(seed)) for seed in range(20)}) > 1


def test_a_second_power_failure_while_the_first_is_mended_loses_nothing_either() -> None:
    mended = 0
    for seed in range(runs(200, 3_000)):
        random = Random(f"twice/{seed}")
        disk, told = VirtualDisk(random), [0]
        disk.power_fails_at = random.randrange(steps_of_a_life())
        with pytest.raises(PowerFailed):
            live(disk, told.append)
        for _ in range(3):
            disk.crash()
            disk.power_fails_at = disk.steps + random.randrange(4)
            try:
                Journal.open(disk)
            except PowerFailed:
                mended += 1
        disk.crash()

        check(disk, told[-1])
    assert mended


def test_what_a_process_reads_after_it_was_killed_is_not_lost_by_a_power_failure_later() -> None:
    """What a killed process had written is there for the next one, durable or not."""
    more = 0
    for seed in range(runs(500, 5_000)):
        random = Random(f"killed first/{seed}")
        disk, told = VirtualDisk(random), [0]
        disk.power_fails_at = random.randrange(steps_of_a_life())
        with pytest.raises(PowerFailed):
            live(disk, told.append)
        disk.power_fails_at = disk.steps + random.randrange(10)
        before = told[-1]
        with suppress(PowerFailed):
            Application(disk, told.append)
        more += told[-1] > before
        disk.crash()

        check(disk, told[-1])
    assert more


def test_a_disk_that_keeps_later_blocks_and_loses_earlier_ones_is_refused_but_never_misread() -> None:
    refused = 0
    for seed in range(runs(200, 3_000)):
        random = Random(f"reordered/{seed}")
        disk, told = VirtualDisk(random, reorders=True), [0]
        one = Application(disk, told.append)
        one.write(5)
        one.sync()
        one.write(20, size=300)
        disk.crash()
        if read_journal(disk).damage is None:
            check(disk, told[-1])
        else:
            refused += 1
    assert refused


@pytest.mark.parametrize("capacity", range(0, 3000, 50))
def test_a_disk_that_is_full_is_a_sentence_and_what_was_durable_stays(capacity: int) -> None:
    disk, told = VirtualDisk(Random(capacity)), [0]
    disk.capacity = capacity
    with pytest.raises(CannotWrite, match=r"cannot write disk/00000\d\.(log|snapshot): No space left on device"):
        live(disk, told.append)
    disk.capacity = None

    check(disk, told[-1])


def test_a_snapshot_that_finds_no_room_costs_the_checkpoint_and_nothing_else() -> None:
    disk = VirtualDisk(Random(1))
    one = Application(disk, lambda _: None)
    one.write(3)
    keep = one.begin()
    disk.capacity = 205
    with pytest.raises(CannotWrite, match=r"cannot write disk/000002\.snapshot: No space left on device"):
        keep()
    assert disk.names() == ["000001.log", "000002.log"]

    disk.capacity = None
    one.write(2)
    one.sync()
    assert numbers(check(disk, 5)) == [0, 1, 2, 3, 4]
    keep()
    assert disk.names() == ["000002.log", "000002.snapshot"]
    assert numbers(check(disk, 5)) == [0, 1, 2, 3, 4]


def test_after_a_write_or_a_sync_that_failed_nothing_more_is_written() -> None:
    for work in ("append", "sync", "begin"):
        disk = VirtualDisk(Random(1))
        one = Application(disk, lambda _: None)
        one.write(1)
        one.sync()
        disk.failing = errno.EIO
        arguments = [] if work == "sync" else [[(VIEW, b"x")]]
        with pytest.raises(CannotWrite, match=r"cannot write disk/000001\.log: Input/output error"):
            getattr(one.journal, work)(*arguments)
        disk.failing, before = None, disk.steps
        for later in (one.sync, lambda: one.write(1), one.begin):  # noqa: B023
            with pytest.raises(CannotWrite, match="Input/output error"):
                later()
        assert disk.steps == before
        check(disk, 1)


class Deadly(OwnDirectory):
    """A real directory; the process is killed at one of the steps in which something changes."""

    def __init__(self, path: Path, step: int) -> None:
        super().__init__(path)
        self._left = step

    def step(self) -> None:
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self._left -= 1

    def open(self, name: str) -> File:
        self.step()
        file, directory = super().open(name), self

        class Stepping:
            def write(self, data: bytes) -> None:
                if directory._left == 0:
                    file.write(data[: len(data) // 2])
                directory.step()
                file.write(data)

            def sync(self) -> None:
                directory.step()
                file.sync()

            def close(self) -> None:
                file.close()

        return Stepping()

    def truncate(self, name: str, size: int) -> None:
        self.step()
        super().truncate(name, size)

    def rename(self, old: str, new: str) -> None:
        self.step()
        super().rename(old, new)

    def unlink(self, name: str) -> None:
        self.step()
        super().unlink(name)

    def sync_names(self) -> None:
        self.step()
        super().sync_names()


def killed_lives(path: Path) -> Iterator[tuple[Path, int]]:
    """For each step a journal whose process was killed there, and what was durable by then, until one lives to its end."""
    for step in range(1000):
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            try:
                live(Deadly(path / f"{step}", step), lambda told: os.write(writing, bytes([told])))  # noqa: B023
            finally:
                os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            told = pipe.read()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        yield path / f"{step}", told[-1] if told else 0
        if status == 0:
            return
        assert status == -signal.SIGKILL


def test_a_process_that_is_killed_at_any_step_leaves_a_journal_with_everything_that_was_durable(tmp_path: Path) -> None:
    killed, snapshots, torn = 0, set(), 0
    for path, told in killed_lives(tmp_path):
        directory = OwnDirectory(path)
        recovered = check(directory, told)
        directory.close()
        killed += 1
        torn += recovered.torn is not None
        snapshots.add(None if recovered.snapshot is None else recovered.snapshot.serial)
    assert killed >= steps_of_a_life()
    assert torn >= 5
    assert snapshots == {None, 2, 3}
