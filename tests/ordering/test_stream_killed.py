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

from tests.kit.patience import PATIENCE_S
from tests.ordering import stream_oracle as oracle
from tests.ordering.streaming_job import ORDERS, SOURCES, WITHIN

KILLS = int(os.environ.get("QUIRE_KILLS", "1"))
SEED = int(os.environ.get("QUIRE_SEED", "1"))
FILES = 12 * KILLS

Row = dict[str, Any]


def write_events(directory: Path, rng: random.Random) -> dict[str, list[Row]]:
    """Files as sources leave them, one source ahead and another behind; what each order must have in the end."""
    directory.mkdir()
    clocks = dict.fromkeys(SOURCES, 0)
    events: list[tuple[tuple[int, str, int], Row]] = []
    for number in range(FILES):
        rows: list[Row] = []
        for _ in range(200):
            source = rng.choice(SOURCES)
            clock = clocks[source] = clocks[source] + rng.randint(1, 9)
            op = rng.choice(("write", "write", "write", "read", "commit"))
            name, by = f"o{rng.randrange(20)}", f"t{clock // 50}" if rng.random() < 0.5 else None
            row = {"source": source, "clock": clock, "object": name, "op": op, "by": by, "text": f"{number} {len(rows)}"}
            rows.append(row)
            events.append(((clock, source, clock), row))
        path = directory / f"{number:05d}.parquet"
        pq.write_table(pa.Table.from_pylist(rows), path)
        os.utime(path, (1_000_000 + number, 1_000_000 + number))
    events.sort(key=lambda pair: pair[0])
    significant, _ = oracle.significant(events, WITHIN, float("inf"))
    return {"all": [row for _, row in events], "significant": significant}


def states(out: Path) -> int:
    """How many micro-batches were committed, of all orders."""
    numbers = {name: [int(path.stem) for path in (out / name / "_checkpoint/states").glob("[0-9]*.json")] for name in ORDERS}
    return sum(max(found, default=-1) + 1 for found in numbers.values())


def children(process: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process)], capture_output=True, text=True, check=False)
    return [int(word) for word in found.stdout.split()]


def left(out: Path) -> list[Row]:
    rows = [row for path in sorted(out.glob("part-*")) for row in pq.read_table(path).to_pylist()]
    assert [row.pop("position") for row in rows] == list(range(len(rows)))
    return rows


def test_a_stream_that_is_killed_again_and_again_loses_and_repeats_nothing(tmp_path: Path) -> None:
    """QUIRE_KILLS=10 QUIRE_SEED=n pytest tests/ordering/test_stream_killed.py"""
    rng = random.Random(SEED)
    expected = write_events(tmp_path / "in", rng)
    out = tmp_path / "out"
    command = [sys.executable, "-m", "tests.ordering.streaming_job", str(tmp_path / "in"), str(out)]
    killed = 0
    while killed < KILLS:
        before, more = states(out), rng.randint(1, 5)
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                deadline = time.monotonic() + PATIENCE_S
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
        for name in ORDERS:
            so_far = left(out / name)
            assert so_far == expected[name][: len(so_far)], f"seed {SEED}, after {killed} kills"

    subprocess.run(command, check=True, timeout=PATIENCE_S, stdout=subprocess.DEVNULL)
    assert 0 < len(expected["significant"]) < len(expected["all"])
    for name in ORDERS:
        assert left(out / name) == expected[name], f"seed {SEED}"
        assert not list((out / name).glob("_rejected/part-*"))
