"""Spans of OpenTelemetry and Jaeger: what a service began to do, and because of what.

The beginning of a span is an event of its service (of its instance, where that is named). It happened after its parent
and the spans that it links to had begun. That is all that a span proves: whether its parent waited for its end is not said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from quire.model.errors import BadInput
from quire.pipeline.importing.jsonl import Parsed
from quire.pipeline.importing.records import check_name
from quire.trace.schema import LOCAL

_ERROR = 2


class _Value(msgspec.Struct):
    string: str | None = msgspec.field(name="stringValue", default=None)


class _Attribute(msgspec.Struct):
    key: str
    value: _Value = msgspec.field(default_factory=_Value)


class _Resource(msgspec.Struct):
    attributes: list[_Attribute] = []


class _Link(msgspec.Struct, rename="camel"):
    trace_id: str
    span_id: str


class _Status(msgspec.Struct):
    code: int | str = 0
    message: str = ""


class _Span(msgspec.Struct, rename="camel"):
    trace_id: str
    span_id: str
    start_time_unix_nano: int | str
    parent_span_id: str = ""
    name: str = ""
    links: list[_Link] = []
    status: _Status = msgspec.field(default_factory=_Status)


class _Scope(msgspec.Struct):
    spans: list[_Span] = []


class _ResourceSpans(msgspec.Struct, rename="camel"):
    resource: _Resource = msgspec.field(default_factory=_Resource)
    scope_spans: list[_Scope] = []


class Otlp(msgspec.Struct, rename="camel"):
    """A document, or a line, of OpenTelemetry's JSON."""

    resource_spans: list[_ResourceSpans]


class _Reference(msgspec.Struct):
    trace: str = msgspec.field(name="traceID")
    span: str = msgspec.field(name="spanID")


class _Tag(msgspec.Struct):
    key: str
    value: Any = None


class _JaegerSpan(msgspec.Struct):
    trace: str = msgspec.field(name="traceID")
    span: str = msgspec.field(name="spanID")
    start_us: int = msgspec.field(name="startTime")
    process: str = msgspec.field(name="processID")
    name: str = msgspec.field(name="operationName", default="")
    references: list[_Reference] = []
    tags: list[_Tag] = []


class _Process(msgspec.Struct):
    service: str = msgspec.field(name="serviceName")


class _JaegerTrace(msgspec.Struct):
    spans: list[_JaegerSpan]
    processes: dict[str, _Process]


class Jaeger(msgspec.Struct):
    """A document, or a line, of Jaeger's JSON."""

    data: list[_JaegerTrace]


def parse_otel(documents: Sequence[bytes], path: str, first: int) -> Iterator[Parsed]:
    """The events of some documents; `first` numbers their first span."""
    number = first - 1
    for document in _decode(documents, path, first, Otlp):
        for resource in document.resource_spans:
            named = {attribute.key: attribute.value.string for attribute in resource.resource.attributes}
            service, instance = named.get("service.name") or "unknown", named.get("service.instance.id")
            host = f"{service}/{instance}" if instance else service
            for span in (span for scope in resource.scope_spans for span in scope.spans):
                number += 1
                failed = span.status.code in (_ERROR, "STATUS_CODE_ERROR")
                text = f"{span.name} ERROR {span.status.message}".rstrip() if failed else span.name
                causes = [(span.trace_id, span.parent_span_id)] if span.parent_span_id else []
                causes += [(link.trace_id, link.span_id) for link in span.links]
                start = span.start_time_unix_nano
                if isinstance(start, str) and not start.isdecimal():
                    raise BadInput(f"{path} span {number}: the start {start[:40]!r} is not a number of nanoseconds")
                yield _record(number, path, host, (span.trace_id, span.span_id), causes, int(start), text)


def parse_jaeger(documents: Sequence[bytes], path: str, first: int) -> Iterator[Parsed]:
    number = first - 1
    for document in _decode(documents, path, first, Jaeger):
        for trace in document.data:
            for span in trace.spans:
                number += 1
                process = trace.processes.get(span.process)
                if process is None:
                    raise BadInput(f"{path} span {number}: it has process {span.process!r}, which the trace does not describe")
                failed = any(tag.key == "error" and str(tag.value).lower() == "true" for tag in span.tags)
                causes = [(reference.trace, reference.span) for reference in span.references]
                text = f"{span.name} ERROR" if failed else span.name
                yield _record(number, path, process.service, (span.trace, span.span), causes, span.start_us * 1000, text)


def _decode(documents: Sequence[bytes], path: str, first: int, kind: Any) -> Iterator[Any]:
    decoder = msgspec.json.Decoder(kind)
    for number, document in enumerate(documents, first):
        if not document.strip():
            continue
        try:
            yield decoder.decode(document)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            where = path if len(documents) == 1 else f"{path} line {number}"
            raise BadInput(f"{where} does not hold spans: {error}") from error


def _record(
    number: int, path: str, host: str, key: tuple[str, str], causes: Sequence[tuple[str, str]], start_ns: int, text: str
) -> Parsed:  # fmt: skip
    where = f"{path} span {number}"
    if not 0 <= start_ns < 1 << 63:
        raise BadInput(f"{where}: it starts at {start_ns} ns, which is no time")
    record: Mapping[str, Any] = {
        "kind": LOCAL,
        "order": start_ns,
        "time_ns": start_ns,
        "key": _key(key, where),
        "causes": sorted({_key(cause, where) for cause in causes}),
        "text": text,
    }
    return number, "", check_name(host, "service", where), dict(record)


def _key(span: tuple[str, str], where: str) -> str:
    return check_name(f"{span[0]}:{span[1]}".lower(), "span's id", where)
