"""The recipe for Kafka in docs/ordering.md, word for word, on records as Kafka's source gives them.

Kafka itself is not there, nor is Spark's connector to it, which would have to be downloaded. Files with the connector's
columns stand for the topic; everything after `load` is the recipe's.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from quire.pipeline import order_progress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DOCUMENT = Path(__file__).parents[2] / "docs" / "ordering.md"

COLUMNS = (
    "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, timestampType int"
)  # fmt: skip


class Topic:
    """A topic of three partitions, one for each source, of which more and more can be read."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._offsets = dict.fromkeys("abc", 0)
        directory.mkdir()

    def send(self, *records: tuple[str, bytes]) -> None:
        rows = []
        for source, value in records:
            row = {"key": source.encode(), "value": value, "topic": "events", "partition": "abc".index(source)}
            rows.append({**row, "offset": self._offsets[source], "timestamp": None, "timestampType": 0})
            self._offsets[source] += 1
        kinds = {"partition": pa.int32(), "timestamp": pa.timestamp("us", "UTC"), "timestampType": pa.int32()}
        table = pa.Table.from_pylist(rows)
        schema = pa.schema([field.with_type(kinds.get(field.name, field.type)) for field in table.schema])
        pq.write_table(pa.Table.from_pylist(rows, schema), self.directory / f"{sum(self._offsets.values()):05d}.parquet")


class Reader:
    """`spark.readStream` as far as the recipe uses it; Kafka's options are noted."""

    def __init__(self, spark: SparkSession, topic: Topic) -> None:
        self._spark, self._topic = spark, topic
        self.options: dict[str, object] = {}
        self.readStream = self

    def format(self, name: str) -> Reader:
        assert name == "kafka"
        return self

    def option(self, name: str, value: object) -> Reader:
        self.options[name] = value
        return self

    def load(self) -> DataFrame:
        return self._spark.readStream.schema(COLUMNS).parquet(str(self._topic.directory))


def recipe(out: Path) -> str:
    """The program in the section, writing elsewhere."""
    section = DOCUMENT.read_text().partition("### From Kafka\n")[2]
    found = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert found is not None
    assert '"ordered/"' in found[1]
    return found[1].replace('"ordered/"', repr(str(out)))


def event(source: str, clock: int, **more: object) -> tuple[str, bytes]:
    return source, json.dumps({"source": source, "clock": clock, **more}).encode()


def run(program: str, spark: Reader) -> None:
    """Run it until it has read what is there."""
    names: dict[str, Any] = {"spark": spark}
    exec(program, names)
    query = names["query"]
    try:
        query.processAllAvailable()
    finally:
        query.stop()


def test_the_recipe_orders_what_a_topic_brings_and_goes_on_where_it_ended(spark: SparkSession, tmp_path: Path) -> None:
    topic, out = Topic(tmp_path / "topic"), tmp_path / "ordered"
    reader = Reader(spark, topic)
    topic.send(event("b", 1, text="b1"), event("a", 2, text="a2"), ("c", b"not JSON"), event("c", 5, alive=True))
    run(recipe(out), reader)
    assert reader.options == {
        "kafka.bootstrap.servers": "broker:9092",
        "subscribe": "events",
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": 1_000_000,
    }

    topic.send(event("a", 3, text="a3"), event("b", 4, text="b4"), event("a", 9, alive=True), event("b", 9, alive=True))
    topic.send(event("c", 9, text="c9"))
    run(recipe(out), reader)

    rows = spark.read.parquet(str(out)).orderBy("position").collect()
    assert [(row.position, row.source, row.clock, row.text) for row in rows] == [
        (0, "b", 1, "b1"), (1, "a", 2, "a2"), (2, "a", 3, "a3"), (3, "b", 4, "b4"), (4, "c", 9, "c9"),
    ]  # fmt: skip
    [rejected] = spark.read.parquet(str(out / "_rejected")).collect()
    assert (rejected.partition, rejected.offset) == (2, 0)
    progress = order_progress(out)
    assert progress is not None
    assert (progress.left, progress.rejected) == (5, 1)
