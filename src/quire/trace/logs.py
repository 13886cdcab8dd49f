"""A running process's events on disk: its records as they are, and beside them what their numbers mean.

Whoever records appends whole records to one file, and replaces the other before a record needs a name that is new. So the
records that are in the file can be read at any time, by anybody, while the process goes on.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa

from quire.model.errors import BadInput
from quire.trace.recorder import RECORD_FIELDS, Address, Integers, Recorder

RECORD_BYTES = RECORD_FIELDS * 8
ROWS_MAX = 1 << 19
"""How many rows a piece may spread into, so that memory stays bounded however long the runs are."""

_CHUNK_RECORDS = 1 << 16
_COUNT_FIELD = 3


class LogHead(msgspec.Struct, frozen=True, kw_only=True):
    """What the numbers in a process's records mean."""

    run: str
    process: int
    members: int
    addresses: tuple[Address, ...]
    packet_names: tuple[str, ...]

    def make_recorder(self, rows_taken: int = 0) -> Recorder:
        """One that spreads the process's records into rows, of which so many were taken before."""
        recorder = Recorder(self.process, self.addresses, rows_taken=rows_taken)
        for name in self.packet_names:
            recorder.packet_type(name)
        return recorder


def records_file(directory: Path, process: int) -> Path:
    return directory / f"p{process:05d}.records"


def head_file(records: Path) -> Path:
    return records.with_suffix(".head")


def write_head(records: Path, head: LogHead) -> None:
    path = head_file(records)
    partial = path.with_suffix(".head.partial")
    partial.write_bytes(msgspec.json.encode(head))
    os.replace(partial, path)


def read_head(records: Path) -> LogHead:
    """Read it after the length of the records: then it knows every name in them. Raises BadInput if it is not there."""
    path = head_file(records)
    try:
        return msgspec.json.decode(path.read_bytes(), type=LogHead)
    except (OSError, msgspec.DecodeError) as error:
        raise BadInput(f"{path} does not say what the records beside it mean: {error}") from error


def count_records(records: Path) -> int:
    """How many whole records are in the file by now."""
    return records.stat().st_size // RECORD_BYTES


def read_records(records: Path, first: int = 0, end: int | None = None) -> Iterator[Integers]:
    """The records of a file from one up to another, in pieces that each stand for a bounded number of rows."""
    with records.open("rb") as file:
        file.seek(first * RECORD_BYTES)
        while end is None or first < end:
            wanted = _CHUNK_RECORDS if end is None else min(_CHUNK_RECORDS, end - first)
            chunk = file.read(wanted * RECORD_BYTES)
            whole = len(chunk) // RECORD_BYTES
            if not whole:
                return
            first += whole
            yield from _bounded(np.frombuffer(chunk, np.int64, whole * RECORD_FIELDS).reshape(-1, RECORD_FIELDS))


def _bounded(records: Integers) -> Iterator[Integers]:
    rows = np.cumsum(records[:, _COUNT_FIELD])
    start = 0
    while start < len(records):
        before = int(rows[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(rows, before + ROWS_MAX, side="right")))
        yield records[start:stop]
        start = stop


def count_rows(records: Path, first: int, end: int) -> int:
    """How many rows the records from one up to another stand for."""
    return sum(int(piece[:, _COUNT_FIELD].sum()) for piece in read_records(records, first, end))


def read_rows(records: Path, first: int, end: int, rows_taken: int) -> Iterator[pa.Table]:
    """The rows of the records from one up to another, before which there are so many rows."""
    head = read_head(records)
    recorder = head.make_recorder(rows_taken)
    for piece in read_records(records, first, end):
        recorder.write(piece.tobytes())
        yield recorder.take(head.run)
