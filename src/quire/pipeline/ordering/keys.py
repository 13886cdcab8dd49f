"""Computes the sort keys of events and validates them, because sorting by inconsistent clocks gives no order.

Total order sorts by (clock, source). Causal order sorts by (number of events that happened before, source), taken from vector
clocks: an event that happens after another has more events in its past, so this extends causality deterministically.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from quire.model.errors import BadInput
from quire.pipeline.ordering.columns import column, quoted, type_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row

SOURCES_MAX = 4096
LOGICAL_TIME, SOURCE, NUMBER, VECTOR = "quire_logical_time", "quire_source", "quire_number", "quire_vector"
KEYS = (LOGICAL_TIME, SOURCE, NUMBER)

_WHOLE_NUMBERS = ("tinyint", "smallint", "int", "bigint")


def with_total_keys(frame: DataFrame, source: str, clock: str) -> DataFrame:
    """The events with the keys of total order. A source may have one event per clock value, and every event needs a clock."""
    from pyspark.sql import functions as F  # noqa: N812

    clocks = [clock] if clock in frame.columns else [name.strip() for name in clock.split(",")]
    for name in clocks:
        _check_column(frame, name, _WHOLE_NUMBERS, "whole numbers")
    _check_column(frame, source, (*_WHOLE_NUMBERS, "string"), "names or whole numbers")
    parts = [column(frame, name).cast("long") for name in clocks]
    # A clock of several parts is compared part by part, as Spark compares structs.
    time = parts[0] if len(parts) == 1 else F.struct(*(part.alias(f"_{at}") for at, part in enumerate(parts)))
    keyed = frame.withColumns({LOGICAL_TIME: time, SOURCE: column(frame, source), NUMBER: F.lit(0).cast("long")})
    lacking = [part.isNull() for part in (*parts, F.col(SOURCE))]
    _refuse(keyed.where(reduce(or_, lacking)), lambda _: f"an event has no {source} or no {clock}")
    _refuse(
        keyed.groupBy(SOURCE, LOGICAL_TIME).count().where("count > 1").orderBy(LOGICAL_TIME, SOURCE),
        lambda row: f"source {row[SOURCE]} has {row['count']} events at clock {_shown(row)}, so their order is not known",
    )
    return keyed


def _shown(row: Row) -> str:
    time = row[LOGICAL_TIME]
    return ", ".join(map(str, time)) if isinstance(time, tuple) else str(time)


def with_causal_keys(frame: DataFrame, source: str, vector: str, sources: Sequence[str] | None) -> DataFrame:
    """The events with the keys of causal order, from vectors that are validated as vector clocks."""
    from pyspark.sql import functions as F  # noqa: N812

    kinds = ("array<int>", "array<bigint>", "map<string,int>", "map<string,bigint>")
    _check_column(frame, source, (*_WHOLE_NUMBERS, "string"), "names or whole numbers")
    frame = with_map(frame.withColumn(VECTOR, column(frame, vector)))
    kind = dict(frame.dtypes)[VECTOR]
    if kind not in kinds:
        raise BadInput(f"column {vector!r} must hold arrays or maps of whole numbers, but is {kind}")
    as_vector, of = F.col(VECTOR), column(frame, source)
    _refuse(frame.where(as_vector.isNull() | of.isNull()), lambda _: f"an event has no {source} or no {vector}")
    names = _sources(frame, source, as_vector, kind, sources)
    rank = F.array_position(F.array(*map(F.lit, names)), of.cast("string")) - 1
    if kind.startswith("map"):
        dense = F.transform(F.array(*map(F.lit, names)), lambda name: F.coalesce(as_vector[name], F.lit(0)).cast("long"))
        unknown = F.map_filter(as_vector, lambda name, _: ~name.isin(*names))
        _refuse(
            frame.where(F.size(unknown) > 0).select(of.alias(SOURCE), F.map_keys(unknown)[0].alias("name")),
            lambda row: f"a vector of source {row[SOURCE]} names {row['name']}, of which there is no event",
        )
    else:
        _refuse(
            frame.where(F.size(as_vector) != len(names)).select(of.alias(SOURCE), F.size(as_vector).alias("size")),
            lambda row: f"a vector of source {row[SOURCE]} has {row['size']} entries, but there are {len(names)} sources",
        )
        dense = as_vector.cast("array<bigint>")
    keyed = frame.withColumn(VECTOR, dense).withColumns(
        {
            LOGICAL_TIME: F.aggregate(VECTOR, F.lit(0).cast("long"), lambda total, entry: total + entry),
            SOURCE: rank.cast("long"),
            NUMBER: F.element_at(VECTOR, (rank + 1).cast("int")),
        }
    )
    _check_vectors(keyed, names)
    return keyed


def with_map(frame: DataFrame, name: str = VECTOR) -> DataFrame:
    """The events with vectors from JSON such as {"a": 1, "b": 2} as maps; Spark reads them as structs."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import StructType

    kind = frame.schema[name].dataType
    if not isinstance(kind, StructType):
        return frame
    whole = [field.name for field in kind.fields if field.dataType.simpleString() in _WHOLE_NUMBERS]
    if len(whole) < len(kind.names):
        return frame
    vector = F.col(quoted(name))
    pairs = [part for field in whole for part in (F.lit(field), vector.getField(field).cast("bigint"))]
    as_map = F.map_filter(F.create_map(*pairs), lambda _, value: value.isNotNull())
    return frame.withColumn(name, F.when(vector.isNotNull(), as_map))


