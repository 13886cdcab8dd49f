"""The scratch directory in which the stages of an import pass files on; files are named by run and process, never by host."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa

from quire.pipeline.importing.records import NAMES

_STAGES = ("records", "executions", "local", "learned", "keys", "joined", "edges", "again", "numbers", "times")


class Scratch(msgspec.Struct, frozen=True):
    """A directory that is visible to all tasks."""

    root: str

    def prepare(self) -> None:
        for name in _STAGES:
            (Path(self.root) / name).mkdir()

    def path(self, stage: str, *numbers: int) -> str:
        return str(Path(self.root) / stage / "-".join(f"{number:05d}" for number in numbers))

    def save(self, stage: str, run: int, process: int, table: pa.Table) -> None:
        save_table(self.path(stage, run, process), table)

    def load(self, stage: str, run: int, process: int) -> pa.Table:
        return load_table(self.path(stage, run, process))

    # Without NumPy's own header, which is read by parsing Python: in CPython 3.11 two threads that do so at once may fail.
    def save_numbers(self, stage: str, *numbers: int, values: np.ndarray) -> None:
        values.astype(np.int64, copy=False).tofile(self.path(stage, *numbers))

    def load_numbers(self, stage: str, *numbers: int) -> np.ndarray:
        return np.fromfile(self.path(stage, *numbers), np.int64)


def save_table(path: str, table: pa.Table) -> None:
    with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table.combine_chunks())


def load_table(path: str) -> pa.Table:
    """The table, memory-mapped."""
    with pa.memory_map(path) as file:
        return pa.ipc.open_file(file).read_all()


def load_records(path: str, number: int) -> tuple[list[str], pa.RecordBatch]:
    """The host names by number, and a batch of records."""
    batch = load_batch(path, number)
    names = msgspec.json.decode(batch.schema.metadata[NAMES], type=list[str])
    return names, batch.replace_schema_metadata(None)


def load_batch(path: str, number: int) -> pa.RecordBatch:
    with pa.memory_map(path) as file:
        return pa.ipc.open_file(file).get_batch(number)


EDGES = pa.schema([("row", pa.int64()), ("source", pa.int32()), ("index", pa.int64())])
"""The record at `row` of a process happened after the record at `index` of the process `source`. If the source is -1, nobody
sent the message, and the index is its hashed name."""


def sort_edges(row: np.ndarray, source: np.ndarray, index: np.ndarray) -> np.ndarray:
    """The order of edges by row, and by what comes before it if a row has several."""
    counts = np.bincount(row)
    if counts.max(initial=0) > 1:
        return np.lexsort((index, source, row))
    at = np.empty(len(counts), np.int64)
    at[row] = np.arange(len(row))
    found: np.ndarray = at[counts > 0]
    return found
