"""A chunk of a file, parsed by one task: its records go to a file, a batch for each host in which those of an execution lie
together, and what was found is returned."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from quire.pipeline.codec import decode
from quire.pipeline.importing.chunks import Chunk, read_chunk
from quire.pipeline.importing.defects import KEPT_MAX
from quire.pipeline.importing.formats import registry
from quire.pipeline.importing.formats.contract import Found, Piece
from quire.pipeline.importing.records import RECORDS, as_batch


class CountTask(msgspec.Struct, tag="count"):
    chunk: Chunk


class Counts(msgspec.Struct):
    lines: int
    quotes: int


class ParseTask(msgspec.Struct, tag="parse"):
    chunk: Chunk
    name: str
    """What the file is called in sentences."""
    format: str
    settings: bytes
    """The format's own, encoded."""
    out: str
    first_line: int
    inside_quotes: bool = False
    first: int | None = None
    """Where in the file the first match is sought, if not at the chunk's beginning."""


class Slice(msgspec.Struct, frozen=True):
    """The records of one host in one execution: some rows of a batch of the file that was written."""

    execution: int
    host: str
    batch: int
    first_row: int
    rows: int
    first_line: int


class Parsed(msgspec.Struct):
    """What `Found` says, with the records written."""

    slices: list[Slice]
    executions: list[str]
    dests: list[tuple[int, str]]
    clocked: bool
    caused: bool
    used: list[str]
    unused: list[str]
    apart: int
    """How many lines were set apart, in a file beside the records."""
    untimed: int
    untimed_first: list[tuple[int, str, str]]
    first: int
    resume: int


def count(task: CountTask) -> Counts:
    data, own, _ = read_chunk(task.chunk)
    return Counts(data.count(b"\n", 0, own), data.count(b'"', 0, own))


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
    with pa.OSFile(task.out, "wb") as file, pa.ipc.new_file(file, RECORDS) as writer:
        by_host = sorted(found.rows.items(), key=lambda item: item[0][1])
        for batch, (host, groups) in enumerate(groupby(by_host, key=lambda item: item[0][1])):
            together: list[dict[str, Any]] = []
            for (execution, _), rows in groups:
                for row in rows:
                    row["execution"], row["file"] = execution, task.chunk.file
                slices.append(Slice(execution, host, batch, len(together), len(rows), rows[0]["line"]))
                together += rows
            writer.write_batch(as_batch(together))
    return Parsed(
        slices, found.executions, sorted(found.dests), found.clocked, found.caused, sorted(found.used), sorted(found.unused),
        len(found.apart), len(found.untimed), found.untimed[:KEPT_MAX], found.first, found.resume,
    )  # fmt: skip
