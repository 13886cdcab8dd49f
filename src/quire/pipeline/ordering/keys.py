"""What decides the position of an event, as columns: checked, because an order by a key that lies is no order.

Total order goes by (clock, source). Causal order goes by (how many events happened before, source), taken from vector
clocks: whatever happens after an event has more behind it, so this extends causality, and it is the same whoever asks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from quire.model.errors import BadInput

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row

SOURCES_MAX = 4096
LOGICAL_TIME, SOURCE, NUMBER, VECTOR = "quire_logical_time", "quire_source", "quire_number", "quire_vector"
KEYS = (LOGICAL_TIME, SOURCE, NUMBER)

_WHOLE_NUMBERS = ("tinyint", "smallint", "int", "bigint")


def with_total_keys(frame: DataFrame, source: str, clock: str) -> DataFrame:
    """The events with the keys of total order. A source may have one event at each clock, and none without."""
    from pyspark.sql import functions as F  # noqa: N812

    _check_column(frame, clock, _WHOLE_NUMBERS, "whole numbers")
    _check_column(frame, source, (*_WHOLE_NUMBERS, "string"), "names or whole numbers")
    keyed = frame.withColumns({LOGICAL_TIME: F.col(clock).cast("long"), SOURCE: F.col(source), NUMBER: F.lit(0).cast("long")})
    _refuse_missing(keyed, LOGICAL_TIME, source, clock)
    _refuse(
        keyed.groupBy(SOURCE, LOGICAL_TIME).count().where("count > 1").orderBy(LOGICAL_TIME, SOURCE),
        lambda row: f"source {row[SOURCE]} has {row['count']} events at clock {row[LOGICAL_TIME]}, so their order is not known",
    )
    return keyed


def with_causal_keys(frame: DataFrame, source: str, vector: str, sources: Sequence[str] | None) -> DataFrame:
    """The events with the keys of causal order, from vectors that were found to be vector clocks."""
    from pyspark.sql import functions as F  # noqa: N812

    kinds = ("array<int>", "array<bigint>", "map<string,int>", "map<string,bigint>")
    _check_column(frame, source, (*_WHOLE_NUMBERS, "string"), "names or whole numbers")
    kind = dict(frame.dtypes)[vector] if vector in frame.columns else ""
    if kind.startswith("struct<"):
        # JSON says {"a": 1, "b": 2}; Spark takes the names for columns of a struct.
        names = frame.schema[vector].dataType.fieldNames()  # type: ignore[attr-defined]
        pairs = [column for name in names for column in (F.lit(name), F.col(vector).getField(name).cast("bigint"))]
        frame = frame.withColumn(VECTOR, F.map_filter(F.create_map(*pairs), lambda _, value: value.isNotNull()))
        as_vector = F.col(VECTOR)
        kind = "map<string,bigint>"
    else:
        _check_column(frame, vector, kinds, "arrays or maps of whole numbers")
        as_vector = F.col(vector)
    _refuse_missing(frame, vector, source, vector)
    names = _sources(frame, source, as_vector, kind, sources)
    rank = F.array_position(F.array(*map(F.lit, names)), F.col(source).cast("string")) - 1
    if kind.startswith("map"):
        dense = F.transform(F.array(*map(F.lit, names)), lambda name: F.coalesce(as_vector[name], F.lit(0)).cast("long"))
        unknown = F.map_filter(as_vector, lambda name, _: ~name.isin(*names))
        _refuse(
            frame.where(F.size(unknown) > 0).select(F.col(source).alias(SOURCE), F.map_keys(unknown)[0].alias("name")),
            lambda row: f"a vector of source {row[SOURCE]} names {row['name']}, of which there is no event",
        )
    else:
        _refuse(
            frame.where(F.size(as_vector) != len(names)).select(F.col(source).alias(SOURCE), F.size(as_vector).alias("size")),
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


def _sources(frame: DataFrame, source: str, vector: Column, kind: str, given: Sequence[str] | None) -> list[str]:
    """The sources in the order of a vector's entries, which is also the order in which ties are broken."""
    rows = frame.select(source).distinct().limit(SOURCES_MAX + 1).collect()
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
    """Each source numbers its events, its vectors grow, and a vector covers that of every event that it names."""
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
    named = keyed.select(F.col(SOURCE).alias("theirs"), F.col(NUMBER).alias("count"), F.col(VECTOR).alias("named"))
    _refuse(
        entries.join(named, ["theirs", "count"])
        .where(~_covers(F.col(VECTOR), F.col("named")))
        .orderBy(SOURCE, NUMBER, "theirs"),
        lambda row: (
            f"the vector of event {row[NUMBER]} of source {name(row)} includes event {row['count']} of source "
            f"{names[row['theirs']]}, but not all that happened before that event"
        ),
    )


def _covers(vector: Column, other: Column) -> Column:
    from pyspark.sql import functions as F  # noqa: N812

    smaller = F.zip_with(vector, other, lambda one, two: one >= two)
    return other.isNull() | F.forall(smaller, lambda fine: fine)


def _check_column(frame: DataFrame, name: str, wanted: Sequence[str], words: str) -> None:
    kinds = dict(frame.dtypes)
    if name not in kinds:
        raise BadInput(f"the events have no column {name!r}, only {', '.join(kinds)}")
    if kinds[name] not in wanted:
        raise BadInput(f"column {name!r} must hold {words}, but is {kinds[name]}")


def _refuse_missing(frame: DataFrame, key: str, source: str, named: str) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    _refuse(frame.where(F.col(key).isNull() | F.col(source).isNull()), lambda _: f"an event has no {source} or no {named}")


def _refuse(bad: DataFrame, sentence: Callable[[Row], str]) -> None:
    """Raise BadInput with what is to be said of the first of these rows, if there is one."""
    rows = bad.limit(1).collect()
    if rows:
        raise BadInput(sentence(rows[0]))
