"""The index of executions in a run that holds several, one after the other.

Executions that share a run share its processes. At every process, the events of one execution come after those of the previous
one, and their logical times do not overlap; so an execution is a range of logical times.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from quire.model.errors import BadInput

EXECUTIONS = "executions.parquet"
"""The index file, beside run.json, if the run holds several executions."""

_TYPES: dict[str, pa.DataType] = {"label": pa.string(), "events": pa.int64(), "begin": pa.int64(), "end": pa.int64()}
_SCHEMA = pa.schema(_TYPES)


class Executions(msgspec.Struct, frozen=True):
    """The executions, in order. Execution i has the events with `begins[i]` <= logical time < `begins[i + 1]`."""

    labels: tuple[str, ...]
    events: np.ndarray
    begins: np.ndarray

    def find(self, label: str) -> int:
        if label in self.labels:
            return self.labels.index(label)
        raise BadInput(f"there is no execution {label!r}; there are {len(self.labels):,}, like {self.labels[0]!r}")


def write_executions(directory: Path, labels: Sequence[str], events: np.ndarray, begins: np.ndarray) -> None:
    columns = [pa.array(labels, pa.string()), pa.array(events), pa.array(begins[:-1]), pa.array(begins[1:])]
    pq.write_table(pa.table(columns, schema=_SCHEMA), directory / EXECUTIONS, compression="zstd")


def read_executions(directory: Path) -> Executions | None:
    """The executions of a run; None if it is a single one."""
    path = directory / EXECUTIONS
    if not path.is_file():
        return None
    try:
        table = pq.read_table(path, schema=_SCHEMA)
    except (OSError, pa.ArrowException) as error:
        raise BadInput(f"{path} does not list executions: {str(error).splitlines()[0]}") from error
    label, events, begin, end = (table[name].combine_chunks() for name in _SCHEMA.names)
    begins = np.append(np.asarray(begin), np.asarray(end)[-1:])
    if not len(begin) or table.num_rows != len(begins) - 1 or (np.asarray(end) != begins[1:]).any():
        raise BadInput(f"{path} does not list executions that follow one another")
    return Executions(tuple(map(str, label.to_pylist())), np.asarray(events), begins)
