"""OpenTelemetry spans, in OTLP's JSON: one document per file or per line."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from quire.pipeline.importing.formats.contract import Likeness, Log, starts_like_json
from quire.pipeline.importing.formats.spans import BadSpan, Span, SpanFormat

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


class OpenTelemetry(SpanFormat[Otlp]):
    document = Otlp

    def recognise(self, log: Log) -> Likeness:
        return Likeness.CERTAIN if starts_like_json(log) and b'"resourceSpans"' in log.head else Likeness.NONE

    def spans(self, document: Otlp) -> Iterator[Span]:
        for resource in document.resource_spans:
            named = {attribute.key: attribute.value.string for attribute in resource.resource.attributes}
            service, instance = named.get("service.name") or "unknown", named.get("service.instance.id")
            host = f"{service}/{instance}" if instance else service
            for span in (span for scope in resource.scope_spans for span in scope.spans):
                failed = span.status.code in (_ERROR, "STATUS_CODE_ERROR")
                text = f"{span.name} ERROR {span.status.message}".rstrip() if failed else span.name
                causes = [(span.trace_id, span.parent_span_id)] if span.parent_span_id else []
                causes += [(link.trace_id, link.span_id) for link in span.links]
                start = span.start_time_unix_nano
                if isinstance(start, str) and not start.isdecimal():
                    raise BadSpan(f"the start {start[:40]!r} is not a number of nanoseconds")
                yield Span(host, (span.trace_id, span.span_id), causes, int(start), text)


FORMAT = OpenTelemetry()