def _sources(frame: DataFrame, source: str, vector: Column, kind: str, given: Sequence[str] | None) -> list[str]:
    """The sources in the order of the vector's entries, which is also the order that breaks ties."""
    rows = frame.select(column(frame, source)).distinct().limit(SOURCES_MAX + 1).collect()
    if len(rows) > SOURCES_MAX:
        raise BadInput(f"there are more than {SOURCES_MAX} sources; does column {source!r} name them?")
    found = sorted(row[0] for row in rows)
    if given is not None:
        if missing := [name for name in map(str, found) if name not in given]:
            raise BadInput(f"there are events of source {missing[0]}, which --sources does not name")
        return list(given)
    if kind.startswith("map"):
        return [str(name) for name in found]
    if not all(isinstance(name, int) for name in found):
        raise BadInput("array vectors need --sources, which names the source of each entry")
    from pyspark.sql import functions as F  # noqa: N812

    width = frame.agg(F.max(F.size(vector))).collect()[0][0]
    if outside := [number for number in found if not 0 <= number < width]:
        raise BadInput(
            f"vectors have {width} entries, so source {outside[0]} has none; name the source of each entry with --sources"
        )
    return [str(number) for number in range(width)]


def _check_vectors(keyed: DataFrame, names: Sequence[str]) -> None:
    """Check that each source numbers its events, that its vectors grow, that a vector covers those of all events it names, and
    that no two are equal. Then no event precedes itself: in a cycle every vector would cover the next, so all would be
    equal."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    def name(row: Row) -> str:
        return names[int(row[SOURCE])]

    _refuse(
        keyed.where((F.col(NUMBER) < 1) | F.exists(VECTOR, lambda entry: entry.isNull() | (entry < 0))).orderBy(*KEYS),
        lambda row: f"a vector of source {name(row)} does not count the event itself, or holds a negative number",
    )
    _refuse(
        keyed.groupBy(SOURCE, NUMBER).count().where("count > 1").orderBy(SOURCE, NUMBER),
        lambda row: f"source {name(row)} has {row['count']} events with the number {row[NUMBER]} in its own entry",
    )
    in_line = Window.partitionBy(SOURCE).orderBy(NUMBER)
    before = keyed.select(SOURCE, NUMBER, VECTOR, F.lag(VECTOR).over(in_line).alias("before"))
    _refuse(
        before.where(~_covers(F.col(VECTOR), F.col("before"))).orderBy(SOURCE, NUMBER),
        lambda row: f"the vectors of source {name(row)} go backwards at its event {row[NUMBER]}",
    )
    entries = before.select(
        SOURCE, NUMBER, VECTOR,
        F.posexplode(F.transform(VECTOR, lambda entry, at: F.when(
            (F.col("before").isNull() & (entry > 0)) | (entry > F.element_at("before", (at + 1).cast("int"))), entry
        ))).alias("theirs", "count"),
    ).where(F.col("count").isNotNull() & (F.col("theirs") != F.col(SOURCE)))  # fmt: skip
    # A vector that names an event which is not there must cover the last one before it: sort events and references together.
    there = keyed.select(
        F.lit(None).cast("long").alias(SOURCE), F.lit(None).cast("long").alias(NUMBER),
        F.lit(None).cast("array<bigint>").alias(VECTOR), F.col(SOURCE).alias("theirs"), F.col(NUMBER).alias("count"),
        F.struct(F.col(NUMBER).alias("number"), F.col(VECTOR).alias("vector")).alias("event"),
    )  # fmt: skip
    up_to = Window.partitionBy("theirs").orderBy("count", F.col(SOURCE).isNotNull())
    up_to = up_to.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    named = (
        there.unionByName(entries.withColumn("event", F.lit(None)))
        .withColumn("named", F.last("event", ignorenulls=True).over(up_to))
        .where(F.col(SOURCE).isNotNull() & F.col("named").isNotNull())
    )

    def contradiction(row: Row) -> str:
        number, vector = row["named"]
        one, other = f"event {row[NUMBER]} of source {name(row)}", f"event {number} of source {names[row['theirs']]}"
        if vector[row[SOURCE]] >= row[NUMBER]:
            return circle([one, other])
        return f"the vector of {one} includes {other}, but not all that happened before that event"

    _refuse(named.where(~_covers(F.col(VECTOR), F.col("named.vector"))).orderBy(SOURCE, NUMBER, "theirs"), contradiction)
    # Any two of these sources form a cycle; their vectors hold the numbers of both events.
    equal = keyed.groupBy(VECTOR).agg(F.sort_array(F.collect_set(SOURCE)).alias("sources")).where(F.size("sources") > 1)
    _refuse(
        equal.orderBy(F.aggregate(VECTOR, F.lit(0).cast("long"), lambda total, entry: total + entry), "sources"),
        lambda row: circle([f"event {row[VECTOR][source]} of source {names[source]}" for source in row["sources"]]),
    )


def circle(events: Sequence[str]) -> str:
    """The error message for a cycle of events, each of which happened after the next, and the last after the first."""
    steps = [f"{one} happened after {other}" for one, other in zip(events, [*events[1:], events[0]], strict=True)]
    return f"{', and '.join(steps)}: a circle, so they have no order"


def _covers(vector: Column, other: Column) -> Column:
    from pyspark.sql import functions as F  # noqa: N812

    smaller = F.zip_with(vector, other, lambda one, two: one >= two)
    return other.isNull() | F.forall(smaller, lambda fine: fine)


def _check_column(frame: DataFrame, name: str, wanted: Sequence[str], words: str) -> None:
    kind = type_of(frame, column(frame, name))
    if kind not in wanted:
        raise BadInput(f"column {name!r} must hold {words}, but is {kind}")


def _refuse(bad: DataFrame, sentence: Callable[[Row], str]) -> None:
    """Raise BadInput with the sentence for the first of these rows, if there is one."""
    rows = bad.limit(1).collect()
    if rows:
        raise BadInput(sentence(rows[0]))
