"""Spans: what a service began to do, and because of what.

The beginning of a span is an event of its service (of its instance, where that is named). It happened after its parent
and the spans that it links to had begun. That is all that a span proves: whether its parent waited for its end is not said,
and clocks of services differ.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

import msgspec

from quire.model.errors import BadInput
from quire.pipeline.importing.chunks import LINE_MAX, read_chunk
from quire.pipeline.importing.formats.contract import Event, Found, LineFormat, Log, Piece
from quire.pipeline.importing.records import check_name
from quire.pipeline.importing.request import ImportRequest
from quire.pipeline.importing.values import NotJson, read_json
from quire.trace.kinds import LOCAL

Document = TypeVar("Document", bound=msgspec.Struct)

SpanId = tuple[str, str]
"""A trace, and a span of it."""


class Span(NamedTuple):
    """What began where and when, and what had begun before."""

    host: str
    id: SpanId
    causes: Sequence[SpanId]
    start_ns: int
    text: str


class BadSpan(Exception):
    """What is wrong with a span; where it is, others know."""


class SpanSettings(msgspec.Struct, frozen=True):
    document: bool
    """Spans are in one document, not in one a line."""


class SpanFormat(LineFormat[SpanSettings], Generic[Document]):
    """Documents of JSON that hold spans."""

    settings = SpanSettings
    document: type[Document]
    """What a document, or a line, is decoded to."""

    @abstractmethod
    def spans(self, document: Document) -> Iterator[Span]:
        """The spans of a document; raises BadSpan for what is none."""

    def settle(self, logs: Sequence[Log], request: ImportRequest) -> SpanSettings:  # noqa: ARG002
        return SpanSettings(document=not _is_lines(logs[0]))

    def unit(self, settings: SpanSettings) -> str:
        return "span" if settings.document else "line"

    def in_one_piece(self, settings: SpanSettings) -> bool:
        return settings.document

    def events(self, piece: Piece, settings: SpanSettings, found: Found) -> Iterator[Event]:  # noqa: ARG002
        data, own, _ = read_chunk(piece.chunk)
        documents = [data] if settings.document else data[:own].split(b"\n")
        for line, text in enumerate(documents, piece.first_line):
            if not text.strip():
                continue
            where = piece.name if settings.document else f"{piece.name} line {line}"
            try:
                document = read_json(text, self.document)
            except NotJson as error:
                raise BadInput(f"{where} does not hold spans: {error}") from error
            number = 0
            try:
                for span in self.spans(document):
                    number += 1
                    yield _event(number if settings.document else line, span, f"{where} span {number}")
            except BadSpan as error:
                raise BadInput(f"{where} span {number + 1}: {error}") from error


def _event(number: int, span: Span, where: str) -> Event:
    if not 0 <= span.start_ns < 1 << 63:
        raise BadInput(f"{where}: it starts at {span.start_ns} ns, which is not a valid time")
    record = {
        "kind": LOCAL,
        "order": span.start_ns,
        "time_ns": span.start_ns,
        "key": _key(span.id, where),
        "causes": sorted({_key(cause, where) for cause in span.causes}),
        "text": span.text,
    }
    return number, "", check_name(span.host, "service", where), record


def _key(span: SpanId, where: str) -> str:
    return check_name(f"{span[0]}:{span[1]}".lower(), "span's id", where)


def _is_lines(log: Log) -> bool:
    """Whether each line is a document: then the first is one, however long it is, and another follows."""
    with log.file.path.open("rb") as file:
        file.seek(log.file.begin)
        first = file.readline(LINE_MAX)
    try:
        read_json(first)
    except NotJson as error:
        return "nested" in str(error)
    return first.endswith(b"\n")
