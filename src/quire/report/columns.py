"""Columns of a trace as arrays, read row group by row group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from quire.model.errors import BadInput
from quire.pipeline.layout import RowGroup
from quire.trace.schema import KINDS

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def read_groups(groups: Sequence[RowGroup], columns: Sequence[str]) -> Iterator[tuple[RowGroup, pa.Table]]:
    """Each row group with these columns; raises BadInput in one sentence where a file cannot be read."""
    with ExitStack() as stack:
        files: dict[str, pq.ParquetFile] = {}
        for group in groups:
            try:
                if group.path not in files:
                    files[group.path] = stack.enter_context(pq.ParquetFile(group.path))
                yield group, files[group.path].read_row_group(group.index, columns=list(columns))
            except (OSError, pa.ArrowException) as error:
                raise BadInput(f"{group.path} cannot be read: {str(error).splitlines()[0]}") from error


def kinds(table: pa.Table) -> npt.NDArray[np.int8]:
    """The events' codes; -1 for a kind that this version does not know."""
    column: Any = table["kind"].combine_chunks()
    words = column.dictionary.to_pylist()
    codes = np.array([KINDS.index(word) if word in KINDS else -1 for word in words] or [-1], np.int8)
    indices: npt.NDArray[np.int64] = column.indices.fill_null(0).to_numpy(zero_copy_only=False)
    return codes[indices]


def numbers(table: pa.Table, name: str) -> tuple[Integers, Flags]:
    """The values of a column of numbers, 0 where it has none, and where it has some."""
    column = table[name].combine_chunks()
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    return column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64, copy=False), valid


def destinations(table: pa.Table, rows: Integers) -> tuple[Integers, Integers]:
    """For these rows all destinations, end to end, and beside each the place in `rows` that it belongs to."""
    column: Any = table["dests"].combine_chunks().take(rows)
    lengths = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    return column.flatten().to_numpy(zero_copy_only=False).astype(np.int64), np.repeat(np.arange(len(rows)), lengths)
