"""Runs tasks on Spark or in this process; on Spark, each task is a row in its own partition, encoded as one binary column.

Tasks travel in the plan of their job, which every one of them receives whole; so tasks that carry much are divided among jobs.
There is no shuffle, no broadcast and no use of the Spark context, so this works the same on classic Spark and over Spark
Connect. A task that finds bad input returns the error message instead of failing, because a failed task reaches the caller as a
page of foreign traceback, after Spark's retries.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial, reduce
from operator import or_
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from quire.model.errors import BadInput
from quire.pipeline.codec import decode, encode

_PLAN_BYTES_MAX = 8 << 20

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Runner = Callable[[Sequence[Any]], list[Any]]
"""Performs tasks and returns their results in the same order; raises BadInput if a task does."""


class Job(NamedTuple):
    """A job: the union of its tagged task structs, the function that performs one, and the result type of each kind."""

    tasks: Any
    perform: Callable[[Any], Any]
    results: dict[type, type]
    alike: bool = False
    """Whether the tasks of a call take about equally long. Then there are only as many partitions, or threads, as cores,
    because a partition costs as much as some megabytes of work."""


def job_of(kinds: Mapping[type, tuple[Callable[..., object], type]], *, alike: bool = False) -> Job:
    """A job with several kinds of tasks, given for each the function that performs it and its result type."""
    perform = {task: function for task, (function, _) in kinds.items()}
    return Job(reduce(or_, kinds), partial(_perform, perform), {task: result for task, (_, result) in kinds.items()}, alike)


def _perform(kinds: Mapping[type, Callable[..., object]], task: object) -> object:
    """Perform a task by its type. The mapping travels to the workers with the job, so they need no list of their own."""
    return kinds[type(task)](task)


class _Done(msgspec.Struct):
    result: bytes = b""
    bad_input: str | None = None


def run_here(job: Job) -> Runner:
    """A runner that performs the tasks in this process: one after the other or, if they are alike, on all cores. (They spend
    nearly all of their time in Arrow, NumPy and compiled loops, where threads do not wait for each other.)"""

    def run(tasks: Sequence[Any]) -> list[Any]:
        cores = os.cpu_count() or 1
        if not job.alike or min(cores, len(tasks)) < 2:
            return [job.perform(task) for task in tasks]
        with ThreadPoolExecutor(min(cores, len(tasks))) as pool:
            return list(pool.map(job.perform, tasks))

    return run


def run_on(spark: SparkSession, job: Job) -> Runner:
    """A runner that performs each task in its own partition, unless the tasks are alike."""

    def run(tasks: Sequence[Any]) -> list[Any]:
        encoded = [encode(task) for task in tasks]
        done = [outcome for together in _plans(encoded) for outcome in run_job(together)]
        return [decode(outcome.result, job.results[type(task)]) for task, outcome in zip(tasks, done, strict=True)]

    def run_job(tasks: Sequence[bytes]) -> list[_Done]:
        # Imported here, so that code which does not need Spark does not wait for it.
        from pyspark.sql import functions as F  # noqa: N812

        count = len(tasks)
        column = F.array(*(F.lit(task) for task in tasks))
        numbers = spark.range(count) if job.alike else spark.range(0, count, 1, count)
        frame = numbers.select("id", F.element_at(column, (F.col("id") + 1).cast("int")).alias("task"))
        rows = frame.mapInArrow(_performer(job), "id long, result binary").collect()
        done = [decode(bytes(row.result), _Done) for row in sorted(rows, key=lambda row: row.id)]
        for outcome in done:
            if outcome.bad_input is not None:
                raise BadInput(outcome.bad_input)
        return done

    return run


def _plans(tasks: Sequence[bytes]) -> Iterator[list[bytes]]:
    """The tasks, as many of them together as one plan may hold."""
    together: list[bytes] = []
    for task in tasks:
        if together and sum(map(len, together)) + len(task) > _PLAN_BYTES_MAX:
            yield together
            together = []
        together.append(task)
    if together:
        yield together


def _performer(job: Job) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def perform_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            results = []
            for row in batch.to_pylist():
                try:
                    done = _Done(result=encode(job.perform(decode(row["task"], job.tasks))))
                except BadInput as error:
                    done = _Done(bad_input=str(error))
                results.append(encode(done))
            yield pa.record_batch([batch.column("id"), binary_column(results)], names=["id", "result"])

    return perform_batches


def binary_column(values: Sequence[bytes]) -> pa.Array[Any]:
    """The values as an Arrow array, made from buffers, because `pa.array` would import pandas in every worker."""
    offsets = np.concatenate(([0], np.cumsum([len(value) for value in values]))).astype(np.int32)
    return pa.Array.from_buffers(
        pa.binary(), len(values), [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(b"".join(values))]
    )
