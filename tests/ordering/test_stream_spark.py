"""Streaming orders as Structured Streaming queries, on files that arrive."""

from __future__ import annotations

import json
import random
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quire.model.errors import BadInput
from quire.pipeline import CausalOrder, TotalOrder, order_stream
from quire.pipeline.ordering.stream.query import order_progress
from tests.kit.patience import PATIENCE_S
from tests.ordering import stream_oracle as oracle
from tests.ordering.test_stream_operator import SCHEMA, SOURCES, random_history, random_stream, read, row
from tests.ordering.test_stream_significance import SCHEMA as ACCESSES
from tests.ordering.test_stream_significance import options_for, random_accesses

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DDL = "source string, clock long, beat boolean, txn string, vector array<bigint>, text string"


def add(directory: Path, rows: list[dict[str, Any]], files: int = 1) -> None:
    """Rows in so many files, all of them at once."""
    directory.mkdir(exist_ok=True)
    number = len(list(directory.iterdir()))
    for share in range(files):
        name = f"{number + share:05d}.parquet"
        pq.write_table(pa.Table.from_pylist(rows[share::files], SCHEMA), directory / f".{name}")
        (directory / f".{name}").rename(directory / name)


def stream(spark: SparkSession, directory: Path) -> DataFrame:
    return spark.readStream.schema(DDL).parquet(str(directory))


@pytest.mark.parametrize("transactions", [False, True], ids=["events", "transactions"])
def test_spark_and_plain_python_let_the_same_events_go(spark: SparkSession, tmp_path: Path, transactions: bool) -> None:
    rng = random.Random(5)
    batches = [batch for batch in random_stream(rng) + random_stream(rng) if batch]
    options = TotalOrder(sources=SOURCES, idle="wait", heartbeat="beat", transaction="txn" if transactions else None)
    for batch in batches:
        add(tmp_path / "in", batch, files=rng.randint(1, 3))
        order_stream(stream(spark, tmp_path / "in"), tmp_path / "out", options, available_now=True).awaitTermination()

    expected = oracle.total(batches, SOURCES, [set() for _ in batches], transactions)
    left = [row | {"position": at} for at, row in enumerate(row for batch in expected.left for row in batch)]
    assert read(tmp_path / "out") == left
    assert len(left) > 10
    rejected = [row | {"reason": reason} for batch in expected.rejected for row, reason in batch]
    assert sorted(map(repr, read(tmp_path / "out" / "_rejected"))) == sorted(map(repr, rejected))
    assert found(spark, tmp_path / "out") == left


def test_superseded_writes_are_left_out_before_they_reach_the_files(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(4)
    batches = [random_accesses(rng) for _ in range(3)][-1]
    for batch in batches:
        directory = tmp_path / "in"
        directory.mkdir(exist_ok=True)
        pq.write_table(pa.Table.from_pylist(batch, ACCESSES), directory / f"{len(list(directory.iterdir()))}.parquet")
        frame = spark.readStream.schema(f"{DDL}, object string, op string, by string").parquet(str(directory))
        order_stream(frame, tmp_path / "out", options_for(10), available_now=True).awaitTermination()

    expected = oracle.total(batches, SOURCES, [set() for _ in batches], False, 10)
    left = [row | {"position": at} for at, row in enumerate(row for batch in expected.left for row in batch)]
    assert read(tmp_path / "out") == left
    state = order_progress(tmp_path / "out")
    assert state is not None
    assert state.omitted > 10


def found(spark: SparkSession, out: Path) -> list[dict[str, Any]]:
    """What anybody who reads the directory with Spark sees."""
    return [line.asDict() for line in spark.read.parquet(str(out)).orderBy("position").collect()]


def test_causal_order_from_json_to_json(spark: SparkSession, tmp_path: Path) -> None:
    events = random_history(random.Random(3))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_text("".join(json.dumps(event) + "\n" for event in reversed(events)))
    frame = spark.readStream.schema(DDL).json(str(tmp_path / "in"))

    query = order_stream(frame, tmp_path / "out", CausalOrder(sources=SOURCES), form="json", available_now=True)
    query.awaitTermination()

    texts = [path.read_text() for path in sorted((tmp_path / "out").glob("part-*.json"))]
    lines = [json.loads(line) for text in texts for line in text.splitlines()]
    expected = oracle.causal([events], SOURCES).left[0]
    assert lines == [
        {name: value for name, value in event.items() if value is not None} | {"position": at}
        for at, event in enumerate(expected)
    ]


def test_a_silent_source_is_passed_over_though_nothing_arrives(spark: SparkSession, tmp_path: Path) -> None:
    add(tmp_path / "in", [row("a", 1), row("a", 2)])
    went = threading.Event()
    seen: list[tuple[int, list[int]]] = []

    def then(frame: DataFrame, batch: int) -> None:
        seen.append((batch, [line.clock for line in frame.collect()]))
        went.set()

    options = TotalOrder(sources=("a", "b"), idle=1.5)
    order_stream(stream(spark, tmp_path / "in"), tmp_path / "out", options, available_now=True).awaitTermination()
    query = order_stream(stream(spark, tmp_path / "in"), tmp_path / "out", options, then=then)
    try:
        assert went.wait(PATIENCE_S), query.exception()
    finally:
        query.stop()
    assert [clocks for _, clocks in seen] == [[1, 2]]
    state = order_progress(tmp_path / "out")
    assert state is not None
    assert (state.left, state.waiting_events(), state.marks) == (2, 0, (2, 2))


@pytest.mark.parametrize(
    ("by", "sentence"),
    [
        (TotalOrder(sources=("a",), idle="wait", clock="time"), "have no column 'time', only source, clock, beat"),
        (TotalOrder(sources=("a",), idle="wait", clock="text"), "column 'text' must hold whole numbers, but is string"),
        (TotalOrder(sources=("a",), idle="wait", heartbeat="txn"), "column 'txn' must hold true or false"),
        (TotalOrder(sources=("a",), idle=0.0), "idle must be 'wait' or a positive number of seconds"),
        (TotalOrder(sources=(), idle="wait"), "name from 1 to 4096 sources"),
        (TotalOrder(sources=("a", "a"), idle="wait"), "a source is named twice"),
        (TotalOrder(sources=("a",), idle="wait", source="clock"), "so the sources must be whole numbers"),
        (TotalOrder(sources=("a",), idle="wait", source="beat"), "must hold names or whole numbers"),
        (CausalOrder(sources=("a",), vector="text"), "must hold arrays or maps of whole numbers"),
    ],
)
def test_what_cannot_be_ordered_is_refused_before_anything_starts(
    spark: SparkSession, tmp_path: Path, by: TotalOrder | CausalOrder, sentence: str
) -> None:  # fmt: skip
    add(tmp_path / "in", [])

    with pytest.raises(BadInput, match=sentence):
        order_stream(stream(spark, tmp_path / "in"), tmp_path / "out", by)
    assert not (tmp_path / "out").exists()


def test_a_table_is_no_stream(spark: SparkSession, tmp_path: Path) -> None:
    add(tmp_path / "in", [])

    with pytest.raises(BadInput, match="not a stream"):
        order_stream(spark.read.parquet(str(tmp_path / "in")), tmp_path / "out", TotalOrder(sources=("a",), idle="wait"))
