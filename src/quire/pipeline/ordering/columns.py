"""Columns by the names that people give: whatever letters these have, and those of fields inside of others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.model.errors import BadInput

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def quoted(name: str) -> str:
    """A column of exactly this name, dots and backquotes included, as Spark takes it."""
    return f"`{name.replace('`', '``')}`"


def column(frame: DataFrame, name: str) -> Column:
    """The column of this name, or, where there is none, the field `b` in the column `a` for `a.b`. Raises BadInput where there
    is neither."""
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
