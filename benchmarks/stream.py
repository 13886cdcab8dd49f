"""How fast events are ordered while they arrive, beside Spark's own copy of the same events, in the same run.

    python -m benchmarks.stream [--batches 8] [--repeat 3]

Both read the same Parquet files, eight a micro-batch, one of each source, and write Parquet; the copy is Spark's own file
sink with its own exactly-once log. They take turns. The first turn warms the JVM and does not count.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from quire.pipeline import TotalOrder, order_progress, order_stream
from quire.pipeline.session import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SOURCES = 8
SCHEMA = "source string, clock long, value double, text string"
LARGE, SMALL = 200_000, 2_000
SMALL_MS = 500


def write_events(directory: Path, batches: int, events: int) -> int:
    """Sources at about the same pace; a file holds one source's share of a micro-batch."""
    directory.mkdir()
    rng = np.random.default_rng(7)
    clocks = np.zeros(SOURCES, np.int64)
    share = events // SOURCES
    for batch in range(batches):
        for source in range(SOURCES):
            clock = clocks[source] + np.cumsum(rng.integers(1, 2 * SOURCES, share))
            clocks[source] = clock[-1]
            table = pa.table(
                {
                    "source": pa.array([f"s{source}"] * share),
                    "clock": pa.array(clock),
                    "value": pa.array(rng.random(share)),
                    "text": pa.array([f"event {number:012d} of {source}" for number in range(share)]),
                }
            )
            number = batch * SOURCES + source
            path = directory / f"{number:06d}.parquet"
            pq.write_table(table, path)
            os.utime(path, (1_000_000 + number, 1_000_000 + number))
    return batches * share * SOURCES


def stream(spark: SparkSession, directory: Path) -> DataFrame:
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", SOURCES).parquet(str(directory))


def copied(spark: SparkSession, events: Path, work: Path) -> list[float]:
    writer = stream(spark, events).writeStream.format("parquet").option("checkpointLocation", str(work / "checkpoint"))
    query = writer.trigger(availableNow=True).start(str(work / "out"))
    query.awaitTermination()
    return [batch["durationMs"]["triggerExecution"] for batch in query.recentProgress if batch["numInputRows"]]


def ordered(spark: SparkSession, events: Path, work: Path) -> list[float]:
    by = TotalOrder(sources=tuple(f"s{source}" for source in range(SOURCES)), idle="wait")
    query = order_stream(stream(spark, events), work / "out", by, available_now=True)
    query.awaitTermination()
    return [batch["durationMs"]["triggerExecution"] for batch in query.recentProgress if batch["numInputRows"]]


def measure(spark: SparkSession, events: Path, total: int, repeat: int) -> dict[str, tuple[float, float]]:
    """Events a second of the best turn, and the median milliseconds of a micro-batch over all turns."""
    rates: dict[str, list[float]] = {"copy": [], "order": []}
    waits_ms: dict[str, list[float]] = {"copy": [], "order": []}
    for turn in range(repeat + 1):
        for name, action in (("copy", copied), ("order", ordered)):
            with tempfile.TemporaryDirectory(prefix="quire-benchmark-") as work:
                began = time.perf_counter()
                times_ms = action(spark, events, Path(work))
                wall_s = time.perf_counter() - began
                if name == "order":
                    state = order_progress(Path(work) / "out")
                    assert state is not None
                    assert (state.left + state.waiting_events(), state.rejected) == (total, 0)
            if turn:
                rates[name].append(total / wall_s)
                waits_ms[name] += times_ms
    return {name: (max(rates[name]), statistics.median(waits_ms[name])) for name in rates}


def main() -> None:
    parser = argparse.ArgumentParser(description="Ordering a stream beside Spark's copy of it.")
    parser.add_argument("--batches", type=int, default=8)
    parser.add_argument("--repeat", type=int, default=3)
    chosen = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="quire-benchmark-"))
    try:
        with session(brief=False) as spark:
            cores = os.cpu_count()
            print(f"{SOURCES} sources, {chosen.batches} micro-batches, {cores} cores; best of {chosen.repeat}, warm session")
            print(f"load before: {os.getloadavg()[0]:.1f}")
            for events in (LARGE, SMALL):
                total = write_events(work / str(events), chosen.batches, events)
                found = measure(spark, work / str(events), total, chosen.repeat)
                print(f"micro-batches of {events:,} events" + (f" (target: below {SMALL_MS} ms)" if events == SMALL else ""))
                for name, (rate, wait_ms) in found.items():
                    print(f"  {name:<6} {rate:>10,.0f} events/s   {wait_ms:>6.0f} ms a micro-batch")
                (copy_rate, copy_ms), (order_rate, order_ms) = found["copy"], found["order"]
                print(f"  order to copy: speed {order_rate / copy_rate:.2f}, time of a micro-batch {order_ms / copy_ms:.2f}")
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
