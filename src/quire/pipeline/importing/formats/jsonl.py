"""JSON lines: one object an event; or one array of them in a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from quire.model.errors import BadInput
from quire.pipeline.importing.chunks import read_chunk
from quire.pipeline.importing.formats.contract import (
    Event,
    Found,
    Likeness,
    LineFormat,
    Log,
    Piece,
    SetApart,
    compile_where,
    first_line,
    starts_like_json,
)
from quire.pipeline.importing.mapping import Columns, look_up, usual_columns, with_following
from quire.pipeline.importing.request import ImportRequest
from quire.pipeline.importing.values import NotJson, read_json


class JsonLinesSettings(msgspec.Struct, frozen=True):
    columns: dict[str, str]
    array: bool
    """All events are in one array, not each in a line."""
    where: str | None = None
    lenient: bool = False


class JsonLines(LineFormat[JsonLinesSettings]):
    settings = JsonLinesSettings

    def recognise(self, log: Log) -> Likeness:
        if log.head.lstrip().startswith(b"[") and b"{" in log.head:
            return Likeness.LIKELY
        line = first_line(log.head)
        # A line that goes on beyond what is at hand looks as it begins.
        whole = len(line) < len(log.head)
        return Likeness.LIKELY if starts_like_json(log) and (_is_object(line) or not whole) else Likeness.NONE

    def settle(self, logs: Sequence[Log], request: ImportRequest) -> JsonLinesSettings:
        head = logs[0].head.lstrip()
        array = head.startswith(b"[")
        try:
            names = [] if array else list(read_json(first_line(head), dict[str, Any]))
        except NotJson:
            names = []  # Whoever reads it says where.
        compile_where(request.where)  # Says what is wrong with it.
        return JsonLinesSettings(with_following(names, request.columns), array, request.where, request.lenient)

    def unit(self, settings: JsonLinesSettings) -> str:
        return "element" if settings.array else "line"

    def in_one_piece(self, settings: JsonLinesSettings) -> bool:
        return settings.array

    def events(self, piece: Piece, settings: JsonLinesSettings, found: Found) -> Iterator[Event]:
        data, own, _ = read_chunk(piece.chunk)
        if settings.array:
            texts: Iterator[tuple[int, Any]] = enumerate(_elements(data, piece), 1)
        else:
            texts = enumerate(data[:own].split(b"\n"), piece.first_line)
        where, known = compile_where(settings.where), dict[tuple[str, ...], Columns]()
        for number, text in texts:
            if isinstance(text, bytes) and (not text.strip() or (where is not None and where.search(text) is None)):
                continue
            place = f"{piece.name} {self.unit(settings)} {number}"
            try:
                row = text if isinstance(text, dict) else _object(text, place)
                names = tuple(row)
                if names not in known:
                    known[names] = _columns(row, settings.columns, place, found)
                event = (number, *known[names].record(row, place))
            except BadInput as error:
                if not settings.lenient:
                    raise
                said = text if isinstance(text, bytes) else msgspec.json.encode(text)
                found.apart.append(SetApart(piece.name, number, str(error), said.decode(errors="replace")))
                continue
            yield event


def _columns(row: Mapping[str, Any], given: Mapping[str, str], where: str, found: Found) -> Columns:
    columns = usual_columns(tuple(row), given)
    found.used.update(field for field, column in given.items() if look_up(row, column) is not None)
    found.unused.update(name for name in row if name not in {column.split(".")[0] for column in columns.columns.values()})
    if "host" not in columns.columns and "id" not in columns.columns:
        raise BadInput(f"{where} names no host; map its column with --map host=COLUMN")
    return columns


def _object(line: bytes, place: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = read_json(line, dict[str, Any])
    except NotJson as error:
        raise BadInput(f"{place} is not a JSON object: {error}") from error
    return found


def _elements(data: bytes, piece: Piece) -> list[dict[str, Any]]:
    try:
        found: list[dict[str, Any]] = read_json(data, list[dict[str, Any]])
    except NotJson as error:
        raise BadInput(f"{piece.name} is not an array of JSON objects: {error}") from error
    return found


def _is_object(line: bytes) -> bool:
    try:
        read_json(line, dict[str, object])
    except NotJson as error:
        return any(word in str(error) for word in ("nested", "twice"))  # Whoever reads it says where.
    return True


FORMAT = JsonLines()
