"""Batch ordering: sorts the events of several sources into one exact order, with the same bytes for any input partitioning.

Spark sorts by a key that no two events share, so the order is unique. How Spark partitions the sorted rows does not matter:
tasks cut them again into files with a fixed number of rows, and nothing is written that depends on the machine or the time.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
import pyarrow.parquet as pq

from quire.files.replacing import Staging, check_replaceable, scratch_for
from quire.model.errors import BadInput
from quire.pipeline.ordering.columns import quoted
from quire.pipeline.ordering.following import PLACE, FollowTask, Placed, check_following, names_and_causes, with_places
from quire.pipeline.ordering.keys import KEYS, LOGICAL_TIME, NUMBER, SOURCE, VECTOR, with_causal_keys, with_total_keys
from quire.pipeline.ordering.reading import Format, about_input, read_frame
from quire.pipeline.ordering.significance import Significance, omit_superseded
from quire.pipeline.ordering.writing import ORDER, POSITION, Part, WriteTask
from quire.pipeline.tasks import run_on
from quire.trace.schema import EVENT, IMPLIED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS_PER_FILE = 1_000_000
DESCRIPTION = "order.json"
_WHAT = "a directory of ordered events"


class BatchOrder(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a batch order. Column names default to those of a run directory, or to `source`, `clock`, `vector`."""

    by: Literal["total", "causal"] = "total"
    source: str | None = None
    clock: str | None = None
    vector: str | None = None
    sources: tuple[str, ...] | None = None
    id: str | None = None
    """The column with the events' names, to which the column `after` refers: it names the events that an event follows."""
    after: str | None = None
    omit_superseded: Significance | None = None
    to: Format | None = None
    """The format of the result; by default that of the input."""
    rows_per_file: int = ROWS_PER_FILE

    def check(self) -> None:
        """Refuse options that contradict each other."""
        check_following(self.id, self.after, self.source, self.vector)


