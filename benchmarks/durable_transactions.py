"""What group commit is worth: live stores with journals, beside the same with one fdatasync for each commit.

Three replicas, each a process of its own with a journal of its own, and a client that has many transactions at a time. A
transaction writes one key. `group` is the store as it is: what comes while the disk is busy becomes durable together. `single`
shares nothing: a replica makes one fdatasync for each transaction that it accepts, one after the other, and none for anything
else, so that it writes less safely than it must. The same workload without a journal (`memory`) is what the machine gives.

Rounds of the three alternate, and the median of the ratios counts: other processes use the same disk. With `--sync-ms` every
fdatasync takes at least so long, as on a disk that does not answer from a cache: then a busy processor counts for less.

    python -m benchmarks.durable_transactions [--rounds 3] [--seconds 5] [--at-once 256] [--sync-ms 0] [--directory DIR]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import uvloop

import quire
from benchmarks.tables import Row, show
from quire.journal.disk import File, OwnDirectory
from quire.journal.records import TYPES, Entry
from quire.journal.writer import JournalWriter, _Records, _Work
from quire.live import journals
from quire.live.runs.fleet import free_addresses

REPLICAS = 3
JOIN_S = 120
GOAL = 2.0
OPTIONS = {"lease_ms": 30_000, "repeat_ms": 2000, "patience_ms": 60_000}
"""Nothing is lost here, so whoever waits in a long queue is not asked again, and not given up."""
MODES = ("group", "single", "memory")
ACCEPT = 1 + TYPES.index("accept")


class SlowDirectory(OwnDirectory):
    """A disk of which no sync takes less than `sync_s`."""

    sync_s = 0.0

    def open(self, name: str) -> File:
        file, sync_s = super().open(name), self.sync_s

        class Slow:
            def write(self, data: bytes) -> None:
                file.write(data)

            def sync(self) -> None:
                began = time.monotonic()
                file.sync()
                time.sleep(max(0.0, began + sync_s - time.monotonic()))

            def close(self) -> None:
                file.close()

        return Slow()


class SingleWriter(JournalWriter):
    """One sync for each record that stands for a commit, and no other."""

    def append(self, entries: Sequence[Entry]) -> int:
        for entry in entries:
            super().append([entry])
            if entry[0] == ACCEPT:
                self._hand_over()
        return self.last

    def _next_batch(self) -> list[_Work]:
        return [self._queue.get()]

    def _write_batch(self, batch: Sequence[_Work]) -> bool:
        [work] = batch
        if isinstance(work, _Records):
            self._append([work])
            # The last record of what was handed over is the one that a commit waits for, if any is.
            if work.pieces[-2][16] == ACCEPT:
                self._journal.sync()
            self._tell(self._synced, self._journal.last, work.size)
            return True
        return super()._write_batch(batch)


async def write_until(store: quire.Store, at_once: int, until: float) -> int:
    """Each of so many writers commits one transaction after the other; returns how many they committed."""

    async def write(name: str) -> None:
        while time.monotonic() < until:
            await store.run(lambda t: t.write(name, b"x" * 64))

    await asyncio.gather(*(write(f"key-{number}") for number in range(at_once)))
    return store.counts.committed


async def take_part(
    me: int, mode: str, at_once: int, seconds: float, sync_ms: float, directory: str, members: list[str]
) -> None:
    SlowDirectory.sync_s = sync_ms / 1000
    # The classes are replaced where they are used, because no application has a use for other disks or writers.
    journals.OwnDirectory = SlowDirectory  # type: ignore[attr-defined]
    if mode == "single":
        journals.JournalWriter = SingleWriter  # type: ignore[attr-defined]
    journal = None if mode == "memory" else Path(directory) / str(me)
    member = quire.join_store(
        "durable", me=me, members=members, replicas=REPLICAS, options=OPTIONS, timeout_s=60, join_s=JOIN_S, journal=journal
    )
    async with member:
        if me >= REPLICAS:
            store = member.store
            await write_until(store, at_once, time.monotonic() + min(1.0, seconds / 4))
            before, began = store.counts.committed, time.monotonic()
            committed = await write_until(store, at_once, began + seconds) - before
            print(json.dumps({"commits_per_s": committed / (time.monotonic() - began)}), flush=True)


def play(mode: str, at_once: int, seconds: float, sync_ms: float, directory: Path) -> float:
    """One store, from its start to its end: its commits a second."""
    members, processes = free_addresses(REPLICAS + 1), []
    with tempfile.TemporaryDirectory(dir=directory) as folder:
        for me in range(REPLICAS + 1):
            part = {"me": me, "mode": mode, "at_once": at_once, "seconds": seconds, "sync_ms": sync_ms}
            part |= {"directory": folder, "members": members}
            command = [sys.executable, "-m", "benchmarks.durable_transactions", "--part", json.dumps(part)]
            processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        said = [process.communicate()[0] for process in processes]
        if any(process.returncode for process in processes):
            raise SystemExit("a process of the store failed")
    rate: float = json.loads(said[REPLICAS])["commits_per_s"]
    return rate


def measure(rounds: int, seconds: float, at_once: int, sync_ms: float, directory: Path) -> list[Row]:
    played = [{mode: play(mode, at_once, seconds, sync_ms, directory) for mode in MODES} for _ in range(rounds)]
    return [
        {
            "mode": mode,
            "commits_per_s": median(each[mode] for each in played),
            "to_single": median(each[mode] / each["single"] for each in played),
            "rounds": [each[mode] for each in played],
        }
        for mode in MODES
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0, help="how long each store runs")
    parser.add_argument("--at-once", type=int, default=256, help="how many transactions there are at a time")
    parser.add_argument("--sync-ms", type=float, default=0.0, help="how long a sync takes at least")
    parser.add_argument("--directory", type=Path, default=Path.cwd(), help="where the journals are")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.part is not None:
        uvloop.run(take_part(**json.loads(arguments.part)))
        return
    table = measure(arguments.rounds, arguments.seconds, arguments.at_once, arguments.sync_ms, arguments.directory)
    heading = (
        f"{REPLICAS} replicas, {arguments.at_once} transactions at a time, {arguments.rounds} x {arguments.seconds:g} s; "
        f"target: group at least {GOAL:g} times single",
        "journal  commits/s  to single",
    )
    show(table, heading, written, as_json=arguments.json)


def written(row: Row) -> str:
    return f"{row['mode']:<8} {row['commits_per_s']:>9,.0f} {row['to_single']:>10.2f}"


if __name__ == "__main__":
    main()
