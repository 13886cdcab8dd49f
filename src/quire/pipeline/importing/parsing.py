"""The task that parses one chunk of a file.

It writes the records to a file, one batch per host, grouped by execution, and returns a summary.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa

from quire.pipeline.codec import decode
from quire.pipeline.compiled import compiled
from quire.pipeline.importing.chunks import Chunk, read_chunk
from quire.pipeline.importing.defects import KEPT_MAX
from quire.pipeline.importing.formats import registry
from quire.pipeline.importing.formats.contract import Found, Piece
from quire.pipeline.importing.records import NAMES, RECORDS

_NEWLINE, _QUOTE = 10, 34


class CountTask(msgspec.Struct, tag="count"):
    chunk: Chunk


class Counts(msgspec.Struct):
    lines: int
    quotes: int


class ParseTask(msgspec.Struct, tag="parse"):
    chunk: Chunk
    name: str
    """The name of the file in messages."""
    format: str
    settings: bytes
    """The settings of the format, encoded."""
    out: str
    first_line: int
    inside_quotes: bool = False
    first: int | None = None
    """Where in the file to start searching, if not at the chunk's beginning."""


class Slice(msgspec.Struct, frozen=True):
    """The records of one host in one execution: a range of rows in a batch of the written file."""

    execution: int
    host: str
    batch: int
    first_row: int
    rows: int
    first_line: int


class Parsed(msgspec.Struct):
    """The summary of a chunk: what `Found` holds, except for the records, which were written."""

    slices: list[Slice]
    executions: list[str]
    dests: list[tuple[int, str]]
    clocked: bool
    caused: bool
    used: list[str]
    unused: list[str]
    apart: int
    """How many unreadable lines were written to a file beside the records."""
    untimed: int
    untimed_first: list[tuple[int, str, str]]
    first: int
    resume: int


def count(task: CountTask) -> Counts:
    data, own, _ = read_chunk(task.chunk)
    return Counts(*_count(np.frombuffer(data, np.uint8)[:own]))


@compiled
def _count(data: np.ndarray) -> tuple[int, int]:
    """How many lines end in the data, and how many quotes are in it."""
    lines, quotes = 0, 0
    for letter in data:
        lines += letter == _NEWLINE
        quotes += letter == _QUOTE
    return lines, quotes


def parse(task: ParseTask) -> Parsed:
    format_ = registry.find(task.format).load()
    found = Found()
    piece = Piece(task.chunk, task.name, task.first_line, task.inside_quotes, task.first)
    format_.read(piece, decode(task.settings, format_.settings), found)
    return _write(task, found)


def _write(task: ParseTask, found: Found) -> Parsed:
    slices = []
    if found.apart:
        Path(f"{task.out}.apart").write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in found.apart))
    names, host, records = found.block()
    execution = np.asarray(records["execution"])
    by_name = sorted(range(len(names)), key=names.__getitem__)
    rank = np.empty(len(names), np.int32)
    rank[by_name] = np.arange(len(names))
    key = rank[host].astype(np.uint16 if len(names) <= 1 << 16 else np.int32)  # There is a faster way to sort short numbers.
    order = np.lexsort((execution, key)) if execution.any() else np.argsort(key, kind="stable")
    records, host, execution = records.take(order), host[order], execution[order]
    line, file_column = np.asarray(records["line"]), pa.array(np.full(len(host), task.chunk.file, np.int32))
    records = records.set_column(records.schema.get_field_index("file"), "file", file_column)
    first = np.flatnonzero(np.concatenate(([True], host[1:] != host[:-1]))) if len(host) else np.empty(0, np.int64)
    schema = RECORDS.with_metadata({NAMES: msgspec.json.encode(names)})
    with pa.OSFile(task.out, "wb") as file, pa.ipc.new_file(file, schema) as writer:
        for batch, (begin, end) in enumerate(pairwise([*first.tolist(), len(host)])):
            writer.write_batch(records.slice(begin, end - begin))
            inside = (np.flatnonzero(execution[begin + 1 : end] != execution[begin : end - 1]) + begin + 1).tolist()
            slices += [
                Slice(int(execution[one]), names[host[one]], batch, one - begin, other - one, int(line[one]))
                for one, other in pairwise([begin, *inside, end])
            ]
    return Parsed(
        slices, found.executions, sorted(found.dests), found.clocked, found.caused, sorted(found.used), sorted(found.unused),
        len(found.apart), len(found.untimed), found.untimed[:KEPT_MAX], found.first, found.resume,
    )  # fmt: skip
