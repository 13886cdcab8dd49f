"""What a journal costs beside the bare disk: the same bytes, appended to a file with one fdatasync per batch.

throughput   records are appended as fast as the writer takes them. Then the same bytes are written once more, in the same
             batches, each with one write and one fdatasync, by a loop that does nothing else. `ratio` is journal to bare.
             Processor time is shown too, because a machine that is busy with something else gives the journal less of it
latency      one record at a time: append, wait until it is durable, append the next. `bare` is write and fdatasync of the same
             bytes in a loop; `ratio` is journal to bare

Rounds of the two alternate, and the median of the ratios counts: other processes use the same disk.

    python -m benchmarks.journal [--rounds 5] [--megabytes 32] [--directory DIR] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import uvloop

from quire.journal.disk import Directory, File, OwnDirectory
from quire.journal.journal import Journal
from quire.journal.writer import JournalWriter
from quire.model.errors import QuireError

SIZES = (64, 1024, 16384)
"""Bytes of a record. A member writes a record for each run of messages, which has some hundred or thousand bytes under load."""
AT_ONCE_BYTES = 4096
"""How much is appended in one call, as a member does that takes a packet."""
GOAL = 0.8
LATENCY_ROUNDS = 200
OP = 6


class CountingDirectory(OwnDirectory):
    """Remembers how large each batch was."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.batches: list[int] = []

    def open(self, name: str) -> File:
        file, batches = super().open(name), self.batches

        class Counting:
            def write(self, data: bytes) -> None:
                batches.append(len(data))
                file.write(data)

            def sync(self) -> None:
                file.sync()

            def close(self) -> None:
                file.close()

        return Counting()


def fail(failure: QuireError) -> None:
    sys.exit(f"journal benchmark: {failure}")


class Spent(NamedTuple):
    """Seconds."""

    wall: float
    cpu: float

    @classmethod
    def now(cls) -> Spent:
        return cls(time.perf_counter(), time.process_time())

    def since(self, started: Spent) -> Spent:
        return Spent(self.wall - started.wall, self.cpu - started.cpu)


async def write_journal(directory: CountingDirectory, size: int, total: int) -> Spent:
    """What it takes until so many bytes of records are durable."""
    journal, _ = Journal.open(directory)
    durable = asyncio.Event()
    writer = JournalWriter(journal, on_synced=lambda number: durable.set() if number == writer.last else None, on_failed=fail)
    entries = [(OP, os.urandom(size)) for _ in range(max(AT_ONCE_BYTES // size, 1))]
    started = Spent.now()
    for _ in range(total // (size * len(entries))):
        if writer.full:
            await writer.room()
        writer.append(entries)
        if writer.last % 64 == 0:
            await asyncio.sleep(0)
    while writer.synced < writer.last:
        durable.clear()
        await durable.wait()
    spent = Spent.now().since(started)
    await writer.close()
    return spent


def write_bare(path: Path, batches: list[int]) -> Spent:
    """What the same bytes take in the same batches."""
    data = [os.urandom(size) for size in batches]
    file = Directory(path).open("bare")
    started = Spent.now()
    for each in data:
        file.write(each)
        file.sync()
    spent = Spent.now().since(started)
    file.close()
    return spent


def throughput(home: Path, size: int, total: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(dir=home) as work, CountingDirectory(Path(work, "journal")) as directory:
        journal = uvloop.run(write_journal(directory, size, total))
        bare = write_bare(Path(work), directory.batches)
        count, written = len(directory.batches), sum(directory.batches)
    return {
        "journal_mb_per_s": written / journal.wall / 1e6, "bare_mb_per_s": written / bare.wall / 1e6,
        "ratio": bare.wall / journal.wall, "batch_kb": written / count / 1e3,
        "journal_cpu_s_per_gb": journal.cpu / written * 1e9, "bare_cpu_s_per_gb": bare.cpu / written * 1e9,
    }  # fmt: skip


async def durable_latencies(directory: OwnDirectory, size: int) -> list[float]:
    journal, _ = Journal.open(directory)
    durable = asyncio.Event()
    writer = JournalWriter(journal, on_synced=lambda _: durable.set(), on_failed=fail)
    waits = []
    for _ in range(LATENCY_ROUNDS):
        durable.clear()
        started = time.perf_counter()
        writer.append([(OP, bytes(size))])
        await durable.wait()
        waits.append(time.perf_counter() - started)
    await writer.close()
    return waits


def bare_latencies(path: Path, size: int) -> list[float]:
    file = Directory(path).open("bare")
    waits = []
    for _ in range(LATENCY_ROUNDS):
        started = time.perf_counter()
        file.write(bytes(size))
        file.sync()
        waits.append(time.perf_counter() - started)
    file.close()
    return waits


def latency(home: Path, size: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(dir=home) as work, OwnDirectory(Path(work, "journal")) as directory:
        bare = bare_latencies(Path(work), size)
        journal = uvloop.run(durable_latencies(directory, size))
    return {"journal_ms": median(journal) * 1e3, "bare_ms": median(bare) * 1e3, "ratio": median(journal) / median(bare)}


def medians(rounds: list[dict[str, float]]) -> dict[str, float]:
    return {name: median(each[name] for each in rounds) for name in rounds[0]}


def measure(home: Path, rounds: int, megabytes: int) -> dict[str, Any]:
    figures: dict[str, Any] = {"throughput": {}, "load": os.getloadavg()[0] / (os.cpu_count() or 1)}
    for size in SIZES:
        figures["throughput"][size] = medians([throughput(home, size, megabytes << 20) for _ in range(rounds)])
    figures["latency"] = medians([latency(home, SIZES[0]) for _ in range(rounds)])
    return figures


def show(figures: dict[str, Any]) -> None:
    print(f"journal beside bare appends, load {figures['load']:.1f} a core")
    print(
        f"{'bytes a record':<16}{'journal MB/s':>14}{'bare MB/s':>12}{'KB a batch':>12}"
        f"{'CPU s/GB':>10}{'bare':>6}{'ratio':>8}{f'x goal {GOAL}':>12}"
    )
    for size, each in figures["throughput"].items():
        print(
            f"{size:<16,}{each['journal_mb_per_s']:>14.1f}{each['bare_mb_per_s']:>12.1f}{each['batch_kb']:>12,.0f}"
            f"{each['journal_cpu_s_per_gb']:>10.2f}{each['bare_cpu_s_per_gb']:>6.2f}"
            f"{each['ratio']:>8.2f}{each['ratio'] / GOAL:>12.2f}"
        )
    each = figures["latency"]
    times = f"journal {each['journal_ms']:.2f} ms, bare {each['bare_ms']:.2f} ms"
    print(f"one record at a time, p50: {times}, ratio {each['ratio']:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description="A journal beside the bare disk.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--megabytes", type=int, default=32, help="bytes of records in each round")
    parser.add_argument("--directory", type=Path, default=Path(), help="on the disk to be measured; by default this one")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if arguments.rounds < 1 or arguments.megabytes < 1:
        sys.exit("journal benchmark: --rounds and --megabytes must be at least 1")
    figures = measure(arguments.directory, arguments.rounds, arguments.megabytes)
    print(json.dumps(figures)) if arguments.json else show(figures)


if __name__ == "__main__":
    main()
