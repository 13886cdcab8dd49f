"""Streaming orders whose processes are killed: nothing is lost, nothing is repeated, and the order is exact."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.ordering.streaming_job import SOURCES

KILLS = int(os.environ.get("QUIRE_KILLS", "2"))
SEED = int(os.environ.get("QUIRE_SEED", "1"))
FILES = 12 * KILLS


def write_events(directory: Path, rng: random.Random) -> list[tuple[int, str, str]]:
    """Files as sources leave them, one source ahead and another behind; all events, in order."""
    directory.mkdir()
    clocks = dict.fromkeys(SOURCES, 0)
    events = []
    for number in range(FILES):
        rows: list[dict[str, Any]] = []
        for _ in range(200):
            source = rng.choice(SOURCES)
            clocks[source] += rng.randint(1, 9)
            rows.append({"source": source, "clock": clocks[source], "text": f"{source} {number} {len(rows)}"})
        path = directory / f"{number:05d}.parquet"
        pq.write_table(pa.Table.from_pylist(rows), path)
        os.utime(path, (1_000_000 + number, 1_000_000 + number))
        events += [(row["clock"], row["source"], row["text"]) for row in rows]
    return sorted(events)


def states(out: Path) -> int:
    """The number of the last micro-batch that was committed."""
    return max((int(path.stem) for path in (out / "_checkpoint" / "states").glob("[0-9]*.json")), default=-1)


def children(process: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process)], capture_output=True, text=True, check=False)
    return [int(word) for word in found.stdout.split()]


def left(out: Path) -> list[tuple[int, str, str]]:
    rows = [row for path in sorted(out.glob("part-*")) for row in pq.read_table(path).to_pylist()]
    assert [row["position"] for row in rows] == list(range(len(rows)))
    return [(row["clock"], row["source"], row["text"]) for row in rows]


def test_a_stream_that_is_killed_again_and_again_loses_and_repeats_nothing(tmp_path: Path) -> None:
    """QUIRE_KILLS=10 QUIRE_SEED=n pytest tests/ordering/test_stream_killed.py"""
    rng = random.Random(SEED)
    expected = write_events(tmp_path / "in", rng)
    out = tmp_path / "out"
    command = [sys.executable, "-m", "tests.ordering.streaming_job", str(tmp_path / "in"), str(out)]
    killed = 0
    while killed < KILLS:
        before, more = states(out), rng.randint(1, 3)
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                deadline = time.monotonic() + 120
                while states(out) < before + more and process.poll() is None and time.monotonic() < deadline:
                    time.sleep(0.01)
                time.sleep(rng.random() * 0.3)
                assert process.poll() is None, f"seed {SEED}: it ended before it was killed the {killed + 1}th time"
                # Sometimes the driver, sometimes the JVM below it, which takes the driver's query with it.
                victims = children(process.pid) if rng.random() < 0.5 else [process.pid]
                for victim in victims:
                    os.kill(victim, signal.SIGKILL)
                killed += 1
            finally:
                process.kill()
        so_far = left(out)
        assert so_far == expected[: len(so_far)], f"seed {SEED}, after {killed} kills"

    subprocess.run(command, check=True, timeout=300, stdout=subprocess.DEVNULL)
    assert left(out) == expected, f"seed {SEED}"
    assert not list(out.glob("_rejected/part-*"))
