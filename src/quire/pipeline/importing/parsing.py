"""A chunk of a file, parsed by one task: its records go to a file, a batch for each host, and what they are is told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
import pyarrow as pa

from quire.pipeline.importing import csv, jsonl, shiviz, spans
from quire.pipeline.importing.chunks import Chunk, decode_text, read_chunk
from quire.pipeline.importing.records import RECORDS, as_batch

Form = Literal["shiviz", "jsonl", "csv", "otel", "jaeger"]


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How to read the files."""

    format: Form
    regex: str = ""
    delimiter: str | None = None
    columns: dict[str, str] = {}
    header: list[str] = []
    separator: str = ","
    documents: bool = False
    """Spans are in one document, not in one a line."""

    @property
    def unit(self) -> str:
        """What the numbers of defects count."""
        return "span" if self.format in ("otel", "jaeger") else "line"


class CountTask(msgspec.Struct, tag="count"):
    chunk: Chunk


class Counts(msgspec.Struct):
    lines: int
    quotes: int


class ParseTask(msgspec.Struct, tag="parse"):
    chunk: Chunk
    name: str
    """What the file is called in sentences."""
    options: Options
    out: str
    first_line: int
    inside: bool = False
    """The chunk begins inside quotes."""
    first: int | None = None
    """Where in the file the first match is sought, if not at the chunk's beginning."""


class Slice(msgspec.Struct, frozen=True):
    """The records of one host in one execution: a batch of the file that was written."""

    execution: int
    host: str
    batch: int
    rows: int
    first_line: int


class Parsed(msgspec.Struct):
    slices: list[Slice]
    executions: list[str]
    """Labels. Where executions are delimited, the first is the one that was open when the chunk began."""
    dests: list[tuple[int, str]]
    """Hosts that are named as destinations, by execution."""
    clocked: bool
    """Whether there are vector clocks."""
    first: int
    """Where in the file the first match begins, or the end of the chunk."""
    resume: int
    """Where in the file the search for the next match goes on."""


def count(task: CountTask) -> Counts:
    data, own, _ = read_chunk(task.chunk)
    return Counts(data.count(b"\n", 0, own), data.count(b'"', 0, own))


def parse(task: ParseTask) -> Parsed:
    found = _Found()
    if task.options.format == "shiviz":
        _parse_shiviz(task, found)
    else:
        for line, execution, host, record in _rows(task):
            found.add(found.execution(execution), host, line, record)
        found.first = found.resume = task.chunk.end
    return found.write(task)


class _Found:
    def __init__(self) -> None:
        self.rows: dict[tuple[int, str], list[dict[str, Any]]] = {}
        self.executions: list[str] = []
        self.dests: set[tuple[int, str]] = set()
        self.clocked = False
        self.first = self.resume = 0

    def execution(self, label: str) -> int:
        if label not in self.executions:
            self.executions.append(label)
        return self.executions.index(label)

    def add(self, execution: int, host: str, line: int, record: dict[str, Any]) -> None:
        record["line"] = line
        self.rows.setdefault((execution, host), []).append(record)
        self.dests.update((execution, dest) for dest in record.get("dests") or ())
        self.clocked = self.clocked or "clock_hosts" in record

    def write(self, task: ParseTask) -> Parsed:
        slices = []
        with pa.OSFile(task.out, "wb") as file, pa.ipc.new_file(file, RECORDS) as writer:
            for batch, ((execution, host), rows) in enumerate(self.rows.items()):
                for row in rows:
                    row["file"] = task.chunk.file
                writer.write_batch(as_batch(rows))
                slices.append(Slice(execution, host, batch, len(rows), rows[0]["line"]))
        return Parsed(slices, self.executions, sorted(self.dests), self.clocked, self.first, self.resume)


def _rows(task: ParseTask) -> Iterator[jsonl.Parsed]:
    options, name, first = task.options, task.name, task.first_line
    if options.format == "csv":
        data, own, _ = read_chunk(task.chunk, shiviz.RECORD_MAX)
        begin, end = csv.own_records(data, own, task.inside)
        return csv.parse(
            data[begin:end], name, first + data.count(b"\n", 0, begin), options.header, options.separator, options.columns
        )
    data, own, _ = read_chunk(task.chunk)
    if options.format == "jsonl":
        return jsonl.parse(data[:own], name, first, options.columns)
    documents = [data] if options.documents else data[:own].split(b"\n")
    read = spans.parse_otel if options.format == "otel" else spans.parse_jaeger
    return read(documents, name, first)


def _parse_shiviz(task: ParseTask, found: _Found) -> None:
    layout = shiviz.Layout(task.options.regex, task.options.delimiter)
    data, own, start = read_chunk(task.chunk, shiviz.RECORD_MAX)
    decode_text(data[:own], task.name, task.first_line)
    whole = start + len(data) >= Path(task.chunk.path).stat().st_size
    borders = shiviz.delimiters(layout, data, len(data))
    inside = [border for border in borders if border[0] < own]
    found.executions = ["", *(label for *_, label in inside)]
    begin = 0 if task.first is None else task.first - start
    found.first, found.resume = start + own, start + max(begin, own)
    line, counted = task.first_line, 0
    passed = 0
    for match in shiviz.scan(layout, data, begin, own, whole, [at for at, *_ in borders]):
        while passed < len(inside) and inside[passed][0] <= match.start:
            passed += 1
        if passed and match.start < inside[passed - 1][1]:
            continue  # A delimiter is not an event, even if it looks like one.
        line += data.count(b"\n", counted, match.start)
        counted = match.start
        host, record = shiviz.as_record(match, f"{task.name} line {line}")
        found.add(passed, host, line, record)
        found.first = min(found.first, start + match.start)
        found.resume = max(found.resume, start + match.end)
