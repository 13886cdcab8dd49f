"""Omits superseded writes: writes that nobody will see, because a later one replaces them before anyone reads the object.

Of a run of consecutive writes to one object (in the order, ignoring events of other objects) only the last takes effect. An
earlier one may be omitted if a later write of its run belongs to the same transaction, or to one that committed; a write whose
transaction aborts supersedes nothing. Reads end a run and are never omitted.

Source: Enokido, Tachikawa and Takizawa; corrected in two points. The paper drops the later of two writes, which keeps the old
value; and it drops a superseded write at once, which is wrong if the superseding transaction aborts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from quire.model.errors import BadInput

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Significance(msgspec.Struct, frozen=True, kw_only=True):
    """The columns and values that say what an event does to which object. Without a transaction column, every write stands
    alone."""

    object: str = "object"
    op: str = "op"
    txn: str = "txn"
    write: str = "write"
    commit: str = "commit"


def omit_superseded(events: DataFrame, order: Sequence[str], significance: Significance | None = None) -> DataFrame:
    """The events without superseded writes. `order`: the columns that define the order of all events."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    wanted = significance or Significance()
    for name in (wanted.object, wanted.op):
        if name not in events.columns:
            raise BadInput(f"the events have no column {name!r}, which says what is superseded")
    transactional = wanted.txn in events.columns
    txn = F.col(wanted.txn) if transactional else F.lit(None).cast("string")
    is_write = (F.col(wanted.op) == wanted.write) & F.col(wanted.object).isNotNull()
    is_commit = F.coalesce(F.col(wanted.op) == wanted.commit, F.lit(False))
    marked = events.withColumns({"quire_write": F.coalesce(is_write, F.lit(False)), "quire_txn": txn})
    if transactional:
        committed = events.where(is_commit & txn.isNotNull()).select(txn.alias("quire_txn")).distinct()
        marked = marked.join(committed.withColumn("quire_committed", F.lit(True)), "quire_txn", "left")
    else:
        marked = marked.withColumn("quire_committed", F.lit(True))
    in_order = [F.col(name) for name in order]
    of_object = Window.partitionBy(wanted.object).orderBy(*in_order)
    ends_run = F.when(~F.col("quire_write") & ~is_commit, 1).otherwise(0)
    marked = marked.withColumn("quire_run", F.sum(ends_run).over(of_object.rowsBetween(Window.unboundedPreceding, 0)))
    stands = F.col("quire_write") & (F.col("quire_txn").isNull() | F.coalesce(F.col("quire_committed"), F.lit(False)))
    in_run = Window.partitionBy(wanted.object, "quire_run").orderBy(*in_order)
    in_txn = Window.partitionBy(wanted.object, "quire_run", "quire_txn", "quire_write").orderBy(*in_order)
    overruled = F.max(F.when(stands, True)).over(in_run.rowsBetween(1, Window.unboundedFollowing))
    rewritten = F.col("quire_txn").isNotNull() & F.lead(F.lit(True)).over(in_txn).isNotNull()
    superseded = F.col("quire_write") & (F.coalesce(overruled, F.lit(False)) | rewritten)
    return marked.withColumn("quire_superseded", superseded).where(~F.col("quire_superseded")).select(*events.columns)
