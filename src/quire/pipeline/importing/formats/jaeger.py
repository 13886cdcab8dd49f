"""Jaeger spans, in the JSON of its query API: one document per file or per line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from quire.pipeline.importing.formats.contract import Likeness, Log, starts_like_json
from quire.pipeline.importing.formats.spans import BadSpan, Span, SpanFormat


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
    """A document, or a line, of Jaeger's JSON: several traces, or a single one."""

    data: list[_JaegerTrace] | None = None
    spans: list[_JaegerSpan] = []
    processes: dict[str, _Process] = {}


class JaegerFormat(SpanFormat[Jaeger]):
    document = Jaeger

    def recognise(self, log: Log) -> Likeness:
        if not starts_like_json(log):
            return Likeness.NONE
        if b'"processes"' in log.head or b'"operationName"' in log.head:
            return Likeness.CERTAIN
        return Likeness.POSSIBLE if b'"data"' in log.head else Likeness.NONE

    def spans(self, document: Jaeger) -> Iterator[Span]:
        if document.data is None and not document.spans:
            raise BadSpan("there is none: neither data nor spans")
        for trace in document.data or [_JaegerTrace(document.spans, document.processes)]:
            for span in trace.spans:
                process = trace.processes.get(span.process)
                if process is None:
                    raise BadSpan(f"it has process {span.process!r}, which the trace does not describe")
                failed = any(tag.key == "error" and str(tag.value).lower() == "true" for tag in span.tags)
                causes = [(reference.trace, reference.span) for reference in span.references]
                text = f"{span.name} ERROR" if failed else span.name
                yield Span(process.service, (span.trace, span.span), causes, span.start_us * 1000, text)


FORMAT = JaegerFormat()
