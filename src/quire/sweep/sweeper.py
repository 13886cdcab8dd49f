"""Runs a sweep: measures the unfinished cells of a grid on the caller's Spark session, and stores each result at once.

Every share of the grid is a Spark job with one task, and there is always one more job running than there are cores, so that a
worker finds its next task waiting. Only the driver writes, so workers need not see its disk, and Spark's retries leave no
trace.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from quire.pipeline.tasks import Runner, run_on
from quire.sweep.chunks import CHUNKS, Chunk, ChunkDone, Shares
from quire.sweep.grid import Grid
from quire.sweep.store import SweepStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORKERS_ELSEWHERE = 16
"""How many tasks are submitted at once if the size of the cluster is not known; tasks beyond its cores only queue."""

Progress = Callable[[int, int], None]
"""Called with the number of finished cells, and of all cells."""


class SweepResult(msgspec.Struct, frozen=True, kw_only=True):
    title: str
    experiment: str
    cells: int
    measured: int
    """Cells that were measured now; the others had been before."""
    failed: int
    first_failure: str | None
    wall_s: float
    cells_per_s: float
    directory: str


def sweep(
    spark: SparkSession, grid: Grid, directory: str | Path, *, force: bool = False, progress: Progress | None = None
) -> SweepResult:
    """Measure what is unfinished of the grid, and keep it in the directory.

    Raises BadInput, in one sentence, if the directory holds something else. A cell that fails does not stop the others;
    it is counted, and tried again next time.
    """
    with SweepStore(Path(directory), grid, force=force) as store:
        return sweep_on(spark, store, grid, progress)


def sweep_on(spark: SparkSession, store: SweepStore, grid: Grid, progress: Progress | None = None) -> SweepResult:
    """Like `sweep`, into an open store."""
    return sweep_into(store, grid, run=run_on(spark, CHUNKS), workers=workers_of(spark), progress=progress)


def workers_of(spark: SparkSession) -> int:
    """How many tasks the session runs at once, as far as it says."""
    # A session of Spark Connect has no context to ask; and its class cannot be imported where Connect is not installed.
    remote = type(spark).__module__.startswith("pyspark.sql.connect")
    return WORKERS_ELSEWHERE if remote else spark.sparkContext.defaultParallelism


def sweep_into(store: SweepStore, grid: Grid, *, run: Runner, workers: int, progress: Progress | None = None) -> SweepResult:
    """Like `sweep_on`, with any task runner, which is called from several threads at once."""
    began = time.perf_counter()
    todo = store.unfinished()
    before = len(grid.cells) - len(todo)
    shares = Shares(grid.experiment, {name: grid.cells[name] for name in todo}, workers)
    measured = failed = 0
    first_failure = None
    say = progress or (lambda _, __: None)
    say(before, len(grid.cells))
    pool = ThreadPoolExecutor(workers + 1, thread_name_prefix="sweep")
    running: dict[Future[list[ChunkDone]], Chunk] = {}
    try:
        while shares or running:
            while shares and len(running) <= workers:
                chunk = shares.take()
                running[pool.submit(run, [chunk])] = chunk
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                done = future.result()[0]
                shares.settle(running.pop(future), done)
                store.add(done.measured)
                errors = [each.error for each in done.measured if each.error is not None]
                first_failure = first_failure or next(iter(errors), None)
                failed += len(errors)
                measured += len(done.measured)
                say(before + measured, len(grid.cells))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    store.finish()
    wall_s = time.perf_counter() - began
    return SweepResult(
        title=grid.file.title,
        experiment=grid.experiment.name,
        cells=len(grid.cells),
        measured=measured,
        failed=failed,
        first_failure=first_failure,
        wall_s=round(wall_s, 6),
        cells_per_s=round(measured / wall_s, 3),
        directory=str(store.directory),
    )