class Ordered(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a batch order."""

    by: str
    events: int
    omitted: int
    files: int
    format: Format
    missing: int = 0
    """How many references to events that do not exist were ignored."""


def order_batch(spark: SparkSession, source: Path, target: Path, wanted: BatchOrder, *, force: bool = False) -> Ordered:
    """Write the events under `source` to the new directory `target`, in order, with their `position` from 0 on.

    Raises BadInput, with a message of one sentence, if the input cannot be ordered; then nothing is written.
    """
    check_target(target, force=force)
    wanted.check()
    with about_input(source), scratch_for(target) as work:
        form, keyed, missing = _keyed(spark, source, wanted, work.path)
        if POSITION in keyed.columns:
            raise BadInput(f"the events have a column {POSITION!r} already; rename it, because the order is written there")
        total = keyed.count()
        if not total:
            raise BadInput(f"{source} holds no events")
        if wanted.omit_superseded is not None:
            keyed = omit_superseded(keyed, KEYS, wanted.omit_superseded)
        with Staging(target, order_parts, _WHAT, force=force) as staging:
            done = _write(spark, keyed, work.path, staging.path, wanted, wanted.to or form, total, missing)
            staging.publish()
    return done


def check_target(target: Path, *, force: bool) -> None:
    """Refuse an existing directory, unless it is to be replaced and holds an order (or nothing)."""
    check_replaceable(target, order_parts, _WHAT, force=force)


def order_parts(directory: Path) -> list[str]:
    """The files of the order in this directory; raises BadInput if there is none."""
    path = directory / DESCRIPTION
    try:
        done = msgspec.json.decode(path.read_bytes(), type=Ordered)
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise BadInput(f"{path} does not describe ordered events: {error}") from error
    names = (_file_name(number, done.format) for number in range(done.files))
    return [DESCRIPTION, *(name for name in names if os.path.lexists(directory / name))]


def _file_name(number: int, form: Format) -> str:
    return f"part-{number:05d}.{form}"


def _keyed(spark: SparkSession, path: Path, wanted: BatchOrder, work: Path) -> tuple[Format, DataFrame, int]:
    """The format of the input, the events with their sort keys, and how many named causes do not exist."""
    if (path / "run.json").is_file():
        return "parquet", _keyed_run(spark, path, wanted), 0
    form, frame = read_frame(spark, path)
    source = wanted.source or "source"
    if wanted.id is not None:
        keyed, missing = _keyed_following(spark, frame, wanted, work)
        return form, keyed, missing
    if wanted.by == "total":
        return form, with_total_keys(frame, source, wanted.clock or "clock"), 0
    return form, with_causal_keys(frame, source, wanted.vector or "vector", wanted.sources), 0


def _keyed_following(spark: SparkSession, frame: DataFrame, wanted: BatchOrder, work: Path) -> tuple[DataFrame, int]:
    """The events with sort keys from the events that they follow."""
    from pyspark.sql import functions as F  # noqa: N812

    assert wanted.id is not None
    assert wanted.after is not None
    names_and_causes(frame, wanted.id, wanted.after, wanted.clock).write.parquet(str(work / "following"))
    task = FollowTask(str(work / "following"), str(work / "places.parquet"))
    found: Placed = run_on(spark, ORDER)([task])[0]
    if not found.events:
        raise BadInput("there are no events")
    placed = with_places(frame, spark.read.parquet(task.out), wanted.id)
    keyed = placed.withColumns({LOGICAL_TIME: F.col(PLACE), SOURCE: F.lit(0), NUMBER: F.lit(0).cast("long")}).drop(PLACE)
    return keyed, found.missing


def _keyed_run(spark: SparkSession, path: Path, wanted: BatchOrder) -> DataFrame:
    """The events of a trace, with sort keys from its logical times or from vector times computed from its messages."""
    from pyspark.sql import functions as F  # noqa: N812

    from quire.pipeline.causality.tasks import CAUSALITY
    from quire.pipeline.causality.times import follow
    from quire.pipeline.tasks import run_on

    if wanted.vector is not None:
        raise BadInput("the causality of a run directory comes from its messages, so --vector does not go with it")
    found = follow(run_on(spark, CAUSALITY), path)
    trace = spark.read.parquet(str((path / "trace").absolute()))
    if EVENT in trace.columns:
        # Implied deliveries are no events; the other rows keep the event numbers that they had in their logs.
        trace = trace.where(~F.coalesce(IMPLIED, F.lit(False))).withColumn("pos", F.col(EVENT)).drop(EVENT, IMPLIED)
    if wanted.by == "total" and not found.rebuilt:
        return with_total_keys(trace, wanted.source or "process", wanted.clock or "lamport")
    times = found.frame(spark).select("process", "pos", F.col("lamport").alias("time"), "clock")
    # Spark cannot know how many rows a Python function yields, and would broadcast all of them.
    joined = trace.join(times.hint("merge"), ["process", "pos"])
    logical_time = F.col("time") if wanted.by == "total" else F.aggregate("clock", F.lit(0), lambda total, entry: total + entry)
    keyed = joined.withColumns({LOGICAL_TIME: logical_time.cast("long"), SOURCE: F.col("process"), NUMBER: F.col("pos")})
    return keyed.select(*trace.columns, *KEYS)


def _write(
    spark: SparkSession, keyed: DataFrame, work: Path, out: Path, wanted: BatchOrder, form: Format, total: int,
    missing: int,
) -> Ordered:  # fmt: skip
    columns = [quoted(name) for name in keyed.columns if name not in (*KEYS, VECTOR)]
    keyed.orderBy(*KEYS).select(*columns).write.parquet(str(work / "sorted"))
    tasks = _cut(sorted((work / "sorted").glob("part-*.parquet")), wanted.rows_per_file, out, form)
    events = sum(run_on(spark, ORDER)(tasks))
    done = Ordered(by=wanted.by, events=events, omitted=total - events, files=len(tasks), format=form, missing=missing)
    (out / DESCRIPTION).write_bytes(msgspec.json.format(msgspec.json.encode(done)) + b"\n")
    return done


def _cut(parts: Sequence[Path], rows_per_file: int, out: Path, form: Format) -> list[WriteTask]:
    """The tasks that write the files of the result, each with its rows of the sorted parts."""
    tasks: list[WriteTask] = []
    shares: list[Part] = []
    held = first = 0
    for path in parts:
        rows, start = pq.read_metadata(path).num_rows, 0
        while start < rows:
            taken = min(rows - start, rows_per_file - held)
            shares.append(Part(str(path), start, taken))
            start, held = start + taken, held + taken
            if held == rows_per_file:
                tasks.append(WriteTask(tuple(shares), str(out / _file_name(len(tasks), form)), form, first))
                first, shares, held = first + held, [], 0
    if shares:
        tasks.append(WriteTask(tuple(shares), str(out / _file_name(len(tasks), form)), form, first))
    return tasks
