"""JSON lines: one object an event."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from quire.model.errors import BadInput
from quire.pipeline.importing.chunks import read_chunk
from quire.pipeline.importing.formats.contract import Event, Likeness, LineFormat, Log, Piece, first_line, starts_like_json
from quire.pipeline.importing.mapping import Columns, usual_columns
from quire.pipeline.importing.request import ImportRequest


class JsonLinesSettings(msgspec.Struct, frozen=True):
    columns: dict[str, str]


class JsonLines(LineFormat[JsonLinesSettings]):
    settings = JsonLinesSettings

    def recognise(self, log: Log) -> Likeness:
        return Likeness.LIKELY if starts_like_json(log) and _is_object(first_line(log.head)) else Likeness.NONE

    def settle(self, logs: Sequence[Log], request: ImportRequest) -> JsonLinesSettings:  # noqa: ARG002
        return JsonLinesSettings(request.columns)

    def events(self, piece: Piece, settings: JsonLinesSettings) -> Iterator[Event]:
        data, own, _ = read_chunk(piece.chunk)
        return _parse(data[:own], piece.name, piece.first_line, settings.columns)


def _parse(data: bytes, path: str, first_line: int, given: Mapping[str, str]) -> Iterator[Event]:
    known: dict[tuple[str, ...], Columns] = {}
    for number, line in enumerate(data.split(b"\n"), first_line):
        if not line.strip():
            continue
        where = f"{path} line {number}"
        try:
            row = msgspec.json.decode(line, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise BadInput(f"{where} is not a JSON object: {error}") from error
        names = tuple(row)
        if names not in known:
            known[names] = usual_columns(names, given)
            if "host" not in known[names].columns:
                raise BadInput(f"{where} names no host; map its column with --map host=COLUMN")
        yield (number, *known[names].record(row, where))


def _is_object(line: bytes) -> bool:
    try:
        msgspec.json.decode(line, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True


FORMAT = JsonLines()
