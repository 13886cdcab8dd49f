"""Spans: what a service began to do, and because of what.

The beginning of a span is an event of its service (of its instance, where that is named). It happened after its parent
and the spans that it links to had begun. That is all that a span proves: whether its parent waited for its end is not said.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

import msgspec

from quire.model.errors import BadInput
from quire.pipeline.importing.chunks import read_chunk
from quire.pipeline.importing.formats.contract import Event, LineFormat, Log, Piece
from quire.pipeline.importing.records import check_name
from quire.pipeline.importing.request import ImportRequest
from quire.trace.schema import LOCAL

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
    unit = "span"
    document: type[Document]
    """What a document, or a line, is decoded to."""

    @abstractmethod
    def spans(self, document: Document) -> Iterator[Span]:
        """The spans of a document; raises BadSpan for what is none."""

    def settle(self, logs: Sequence[Log], request: ImportRequest) -> SpanSettings:  # noqa: ARG002
        return SpanSettings(document=not _is_lines(logs[0].head))

    def in_one_piece(self, settings: SpanSettings) -> bool:
        return settings.document

    def events(self, piece: Piece, settings: SpanSettings) -> Iterator[Event]:
        data, own, _ = read_chunk(piece.chunk)
        number = piece.first_line
        for document in self._decode([data] if settings.document else data[:own].split(b"\n"), piece):
            try:
                for span in self.spans(document):
                    yield _event(number, span, f"{piece.name} span {number}")
                    number += 1
            except BadSpan as error:
                raise BadInput(f"{piece.name} span {number}: {error}") from error

    def _decode(self, documents: Sequence[bytes], piece: Piece) -> Iterator[Document]:
        decoder = msgspec.json.Decoder(self.document)
        for number, document in enumerate(documents, piece.first_line):
            if not document.strip():
                continue
            try:
                yield decoder.decode(document)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                where = piece.name if len(documents) == 1 else f"{piece.name} line {number}"
                raise BadInput(f"{where} does not hold spans: {error}") from error


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


def _is_lines(head: bytes) -> bool:
    first, newline, _ = head.partition(b"\n")
    try:
        msgspec.json.decode(first)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return bool(newline)
