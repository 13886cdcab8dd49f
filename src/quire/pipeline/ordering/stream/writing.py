"""Writes ordered events, and rejected ones, to Parquet or JSON files."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from quire.pipeline.ordering.reading import Format
from quire.pipeline.ordering.stream.intake import Waiting, all_waiting
from quire.pipeline.ordering.writing import json_line

_DICTIONARY_BYTES = 1 << 16
"""The limit of a column's dictionary: small, so that Parquet gives up dictionary encoding early for columns with many distinct
values, as most are; filling the default of a megabyte takes longer than the rest of the writing."""

FORMATS: tuple[Format, ...] = get_args(Format)


class RejectTask(msgspec.Struct, frozen=True, tag="reject"):
    """Write the rejected events, in an order that does not depend on the partitioning."""

    directory: str
    rejected: tuple[Waiting, ...]
    out: str
    format: Format


def write_rejected(task: RejectTask) -> int:
    rows = all_waiting(task.directory, task.rejected)
    contents = [repr(row) for row in rows.to_pylist()]
    order = np.array(sorted(range(len(contents)), key=contents.__getitem__), np.int64)
    write_events(rows.take(order), Path(task.out), task.format)
    return rows.num_rows


def write_events(events: pa.Table, path: Path, form: Format) -> None:
    """Write the events in their order."""
    if form == "parquet":
        pq.write_table(events, path, compression="zstd", dictionary_pagesize_limit=_DICTIONARY_BYTES)
        return
    with path.open("wb") as file:
        for batch in events.to_batches(max_chunksize=8192):
            file.write(b"".join(json_line(row) for row in batch.to_pylist(maps_as_pydicts="strict")))


def name_of(batch: int, piece: int, form: Format) -> str:
    """The name of an output file; names sort in the order of the events."""
    return f"part-{batch:010d}-{piece:05d}.{form}"
