"""Orders events that name the events they follow, so that causes come first.

One task reads the events' names and references, with about 150 bytes per event plus the names; it needs nothing else of the
events. The order is by depth (the longest chain of events behind an event); or, if a time column is given, by the event's time
or that of an event it follows, whichever is later. Ties are broken by name. So the order depends neither on files nor on clocks
that run backwards.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from quire.model.errors import BadInput
from quire.pipeline.causes import arrange, circle
from quire.pipeline.ordering.columns import column, quoted, type_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ID, AFTER, TIME, PLACE = "quire_id", "quire_after", "quire_time", "quire_place"
_UNTIMED = -(1 << 62)


class FollowTask(msgspec.Struct, frozen=True, tag="follow"):
    """Compute the place of every event of these files, and write the places to a file."""

    directory: str
    out: str


class Placed(msgspec.Struct, frozen=True):
    events: int
    missing: int
    """How many references to events do not resolve."""
    missing_first: str


def check_following(own: str | None, after: str | None, source: str | None, vector: str | None) -> None:
    """Refuse names of columns that do not go together."""
    if (own is None) != (after is None):
        raise BadInput("--id and --after go together: what events are called, and which others they follow")
    if own is not None and (vector is not None or source is not None):
        raise BadInput("--id and --after say what happened before what, so --vector and --source do not go with them")


def names_and_causes(frame: DataFrame, own: str, after: str, time: str | None) -> DataFrame:
    """The columns of the events that the task needs. Raises BadInput if they are not suitable."""
    from pyspark.sql import functions as F  # noqa: N812

    when = F.lit(None) if time is None else column(frame, time)
    if time is not None and type_of(frame, when) not in ("tinyint", "smallint", "int", "bigint"):
        raise BadInput(f"column {time!r} must hold whole numbers, but is {type_of(frame, when)}")
    return frame.select(
        column(frame, own).cast("string").alias(ID), followed(frame, after).alias(AFTER), when.cast("long").alias(TIME)
    )


def followed(frame: DataFrame, after: str) -> Column:
    """The names of the events that an event follows, as an array. Raises BadInput if the column holds something else."""
    from pyspark.sql import functions as F  # noqa: N812

    names = column(frame, after)
    kind = type_of(frame, names)
    if kind == "string":
        inner = F.regexp_replace(names, r'[\[\]"]', " ")
        return F.filter(F.split(inner, r"[\s;,]+"), lambda name: name != "")
    if not kind.startswith("array<"):
        raise BadInput(f"column {after!r} must hold names, or arrays of them, but is {kind}")
    return F.filter(names.cast("array<string>"), lambda name: name.isNotNull())


def with_places(frame: DataFrame, places: DataFrame, own: str) -> DataFrame:
    """The events with the places that the task found."""
    from pyspark.sql import functions as F  # noqa: N812

    joined = frame.withColumn(ID, column(frame, own).cast("string")).join(places.hint("merge"), ID)
    return joined.select(*(F.col(quoted(name)) for name in frame.columns), PLACE)


def place(task: FollowTask) -> Placed:
    files = sorted(Path(task.directory).glob("part-*.parquet"))
    events = pa.concat_tables([pq.read_table(file) for file in files]).combine_chunks()
    if not events.num_rows:
        return Placed(0, 0, "")
    if events[ID].null_count:
        raise BadInput(f"{events[ID].null_count:,} events have no name")
    names = events[ID].combine_chunks()
    order = np.asarray(pc.sort_indices(names))
    names, events = names.take(pa.array(order)), events.take(pa.array(order))
    twice = np.flatnonzero(np.asarray(pc.equal(names.slice(1), names.slice(0, len(names) - 1))))
    if len(twice):
        raise BadInput(f"{len(twice) + 1:,} events have the names of others; {names[int(twice[0])].as_py()!r} comes twice")
    after = events[AFTER].combine_chunks()
    effect = np.repeat(np.arange(len(names)), np.asarray(pc.list_value_length(after).fill_null(0)))
    wanted = pc.list_flatten(after)
    cause = np.asarray(pc.index_in(wanted, names).fill_null(-1)).astype(np.int64)
    there = cause >= 0
    lacking = np.flatnonzero(~there)
    missing = "" if not len(lacking) else f"{names[int(effect[lacking[0]])].as_py()} follows {wanted[int(lacking[0])].as_py()}"
    effect, cause = effect[there], cause[there]
    own_time = np.asarray(events[TIME].fill_null(pa.scalar(_UNTIMED, pa.int64())))
    found = arrange(effect, cause, own_time)
    if (found.depth < 0).any():
        raise BadInput(explain_circle([names[event].as_py() for event in circle(effect, cause, found.depth)]))
    in_order = np.lexsort((np.arange(len(names)), found.depth, found.time))
    place_of = np.empty(len(names), np.int64)
    place_of[in_order] = np.arange(len(names))
    pq.write_table(pa.table({ID: names, PLACE: place_of}), task.out)
    return Placed(len(names), len(lacking), missing)


def explain_circle(names: list[str]) -> str:
    """Why events that follow each other in a circle cannot be ordered."""
    steps = [f"{one} follows {other}" for one, other in zip(names, [*names[1:], names[0]], strict=True)]
    return f"{', and '.join(steps)}: a circle, so they have no order"
