"""Tasks on Spark: a row is a task, a partition is a row, and everything travels as one binary column.

There is no shuffle, no broadcast and no use of the Spark context, so this works the same on classic Spark and over
Spark Connect. A task that finds bad input returns the sentence instead of failing, because a failed task reaches the
caller as a page of somebody else's traceback, after Spark has tried it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa

from quire.model.errors import BadInput
from quire.pipeline.codec import decode, encode
from quire.pipeline.search import Chain, ChainTask, FindTask, FoundEvents, find_chain, find_events
from quire.pipeline.segments import SegmentTask, Summary, judge_segment
from quire.pipeline.total import TotalResult, TotalTask, judge_total

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Task = SegmentTask | TotalTask | FindTask | ChainTask
Result = Summary | TotalResult | FoundEvents | Chain
Runner = Callable[[Sequence[Task]], list[Result]]
"""Performs tasks and returns their results in the same order; raises BadInput if one of them finds it."""


class _Done(msgspec.Struct):
    result: bytes = b""
    bad_input: str | None = None


def run_here(tasks: Sequence[Task]) -> list[Result]:
    """Perform the tasks in this process, one after the other."""
    return [_perform(task) for task in tasks]


def run_on(spark: SparkSession) -> Runner:
    """A runner that performs each task in a partition of its own."""

    def run(tasks: Sequence[Task]) -> list[Result]:
        # Imported here so that what needs no Spark does not wait for it.
        from pyspark.sql import functions as F  # noqa: N812

        count = len(tasks)
        if not count:
            return []
        column = F.array(*(F.lit(encode(task)) for task in tasks))
        frame = spark.range(0, count, 1, count).select("id", F.element_at(column, (F.col("id") + 1).cast("int")).alias("task"))
        rows = frame.mapInArrow(_perform_batches, "id long, result binary").collect()
        done = [decode(bytes(row.result), _Done) for row in sorted(rows, key=lambda row: row.id)]
        for outcome in done:
            if outcome.bad_input is not None:
                raise BadInput(outcome.bad_input)
        return [decode(outcome.result, _result_type(task)) for task, outcome in zip(tasks, done, strict=True)]

    return run


def _perform_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        results = []
        for row in batch.to_pylist():
            try:
                done = _Done(result=encode(_perform(decode(row["task"], Task))))  # type: ignore[arg-type]
            except BadInput as error:
                done = _Done(bad_input=str(error))
            results.append(encode(done))
        yield pa.record_batch([batch.column("id"), _binary(results)], names=["id", "result"])


def _binary(values: Sequence[bytes]) -> pa.Array[Any]:
    """The values as an Arrow array, made from buffers: `pa.array` would import pandas into every worker."""
    offsets = np.concatenate(([0], np.cumsum([len(value) for value in values]))).astype(np.int32)
    return pa.Array.from_buffers(
        pa.binary(), len(values), [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(b"".join(values))]
    )


def _perform(task: Task) -> Result:
    match task:
        case SegmentTask():
            return judge_segment(task)
        case TotalTask():
            return judge_total(task)
        case FindTask():
            return find_events(task)
        case ChainTask():
            return find_chain(task)


def _result_type(task: Task) -> type[Result]:
    match task:
        case SegmentTask():
            return Summary
        case TotalTask():
            return TotalResult
        case FindTask():
            return FoundEvents
        case ChainTask():
            return Chain
