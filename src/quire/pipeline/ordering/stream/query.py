"""The Structured Streaming query that runs the operator, on the caller's session, classic or over Spark Connect."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from quire.model.errors import BadInput
from quire.pipeline.codec import decode, encode
from quire.pipeline.ordering.columns import column
from quire.pipeline.ordering.following import followed
from quire.pipeline.ordering.keys import with_map
from quire.pipeline.ordering.reading import Format
from quire.pipeline.ordering.stream.intake import KEY_CAUSES, KEY_NAME, TICK, Intake, IntakeTask, take_in
from quire.pipeline.ordering.stream.ledger import Ledger, State
from quire.pipeline.ordering.stream.operator import RELEASE, Operator
from quire.pipeline.ordering.stream.options import CausalOrder, FollowingOrder, OrderOptions, TotalOrder, settle
from quire.pipeline.ordering.stream.writing import FORMATS
from quire.pipeline.ordering.writing import POSITION
from quire.pipeline.tasks import Runner, binary_column, run_here, run_on

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

_PARTITIONS_MAX = 32
_STARTS_MAX = 5

Then = Callable[["DataFrame", int], None]


def order_stream(
    events: DataFrame, out: str | Path, by: OrderOptions, *, form: Format = "parquet", then: Then | None = None,
    available_now: bool = False, trigger_s: float = 0,
) -> StreamingQuery:  # fmt: skip
    """Start a query that writes the events of a stream to files in `out`, in order, each as soon as its position is final.

    The files, by their names, hold the order with a column `position` (0, 1, 2 …) that says it; what cannot be ordered is
    in `out`/_rejected with the reason. The directory must be visible to the driver and all workers. Starting again with
    the same directory goes on where the last query ended, however it ended, without a loss or a repetition.

    `then` is called with what left in each micro-batch and its number, after it was written. As with `foreachBatch`, a
    call may be repeated after a crash, with the same number and the same events. The query goes on until it is stopped;
    with `available_now` until all that is there was read. Micro-batches begin `trigger_s` seconds apart, or at once.
    Raises BadInput where the events lack what the order needs, or the directory is not one to go on with.
    """
    if not events.isStreaming:
        raise BadInput("these events are not a stream; read them with spark.readStream")
    if form not in FORMATS:
        raise BadInput(f"the format must be one of {', '.join(FORMATS)}, not {form}")
    if isinstance(by, CausalOrder) and by.vector in events.columns:
        events = with_map(events, by.vector)
    options = settle(by, {field.name: field.dataType.simpleString() for field in events.schema.fields})
    if isinstance(options, FollowingOrder):
        names = {KEY_NAME: column(events, options.id).cast("string"), KEY_CAUSES: followed(events, options.after)}
        events = events.withColumns(names)
    ledger = Ledger(Path(out).absolute())
    ledger.prepare(options, form)
    if isinstance(options, TotalOrder) and options.idle != "wait":
        events = _with_ticks(events)
    each = _MicroBatch(options, ledger.out, form, then)
    writer = events.writeStream.option("checkpointLocation", str(ledger.spark_checkpoint)).foreachBatch(each)
    if available_now:
        return _started(writer.trigger(availableNow=True))
    return _started(writer.trigger(processingTime=f"{round(trigger_s * 1000)} milliseconds"))


def _started(writer: DataStreamWriter) -> StreamingQuery:
    """Start the query, with retries. Over Connect, the server starts a process for the micro-batches and gives it ten seconds
    to answer, which can be too short on a busy machine. Nothing has begun by then, so retrying is safe."""
    from pyspark.errors import PySparkException

    for _ in range(_STARTS_MAX - 1):
        try:
            return writer.start()
        except PySparkException as error:
            if "failed to connect back" not in str(error):
                raise
    return writer.start()


def order_progress(out: str | Path) -> State | None:
    """The state of the order in this directory: what left, what waits, what was rejected; None before the first commit."""
    return Ledger(Path(out)).last()


def close_order(out: str | Path) -> State:
    """End an order: no source will send any more, so release all waiting events. Only while no query runs."""
    ledger = Ledger(Path(out).absolute())
    last = ledger.last()
    if last is None:
        raise BadInput(f"{out} holds no order that could be closed")
    return Operator(last.options, ledger, last.form).close(run_here(RELEASE))


class _MicroBatch:
    """The callback that Spark calls with each micro-batch: in this process or, over Connect, in one beside the server."""

    def __init__(self, options: OrderOptions, out: Path, form: Format, then: Then | None) -> None:
        self._options = options
        self._ledger = Ledger(out)
        self._form = form
        self._then = then
        self._operator = Operator(options, self._ledger, form)

    def __call__(self, frame: DataFrame, batch: int) -> None:
        spark = frame.sparkSession
        state = self._operator.step(batch, lambda task: self._take_in(frame, task), _runner(spark))
        files = [str(self._ledger.out / file.final) for file in state.written if file.final.startswith("part-")]
        if self._then is not None and files:
            self._then(spark.read.format(self._form).load(files).orderBy(POSITION), batch)

    def _take_in(self, frame: DataFrame, task: IntakeTask) -> Sequence[Intake]:
        options = self._options
        if isinstance(options, TotalOrder) and options.in_runs:
            frame = frame.repartition(min(len(options.sources), _PARTITIONS_MAX), options.source)
        rows = frame.mapInArrow(_reader(encode(task)), "intake binary").collect()
        return [decode(bytes(row.intake), Intake) for row in rows]


def _reader(task: bytes) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        intake = take_in(decode(task, IntakeTask), batches)
        yield pa.record_batch([binary_column([encode(intake)])], names=["intake"])

    return read


def _runner(spark: SparkSession) -> Runner:
    """A runner that performs a single task in this process, because starting a Spark job would take longer than most tasks."""
    here, there = run_here(RELEASE), run_on(spark, RELEASE)
    return lambda tasks: here(tasks) if len(tasks) <= 1 else there(tasks)


def _with_ticks(events: DataFrame) -> DataFrame:
    """The events and one extra row per second: without input Spark runs no micro-batch, and silence must be noticed."""
    from pyspark.sql import functions as F  # noqa: N812

    ticks = events.sparkSession.readStream.format("rate").option("rowsPerSecond", 1).load()
    nulls = [F.lit(None).cast(field.dataType).alias(field.name) for field in events.schema.fields]
    marked = events.withColumn(TICK, F.lit(None).cast("boolean"))
    return marked.unionByName(ticks.select(*nulls, F.lit(True).alias(TICK)))
