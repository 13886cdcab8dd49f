"""How soon Spark sees what a running group does: from a line that a member is given to the rows that Spark has of it.

    python -m benchmarks.following [--lines 20]

A group of two processes runs; each line is multicast, logged by both members, read by the data source `quire` as a stream,
and collected in a micro-batch. Then comes the next line.
"""

from __future__ import annotations

import argparse
import os
import queue
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from quire.live.runs.fleet import free_addresses
from quire.pipeline import register
from quire.pipeline.session import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MEMBERS = 2
_COMMAND = Path(sys.executable).with_name("quire")
_PATIENCE_S = 60.0


def start_group(work: Path, out: Path) -> list[subprocess.Popen[bytes]]:
    plan = work / "plan.toml"
    plan.write_text(f'members = {list(free_addresses(MEMBERS))}\norder = "total"\nout = "{out}"\n')
    nowhere = subprocess.DEVNULL
    commands = [[str(_COMMAND), "member", str(plan), "--me", str(me)] for me in range(MEMBERS)]
    return [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere) for command in commands]


def measure(spark: SparkSession, work: Path, lines: int) -> list[float]:
    """Seconds from each line until Spark had its sending and all deliveries."""
    seen: queue.Queue[tuple[int, float]] = queue.Queue()
    rows: dict[int, int] = {}

    def take(frame: DataFrame, batch: int) -> None:  # noqa: ARG001
        for row in frame.where("kind IN ('send', 'deliver') AND origin = 0").select("seq").collect():
            rows[row.seq] = rows.get(row.seq, 0) + 1
            if rows[row.seq] == MEMBERS + 1:
                seen.put((row.seq, time.perf_counter()))

    out = work / "parts"
    stream = spark.readStream.format("quire").load(str(out))
    query = stream.writeStream.foreachBatch(take).option("checkpointLocation", str(work / "checkpoint")).start()
    group: list[subprocess.Popen[bytes]] = []
    waits_s = []
    try:
        query.processAllAvailable()
        group = start_group(work, out)
        speaker = group[0].stdin
        assert speaker is not None
        for number in range(lines):
            said_at = time.perf_counter()
            speaker.write(b"line %d\n" % number)
            speaker.flush()
            found, seen_at = seen.get(timeout=_PATIENCE_S)
            assert found == number
            waits_s.append(seen_at - said_at)
    finally:
        for process in group:
            process.kill()
            process.communicate()
        query.stop()
    return waits_s


def main() -> None:
    parser = argparse.ArgumentParser(description="From a member's line to Spark.")
    parser.add_argument("--lines", type=int, default=20)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="quire-benchmark-") as work, session(brief=False) as spark:
        register(spark)
        # The first lines wait for the group to connect and for Spark to have compiled everything.
        waits_s = measure(spark, Path(work), chosen.lines + 5)[5:]
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    print(f"{MEMBERS} members, {chosen.lines} lines, load {load:.1f} a core")
    print(f"from a line to Spark: median {statistics.median(waits_s):.2f} s, worst {max(waits_s):.2f} s")


if __name__ == "__main__":
    main()
