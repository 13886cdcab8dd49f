"""JSON lines with one object per event; or a file with one JSON array of such objects."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quire.model.errors import BadInput
from quire.pipeline.importing.cells import CLOCK, NULL, JsonRows, json_rows
from quire.pipeline.importing.chunks import read_chunk
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
from quire.pipeline.importing.mapping import Columns, have_kind, look_up, usual_columns, with_following
from quire.pipeline.importing.request import ImportRequest
from quire.pipeline.importing.tabular import Part, add_parts, as_part
from quire.pipeline.importing.texts import cut_texts, is_text
from quire.pipeline.importing.values import NotJson, read_json


class JsonLinesSettings(msgspec.Struct, frozen=True):
    columns: dict[str, str]
    array: bool
    """Whether all events are in one array, instead of one per line."""
    where: str | None = None
    lenient: bool = False


class JsonLines(Format[JsonLinesSettings]):
    settings = JsonLinesSettings

    def recognise(self, log: Log) -> Likeness:
        if log.head.lstrip().startswith(b"[") and b"{" in log.head:
            return Likeness.LIKELY
        line = first_line(log.head)
        # A line that extends beyond the bytes at hand is judged by its beginning.
        whole = len(line) < len(log.head)
        return Likeness.LIKELY if starts_like_json(log) and (_is_object(line) or not whole) else Likeness.NONE

    def settle(self, logs: Sequence[Log], request: ImportRequest) -> JsonLinesSettings:
        head = logs[0].head.lstrip()
        array = head.startswith(b"[")
        rows = [row for row in _first_rows(head, array=array) if not have_kind(tuple(row))]
        names = [*dict.fromkeys(name for row in rows for name in row)]
        compile_where(request.where)  # Raises BadInput if it is invalid.
        return JsonLinesSettings(with_following(names, request.columns), array, request.where, request.lenient)

    def unit(self, settings: JsonLinesSettings) -> str:
        return "element" if settings.array else "line"

    def in_one_piece(self, settings: JsonLinesSettings) -> bool:
        return settings.array

    def read(self, piece: Piece, settings: JsonLinesSettings, found: Found) -> None:
        data, own, _ = read_chunk(piece.chunk)
        found.first = found.resume = piece.chunk.end
        rows = _Rows(piece, settings, self.unit(settings), found)
        if settings.array:
            add_parts(found, [], rows.events(enumerate(enumerate(_elements(data, piece), 1))))
            return
        data = data[:own]
        if settings.where is not None or not is_text(data):
            add_parts(found, [], rows.events(enumerate(enumerate(data.split(b"\n"), piece.first_line))))
            return
        letters = np.frombuffer(data, np.uint8)
        found_rows = json_rows(letters)
        lines = piece.first_line + found_rows.lines
        odd = found_rows.shape < 0
        parts = []
        for shape, keys in enumerate(found_rows.shapes):
            chosen = np.flatnonzero(found_rows.shape == shape)
            names = [data[begin:end].decode() for begin, end in keys.tolist()]
            place = rows.place(int(lines[chosen[0]]))
            try:
                columns = rows.columns(names, _object(data[slice(*found_rows.row[chosen[0]])], place), place)
            except BadInput:
                odd[chosen] = True  # No host, or a repeated key: reported when these rows are read one by one.
                continue
            part, others = _as_part(letters, found_rows, chosen, lines[chosen], names, columns)
            odd[chosen[others]] = True
            parts.append(part)
        texts = ((row, (int(lines[row]), data[slice(*found_rows.row[row])])) for row in np.flatnonzero(odd).tolist())
        add_parts(found, parts, rows.events(texts))


class _Rows:
    """Reads rows of a piece one by one: the slow path."""

    def __init__(self, piece: Piece, settings: JsonLinesSettings, unit: str, found: Found) -> None:
        self._name, self._unit, self._settings, self._found = piece.name, unit, settings, found
        self._where, self._known = compile_where(settings.where), dict[tuple[str, ...], Columns]()

    def place(self, number: int) -> str:
        return f"{self._name} {self._unit} {number}"

    def columns(self, names: Sequence[str], row: Mapping[str, Any], place: str) -> Columns:
        """The columns for rows with these names, given one such row."""
        known = self._known.get(tuple(names))
        if known is None:
            known = self._known[tuple(names)] = _columns(row, self._settings.columns, place, self._found)
        return known

    def events(self, texts: Iterable[tuple[int, tuple[int, Any]]]) -> Iterator[tuple[int, Event]]:
        """The events of these rows, given as (row number, (line, content)); each event is returned with its row number."""
        for row_number, (number, text) in texts:
            if isinstance(text, bytes) and (not text.strip() or (self._where is not None and self._where.search(text) is None)):
                continue
            place = self.place(number)
            try:
                row = text if isinstance(text, dict) else _object(text, place)
                event = (number, *self.columns(tuple(row), row, place).record(row, place))
            except BadInput as error:
                if not self._settings.lenient:
                    raise
                said = text if isinstance(text, bytes) else msgspec.json.encode(text)
                self._found.apart.append(SetApart(self._name, number, str(error), said.decode(errors="replace")))
                continue
            yield row_number, event


def _as_part(
    letters: np.ndarray, rows: JsonRows, chosen: np.ndarray, lines: np.ndarray, names: Sequence[str], columns: Columns
) -> tuple[Part, np.ndarray]:  # fmt: skip
    """The records of the rows of one shape, and which of the rows are odd, including those with a clock in another column."""
    if any(column not in names for column in columns.columns.values()):
        return as_part(chosen[:0], lines[:0], {})[0], np.ones(len(chosen), np.bool_)
    clock = columns.columns.get("clock")
    cells = rows.first[chosen][:, None] + np.arange(len(names))
    holds = rows.holds[cells]
    usual = np.ones(len(chosen), np.bool_)
    for number, name in enumerate(names):
        if name != clock:
            usual &= holds[:, number] != CLOCK
    cells, holds = cells[usual], holds[usual]
    fields = {}
    for field, name in columns.columns.items():
        number = names.index(name)
        texts = cut_texts(letters, rows.cells[cells[:, number]])
        is_null = holds[:, number] == NULL
        fields[field] = pc.if_else(pa.array(is_null), None, texts) if is_null.any() else texts
    part, others = as_part(chosen[usual], lines[usual], fields)
    odd = ~usual
    odd[np.flatnonzero(usual)[others]] = True
    return part, odd


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


def _first_rows(head: bytes, *, array: bool) -> Iterator[dict[str, Any]]:
    """The objects at the beginning of a file, as far as they are whole. What is wrong with others is reported when the file is
    read. Several are needed, because the first event may lack what only others have, like a cause."""
    if not array:
        for line in head.split(b"\n"):
            with suppress(NotJson):
                yield read_json(line, dict[str, Any])
        return
    text, at = head.decode(errors="replace"), 1
    with suppress(ValueError, RecursionError):
        while True:
            row, at = json.JSONDecoder().raw_decode(text, text.index("{", at))
            if isinstance(row, dict):
                yield row


def _is_object(line: bytes) -> bool:
    try:
        read_json(line, dict[str, object])
    except NotJson as error:
        return any(word in str(error) for word in ("nested", "twice"))  # Reported with its line when the file is read.
    return True


FORMAT = JsonLines()
