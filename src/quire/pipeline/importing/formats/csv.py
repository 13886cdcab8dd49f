"""CSV with a header, as in RFC 4180, including line breaks in quotes: one record per event.

A chunk begins inside quotes if an odd number of quotes precedes it, so counting quotes is enough to parse chunks independently.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from quire.model.errors import BadInput
from quire.pipeline.importing.cells import csv_rows, record_starts
from quire.pipeline.importing.chunks import RECORD_MAX, decode_text, read_chunk
from quire.pipeline.importing.formats.contract import (
    Event,
    Format,
    Found,
    Likeness,
    Log,
    Piece,
    SetApart,
    compile_where,
    first_line,
    starts_like_json,
)
from quire.pipeline.importing.mapping import usual_columns, with_following
from quire.pipeline.importing.request import ImportRequest
from quire.pipeline.importing.tabular import add_parts, as_part
from quire.pipeline.importing.texts import cut_cells

SEPARATORS = ",\t;"


class CsvSettings(msgspec.Struct, frozen=True):
    header: list[str]
    separator: str
    columns: dict[str, str]
    header_line: int = 1
    where: str | None = None
    lenient: bool = False


class Csv(Format[CsvSettings]):
    settings = CsvSettings

    def recognise(self, log: Log) -> Likeness:
        if starts_like_json(log):
            return Likeness.NONE
        if log.file.suffix in (".csv", ".tsv"):
            return Likeness.CERTAIN
        header = first_line(log.head).decode(errors="replace")
        return Likeness.POSSIBLE if any(separator in header for separator in SEPARATORS) else Likeness.NONE

    def settle(self, logs: Sequence[Log], request: ImportRequest) -> CsvSettings:
        headers = [read_header(first_line(log.head), log.file.name) for log in logs]
        first, (names, separator) = logs[0].file.name, headers[0]
        for log, (columns, _) in zip(logs, headers, strict=True):
            if columns != names:
                raise BadInput(f"{first} and {log.file.name} do not have the same columns")
        for field, column in request.columns.items():
            if column not in names:
                raise BadInput(f"{first} has no column {column!r} for {field}, only {', '.join(names)}")
        given = with_following(names, request.columns)
        if not {"host", "id"} & usual_columns(names, given).columns.keys():
            raise BadInput(
                f"{first} has no column for the host, only {', '.join(names)}; say which it is with --map host=COLUMN"
            )
        compile_where(request.where)  # Raises BadInput if it is invalid.
        return CsvSettings(names, separator, given, 1 + request.skip_lines, request.where, request.lenient)

    def read(self, piece: Piece, settings: CsvSettings, found: Found) -> None:
        data, own, _ = read_chunk(piece.chunk, RECORD_MAX)
        found.used.update(settings.columns)
        columns = usual_columns(settings.header, settings.columns).columns
        found.unused.update(name for name in settings.header if name not in columns.values())
        begin, end = own_records(data, own, piece.inside_quotes)
        records, first = data[begin:end], piece.first_line + data.count(b"\n", 0, begin)
        decode_text(records, piece.name, first)
        found.first = found.resume = piece.chunk.end
        letters = np.frombuffer(records, np.uint8)
        rows = csv_rows(letters, settings.separator, len(settings.header)) if settings.where is None else None
        if rows is None:
            add_parts(found, [], enumerate(_parse(records, piece.name, first, settings, found)))
            return
        lines = first + rows.lines
        chosen = np.flatnonzero(~rows.odd & (lines != settings.header_line))
        whole = len(chosen) == len(lines)
        cells, doubled = (rows.cells, rows.doubled) if whole else (rows.cells[chosen], rows.doubled[chosen])
        at = {name: number for number, name in enumerate(settings.header)}
        fields = {field: cut_cells(letters, cells[:, at[name]], doubled[:, at[name]]) for field, name in columns.items()}
        part, odd = as_part(chosen, lines[chosen], fields)
        others = np.sort(np.concatenate((np.flatnonzero(rows.odd), chosen[odd]))).tolist()
        add_parts(found, [part], (
            (row, event)
            for row in others for event in _parse(
                records[slice(*rows.row[row])], piece.name, int(lines[row]), settings, found
            )
        ))  # fmt: skip


def read_header(line: bytes, path: str) -> tuple[list[str], str]:
    """The names of the columns, and the separator."""
    text = decode_text(line, path, 1).lstrip("\ufeff")
    separator = max(SEPARATORS, key=text.count)
    try:
        names = next(csv.reader([text], delimiter=separator, strict=True), [])
    except csv.Error as error:
        raise BadInput(f"{path} line 1 is not a CSV header: {error}") from error
    names = [name.strip() for name in names]
    if len(set(names)) < len(names):
        raise BadInput(f"{path} line 1 names a column twice: {', '.join(names)}")
    return names, separator


def own_records(data: bytes, own: int, inside: bool) -> tuple[int, int]:
    """Where the chunk's first record begins, and where the first record after the chunk begins."""
    if not inside and b'"' not in data[: own + 1]:
        return 0, own
    starts: tuple[int, int] = record_starts(np.frombuffer(data, np.uint8), own, inside)
    return starts


def _parse(data: bytes, path: str, first_line: int, settings: CsvSettings, found: Found) -> Iterator[Event]:
    """Parse complete records of a file into events, one by one; the header is skipped."""
    names = settings.header
    columns = usual_columns(names, settings.columns)
    text = decode_text(data, path, first_line)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=settings.separator, strict=True)
    line, wanted = first_line, compile_where(settings.where)
    try:
        for row in reader:
            at, line = line, first_line + reader.line_num
            said = settings.separator.join(row)
            if not row or at == settings.header_line or (wanted is not None and wanted.search(said.encode()) is None):
                continue
            where = f"{path} line {at}"
            try:
                if len(row) != len(names):
                    raise BadInput(f"{where} has {len(row)} columns, but the header has {len(names)}")
                event = (at, *columns.record(dict(zip(names, row, strict=True)), where))
            except BadInput as error:
                if not settings.lenient:
                    raise
                found.apart.append(SetApart(path, at, str(error), said))
                continue
            yield event
    except csv.Error as error:
        raise BadInput(f"{path} line {line} is not CSV: {error}") from error


FORMAT = Csv()
