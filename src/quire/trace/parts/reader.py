"""Reads trace parts of processes that are running, have ended or have crashed, up to the last complete frame."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from quire.model.errors import BadInput
from quire.trace.log import Names
from quire.trace.parts.description import DESCRIPTION_SUFFIX, LOG_SUFFIX, PartDescription, PartEnd, part_stem, read_description
from quire.trace.parts.frames import END, NAMES, RECORDS, NewNames, read_frames, read_names
from quire.trace.records import COUNT, RECORD_BYTES
from quire.trace.rows import spread
from quire.trace.tables import Integers, as_records

ROWS_MAX = 1 << 19
"""The most rows that a piece may expand to, so that memory stays bounded."""

_NAME = re.compile(rf"p(\d{{5,}})-\w+{re.escape(DESCRIPTION_SUFFIX)}", re.ASCII)

_PIECE_BYTES = (1 << 16) * RECORD_BYTES
"""Short frames, as of an idle process, are combined up to this size, for row groups of a good size."""


class Reach(NamedTuple):
    """A position in a log: the number of bytes, and of rows that they stand for."""

    bytes: int = 0
    rows: int = 0


class Piece(NamedTuple):
    """Some consecutive records of a log, and the names that they use."""

    names: Names
    records: Integers


class Part:
    """One process's part. All methods raise OSError if a file cannot be read."""

    def __init__(self, description_path: Path) -> None:
        self.description: PartDescription = read_description(description_path)
        self.log_path = description_path.with_suffix(LOG_SUFFIX)

    @property
    def process(self) -> int:
        return self.description.process

    def reach(self, since: Reach | None = None) -> Reach:
        """The current end of the log; `since` is a known earlier position, to continue from."""
        reached = since or Reach()
        with self.log_path.open("rb") as file:
            for frame in read_frames(file, reached.bytes):
                rows = int(as_records(frame.body)[:, COUNT].sum()) if frame.kind == RECORDS else 0
                reached = Reach(frame.end, reached.rows + rows)
        return reached

    def read(self, since: int = 0, until: int | None = None) -> Iterator[Piece | PartEnd]:
        """The records from one offset to another, in pieces with a bounded number of rows; and finally the end record. If that
        is missing, the process is running or has crashed."""
        names, end = Names(), None
        waiting: list[bytes] = []
        with self.log_path.open("rb") as file:
            for new in read_names(file, since):
                _add(names, new)
            for frame in read_frames(file, since, until):
                if frame.kind == NAMES:
                    _add(names, msgspec.msgpack.decode(frame.body, type=NewNames))
                elif frame.kind == END:
                    end = msgspec.msgpack.decode(frame.body, type=PartEnd)
                else:
                    waiting.append(frame.body)
                    if sum(map(len, waiting)) >= _PIECE_BYTES:
                        yield from _pieces(names, waiting)
        yield from _pieces(names, waiting)
        if end is not None:
            yield end

    def rows(self, since: Reach, until: Reach) -> Iterator[pa.Table]:
        """The rows of the trace from one offset in the log to another."""
        pos = since.rows
        for piece in self.read(since.bytes, until.bytes):
            if isinstance(piece, Piece):
                table = spread(self.description.identity.run, self.process, pos, piece.names, piece.records)
                pos += table.num_rows
                yield table


def part_files(directory: Path, process: int | None = None) -> Sequence[Path]:
    """The descriptions of all parts in a directory, or of one process's parts, sorted by process and time."""
    found = [(int(match[1]), path) for path in directory.glob("p*") if (match := _NAME.fullmatch(path.name))]
    return [path for number, path in sorted(found) if process in (None, number)]


def parts_in(directory: Path) -> list[str]:
    """The file names of all parts in a directory; raises BadInput if there are none."""
    found = [Part(path) for path in part_files(directory)]
    if not found:
        raise BadInput(f"{directory} holds no part of a run")
    return [name for part in found for name in (f"{part.description.stem}{DESCRIPTION_SUFFIX}", part.log_path.name)]


def part_path(directory: Path, process: int, incarnation: int) -> Path:
    """The description of one part."""
    return directory / f"{part_stem(process, incarnation)}{DESCRIPTION_SUFFIX}"


def _add(names: Names, new: NewNames) -> None:
    for address in new.addresses:
        names.address(address)
    for name in new.packet_types:
        names.packet_type(name)


def _pieces(names: Names, waiting: list[bytes]) -> Iterator[Piece]:
    """The waiting records, cut into pieces by the number of rows they stand for, since one record may stand for many."""
    records = as_records(b"".join(waiting))
    waiting.clear()
    rows = np.cumsum(records[:, COUNT])
    start = 0
    while start < len(records):
        before = int(rows[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(rows, before + ROWS_MAX, side="right")))
        yield Piece(names, records[start:stop])
        start = stop
