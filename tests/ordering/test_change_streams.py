"""Change streams: sources with positions of their own, and transactions spread over them that leave whole."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from quire.model.errors import BadInput
from quire.pipeline import TotalOrder, order_stream
from quire.pipeline.ordering.stream.operator import RELEASE
from quire.pipeline.ordering.stream.options import settle
from quire.pipeline.tasks import run_here
from tests.kit.effort import runs
from tests.kit.patience import PATIENCE_S
from tests.ordering.stream_oracle import CLOCK_MAX, Row
from tests.ordering.test_stream_operator import Stream, read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SOURCES = ("a", "b", "c")
COLUMNS: dict[str, pa.DataType] = {"source": pa.string(), "clock": pa.int64(), "beat": pa.bool_(), "commit": pa.int64()}
BY_COMMIT = TotalOrder(sources=SOURCES, idle="wait", heartbeat="beat", transaction_position="commit")


def change(source: str, clock: int, commit: int | None, *, beat: bool = False) -> Row:
    return {"source": source, "clock": clock, "beat": beat, "commit": commit}


def random_changes(rng: random.Random) -> dict[str, list[Row]]:
    """Logs of sources whose clocks have nothing to do with each other, with transactions over some of them."""
    clocks = {source: rng.randrange(1000) for source in SOURCES}
    logs: dict[str, list[Row]] = {source: [] for source in SOURCES}
    for commit in sorted(rng.sample(range(100), rng.randint(1, 12))):
        for source in rng.sample(SOURCES, rng.randint(1, 3)):
            for _ in range(rng.randint(1, 3)):
                clocks[source] += rng.randint(1, 9)
                logs[source].append(change(source, clocks[source], commit, beat=rng.random() < 0.1))
    return logs


def batches_of(rng: random.Random, logs: dict[str, list[Row]]) -> list[list[Row]]:
    """The logs in micro-batches, each source at its own pace."""
    left = {source: list(log) for source, log in logs.items()}
    batches: list[list[Row]] = []
    while any(left.values()):
        taken: list[Row] = []
        for log in left.values():
            count = rng.randint(0, 4)
            taken += log[:count]
            del log[:count]
        batches.append(taken)
    return batches


def final(given: list[Row]) -> list[Row]:
    """All whose transactions every source has gone beyond, in their order: what must have left."""
    reached = {source: max((row["commit"] for row in given if row["source"] == source), default=-1) for source in SOURCES}
    events = [row for row in given if row["commit"] < min(reached.values()) and not row["beat"]]
    return sorted(events, key=lambda row: (row["commit"], row["source"], row["clock"]))


def without_position(rows: list[Row]) -> list[Row]:
    return [{name: value for name, value in row.items() if name != "position"} for row in rows]


def test_transactions_leave_whole_as_soon_as_every_source_is_beyond_them(tmp_path: Path) -> None:
    sometimes: Counter[str] = Counter()
    for seed in range(runs(40, 200)):
        rng = random.Random(seed)
        logs = random_changes(rng)
        stream = Stream(tmp_path / str(seed), BY_COMMIT, rng, rng.choice((2, 1000)), pa.schema(COLUMNS))
        given: list[Row] = []
        for batch in batches_of(rng, logs):
            if rng.random() < 0.2:
                stream.restart()
            given += batch
            stream.give(batch, partitions=rng.randint(1, 3))

            assert without_position(stream.left()) == final(given), f"seed {seed}"
        sometimes["waits"] += len(stream.left()) < sum(not row["beat"] for row in given)
        stream.give([change(source, CLOCK_MAX, None, beat=True) for source in SOURCES])

        everything = [row for log in logs.values() for row in log if not row["beat"]]
        expected = sorted(everything, key=lambda row: (row["commit"], row["source"], row["clock"]))
        assert stream.left() == [row | {"position": at} for at, row in enumerate(expected)], f"seed {seed}"
        assert not stream.rejected()
        sometimes["spread"] += any(
            len({row["source"] for row in everything if row["commit"] == commit}) > 1
            for commit in {row["commit"] for row in everything}
        )
    assert min(sometimes[name] for name in ("waits", "spread")) > 10, sometimes


def test_a_transaction_without_a_position_or_behind_its_source_is_rejected(tmp_path: Path) -> None:
    stream = Stream(tmp_path, BY_COMMIT, random.Random(1), schema=pa.schema(COLUMNS))

    stream.give([change("a", 1, 5), change("a", 2, 4), change("a", 3, None), change("b", 7, 9), change("c", 7, 9)])
    stream.give([change("a", 4, 4), change("a", 5, 9), change("b", 6, 9)])

    reasons = Counter(row["reason"] for row in read(tmp_path / "_rejected"))
    assert reasons == {
        "its transaction is late: 4 is before 5, which its source had already reached": 2,
        "its transaction has no position": 1,
        "it is late: 6 is not above 7, which source b had already reached": 1,
    }
    assert without_position(stream.left()) == [change("a", 1, 5)]
    stream.operator.close(run_here(RELEASE))
    assert [row["clock"] for row in stream.left()] == [1, 5, 7, 7]


def test_a_silent_source_is_not_waited_for_and_is_late_if_it_comes_back(tmp_path: Path) -> None:
    options = TotalOrder(sources=SOURCES, idle=2.0, heartbeat="beat", transaction_position="commit")
    stream = Stream(tmp_path, options, random.Random(1), schema=pa.schema(COLUMNS))

    stream.give([change("a", 1, 1), change("b", 500, 1), change("c", 9, 1)], now_s=0)
    stream.give([change("a", 2, 4), change("b", 501, 3)], now_s=3)
    assert [(row["source"], row["commit"]) for row in stream.left()] == [("a", 1), ("b", 1), ("c", 1)]
    stream.give([change("c", 10, 2), change("c", 11, 3), change("b", 502, 5), change("a", 3, 5)], now_s=4)

    assert [row["reason"] for row in read(tmp_path / "_rejected")] == [
        "its transaction is late: 2 is before 3, which its source had already reached"
    ]
    stream.give([change("c", 12, 5)], now_s=4.5)
    assert [(row["source"], row["commit"]) for row in stream.left()][3:] == [("b", 3), ("c", 3), ("a", 4)]


def test_positions_of_transactions_are_numbers_and_go_with_nothing_else() -> None:
    columns = {"source": "string", "clock": "bigint", "beat": "boolean", "commit": "string", "txn": "string"}
    with pytest.raises(BadInput, match="column 'commit' must hold whole numbers"):
        settle(BY_COMMIT, columns)
    both = TotalOrder(sources=SOURCES, idle="wait", transaction="txn", transaction_position="commit")
    with pytest.raises(BadInput, match="goes neither with"):
        settle(both, columns | {"commit": "bigint"})


def test_changes_as_a_connector_writes_them_are_ordered_from_files(spark: SparkSession, tmp_path: Path) -> None:
    """Two tables of one database, in files of their own: log positions differ, transactions are numbered by the database."""
    from pyspark.sql import functions as F  # noqa: N812

    (tmp_path / "in").mkdir()
    changes = [("orders", 100, 1), ("orders", 140, 3), ("orders", 150, 4), ("stock", 7, 1), ("stock", 8, 2), ("stock", 9, 4)]
    for table in ("orders", "stock"):
        told = [
            {"op": "c", "source": {"table": name, "lsn": lsn}, "transaction": {"total_order": commit}}
            for name, lsn, commit in changes
            if name == table
        ]
        (tmp_path / "in" / f"{table}.json").write_text("".join(json.dumps(row) + "\n" for row in told))
    schema = "op string, source struct<table: string, lsn: long>, transaction struct<total_order: long>"
    events = spark.readStream.schema(schema).json(str(tmp_path / "in")).select(
        "op", F.col("source.table").alias("source"), F.col("source.lsn").alias("clock"),
        F.col("transaction.total_order").alias("commit"),
    )  # fmt: skip
    order = TotalOrder(sources=("orders", "stock"), idle="wait", transaction_position="commit")

    order_stream(events, tmp_path / "out", order, available_now=True).awaitTermination()

    left = [(row["commit"], row["source"], row["clock"]) for row in read(tmp_path / "out")]
    assert left == [(1, "orders", 100), (1, "stock", 7), (2, "stock", 8), (3, "orders", 140)], "4 may go on in both"


def test_any_source_of_spark_can_be_ordered(spark: SparkSession, tmp_path: Path) -> None:
    rate: DataFrame = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 300).option("numPartitions", 2).load()
    events = rate.selectExpr("concat('s', value % 3) AS source", "value AS clock", "value DIV 10 AS commit")
    order = TotalOrder(sources=("s0", "s1", "s2"), idle="wait", transaction_position="commit")
    enough = threading.Event()
    seen: list[int] = []

    def then(left: DataFrame, _batch: int) -> None:
        seen.extend(row.commit for row in left.collect())
        if len(seen) >= 500:
            enough.set()

    query: Any = order_stream(events, tmp_path / "out", order, then=then)
    assert enough.wait(PATIENCE_S)
    query.stop()

    commits = [row["commit"] for row in read(tmp_path / "out")]
    assert commits == sorted(commits)
    counts = Counter(commits)
    assert set(counts.values()) == {10}, "every transaction is whole"
