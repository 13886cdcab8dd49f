"""Resolves column names as users give them: names with any characters, and nested fields such as `a.b`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.model.errors import BadInput

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def quoted(name: str) -> str:
    """The Spark expression for a column with exactly this name, including dots and backquotes."""
    return f"`{name.replace('`', '``')}`"


def column(frame: DataFrame, name: str) -> Column:
    """The column of this name or, if there is none, the field `b` of the column `a` for `a.b`. Raises BadInput if there is
    neither."""
    from pyspark.sql import functions as F  # noqa: N812

    if name in frame.columns:
        return F.col(quoted(name))
    first, *inner = name.split(".")
    kind = dict(frame.dtypes).get(first, "")
    found = F.col(quoted(first))
    for field in inner:
        if field not in _fields(frame, found):
            kind = ""
            break
        found = found.getField(field)
    if not kind or not inner:
        raise BadInput(f"the events have no column {name!r}, only {', '.join(frame.columns)}")
    return found


def type_of(frame: DataFrame, found: Column) -> str:
    """The type of a column, as Spark writes it."""
    return frame.select(found.alias("it")).dtypes[0][1]


def _fields(frame: DataFrame, found: Column) -> list[str]:
    from pyspark.sql.types import StructType

    kind = frame.select(found.alias("it")).schema[0].dataType
    return list(kind.names) if isinstance(kind, StructType) else []
