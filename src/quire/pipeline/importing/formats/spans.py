"""The common part of the span formats: turns tracing spans into events with causes.

The start of a span is an event of its service (of the service instance, if that is named). It happened after the starts of its
parent and of the spans it links to. A span proves no more than that: it does not say whether its parent waited for its end, and
the clocks of services differ.
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
"""The ids of a trace and of a span in it."""


class Span(NamedTuple):
    """A span: what started, where and when, and the spans that had started before."""

    host: str
    id: SpanId
    causes: Sequence[SpanId]
    start_ns: int
    text: str


class BadSpan(Exception):
    """What is wrong with a span; the caller adds where it is."""


class SpanSettings(msgspec.Struct, frozen=True):
    document: bool
    """Whether a file is one document, instead of one per line."""


class SpanFormat(LineFormat[SpanSettings], Generic[Document]):
    """A format of JSON documents that hold spans."""

    settings = SpanSettings
    document: type[Document]
    """The type that a document, or a line, is decoded to."""

    @abstractmethod
    def spans(self, document: Document) -> Iterator[Span]:
        """The spans of a document; raises BadSpan for an invalid one."""

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
    """Whether each line is a document: the first line is one, however long it is, and another line follows."""
    with log.file.path.open("rb") as file:
        file.seek(log.file.begin)
        first = file.readline(LINE_MAX)
    try:
        read_json(first)
    except NotJson as error:
        return "nested" in str(error)
    return first.endswith(b"\n")
