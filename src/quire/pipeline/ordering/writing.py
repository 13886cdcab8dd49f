"""Writes one file of a sorted result, always with the same bytes for the same rows."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any, Literal

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from quire.pipeline.ordering.following import FollowTask, Placed, place
from quire.pipeline.tasks import job_of

POSITION = "position"
"""The column that is added: 0, 1, 2 … in the order."""
ROW_GROUP_ROWS = 65_536


class Part(msgspec.Struct, frozen=True):
    """A number of rows of a sorted file, from row `start` on."""

    path: str
    start: int
    rows: int


class WriteTask(msgspec.Struct, frozen=True, tag="write"):
    parts: tuple[Part, ...]
    out: str
    format: Literal["parquet", "json"]
    first: int
    """The position of the first row."""


def write_file(task: WriteTask) -> int:
    """Write the file, and return how many rows it has."""
    rows = 0
    writer: pq.ParquetWriter | None = None
    with open(task.out, "wb") as file:
        # Blocks, which become row groups, have a fixed size, however the parts were cut.
        for block in _blocks(task):
            block = block.append_column(POSITION, pa.array(np.arange(task.first + rows, task.first + rows + block.num_rows)))
            rows += block.num_rows
            if task.format == "json":
                file.write(b"".join(json_line(row) for row in block.to_pylist(maps_as_pydicts="strict")))
                continue
            if writer is None:
                writer = pq.ParquetWriter(file, block.schema, compression="zstd")
            writer.write_table(block, row_group_size=ROW_GROUP_ROWS)
        if writer is not None:
            writer.close()
    return rows


def _blocks(task: WriteTask) -> Iterator[pa.Table]:
    pending: list[pa.Table] = []
    held = 0
    for part in task.parts:
        with pq.ParquetFile(part.path) as file:
            at = 0
            for batch in file.iter_batches(batch_size=ROW_GROUP_ROWS):
                low, high = max(part.start - at, 0), min(part.start + part.rows - at, batch.num_rows)
                at += batch.num_rows
                if low >= high:
                    continue
                table = pa.Table.from_batches([batch.slice(low, high - low)]).replace_schema_metadata(None)
                pending.append(table)
                held += table.num_rows
                while held >= ROW_GROUP_ROWS:
                    whole = pa.concat_tables(pending)
                    yield whole.slice(0, ROW_GROUP_ROWS).combine_chunks()
                    pending, held = [whole.slice(ROW_GROUP_ROWS)], held - ROW_GROUP_ROWS
    if held:
        yield pa.concat_tables(pending).combine_chunks()


def json_line(row: dict[str, Any]) -> bytes:
    """A row as a line of JSON."""
    return msgspec.json.encode(_present(row), enc_hook=_plain) + b"\n"


def _present(value: Any) -> Any:
    """A value without nulls in structs: a field that was absent from a line of JSON must not be written as null."""
    if isinstance(value, dict):
        return {name: _present(inner) for name, inner in value.items() if inner is not None}
    return [_present(inner) for inner in value] if isinstance(value, list) else value


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value)


ORDER = job_of({WriteTask: (write_file, int), FollowTask: (place, Placed)})
