"""What spreading a sweep over Spark costs: its time beside that of a pool of as many processes, on the same cells.

Both are warm: the session and the pool are started, and their workers have imported what they need, before the clock runs.
The pool hands out one cell at a time, the heaviest first, which is the best that a pool can do; it keeps its results in
memory, while the sweep writes its own to disk. Rounds alternate, and the median of their ratios counts.

    python -m benchmarks.sweep [--workers 2] [--rounds 5] [--seconds 20] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import msgspec

from quire.pipeline.session import session
from quire.sweep import experiments
from quire.sweep.experiments.contract import Row
from quire.sweep.grid import Grid, GridFile
from quire.sweep.sweeper import sweep

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TARGET = 1.1
CELL_S = 0.5


def make_grid(cells: int, messages: int) -> Grid:
    table = {
        "protocol": ["single-phase", "causal-vector", "two-phase", "fifo"],
        "members": [5, 8],
        "messages": messages,
        "load": 200.0,
        "seeds": max(1, cells // 8),
    }
    return Grid(GridFile(title="benchmark", grid=(table,)), "the benchmark's grid")


def measure_cell(cell: bytes) -> Row:
    """One cell in a process of the pool."""
    experiment = experiments.find("simulate")
    return experiment.run(msgspec.json.decode(cell, type=experiment.cell))


def pool_s(pool: ProcessPoolExecutor, grid: Grid) -> float:
    heaviest_first = sorted(grid.cells.values(), key=grid.experiment.work, reverse=True)
    cells = [msgspec.json.encode(cell) for cell in heaviest_first]
    began = time.perf_counter()
    results = list(pool.map(measure_cell, cells))
    assert len(results) == len(grid.cells)
    return time.perf_counter() - began


def spark_s(spark: SparkSession, grid: Grid, directory: Path) -> float:
    began = time.perf_counter()
    result = sweep(spark, grid, directory)
    assert result.measured == len(grid.cells)
    assert not result.failed
    return time.perf_counter() - began


def calibrate(pool: ProcessPoolExecutor) -> int:
    """How many messages make a cell of about half a second."""
    messages = 100
    spent = pool_s(pool, make_grid(16, messages)) * pool._max_workers / 16  # type: ignore[attr-defined]
    return max(1, int(messages * CELL_S / spent))


def measure(workers: int, rounds: int, seconds: float) -> dict[str, Any]:
    with (
        ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool,
        session(f"local[{workers}]") as spark,
        tempfile.TemporaryDirectory() as directory,
    ):
        pool_s(pool, make_grid(16, 10))
        messages = calibrate(pool)
        grid = make_grid(int(seconds * workers / CELL_S), messages)
        for number in range(2):  # The JVM is still slow in its first dozen jobs.
            spark_s(spark, make_grid(32, 100), Path(directory) / f"warm-{number}")
        times = [(pool_s(pool, grid), spark_s(spark, grid, Path(directory) / str(number))) for number in range(rounds)]
    return {
        "workers": workers,
        "cells": len(grid.cells),
        "messages": messages,
        "pool_s": [round(pool, 2) for pool, _ in times],
        "spark_s": [round(spark, 2) for _, spark in times],
        "ratio": round(median(spark / pool for pool, spark in times), 3),
        "ratio_of_sums": round(sum(spark for _, spark in times) / sum(pool for pool, _ in times), 3),
        "load_average": round(os.getloadavg()[0], 1),
        "target": TARGET,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="A sweep on Spark beside a pool of processes.")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5, help="the median of so many ratios counts")
    parser.add_argument("--seconds", type=float, default=20.0, help="about how long a round of the pool takes")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if arguments.workers < 1 or arguments.rounds < 1 or arguments.seconds <= 0:
        sys.exit("sweep benchmark: --workers and --rounds must be at least 1, and --seconds above 0")
    figures = measure(arguments.workers, arguments.rounds, arguments.seconds)
    if arguments.json:
        print(json.dumps(figures))
        return
    print(f"{figures['cells']} cells of {figures['messages']} messages a sender, {figures['workers']} workers")
    print(f"{'pool of processes':<20}{'  '.join(f'{each:.2f} s' for each in figures['pool_s'])}")
    print(f"{'sweep on Spark':<20}{'  '.join(f'{each:.2f} s' for each in figures['spark_s'])}")
    print(f"{'ratio of the sums':<20}{figures['ratio_of_sums']:.3f}  (load average at the end: {figures['load_average']})")
    verdict = "met" if figures["ratio"] <= TARGET else "missed"
    print(f"{'median ratio':<20}{figures['ratio']:.3f}  (target: at most {TARGET}, {verdict})")


if __name__ == "__main__":
    main()
