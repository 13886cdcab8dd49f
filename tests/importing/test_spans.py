"""Spans as OpenTelemetry's collectors and Jaeger write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.importing.kit import rows, take_in


def otel_span(span: str, start: int, parent: str = "", links: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    return {
        "traceId": "T", "spanId": span, "parentSpanId": parent, "name": f"do {span}", "startTimeUnixNano": str(start),
        "links": [{"traceId": "T", "spanId": link} for link in links], **more,
    }  # fmt: skip


def otel(spans: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]},
                "scopeSpans": [{"spans": its}],
            }
            for service, its in spans.items()
        ]
    }


def test_spans_happen_after_their_parents_and_links(tmp_path: Path) -> None:
    front = [otel_span("1", 10), otel_span("4", 40, links=("3",))]
    back = [otel_span("2", 20, "1"), otel_span("3", 30, "2", status={"code": 2, "message": "lost"})]
    document = otel({"front": front, "back": back})

    imported = take_in(tmp_path, json.dumps(document, indent=1), "spans.json")
    as_document = rows(tmp_path / "run")
    spans = [("front", span) for span in front] + [("back", span) for span in back]
    lines = "".join(json.dumps(otel({service: [span]})) + "\n" for service, span in spans)
    take_in(tmp_path, lines, "spans.json", chunk_bytes=100)

    assert imported.format == "otel"
    assert [(row["process"], row["kind"], row["text"]) for row in as_document] == [
        (0, "send", "do 1"),
        (0, "deliver", None),
        (0, "local", "do 4"),
        (1, "deliver", None),
        (1, "local", "do 2"),
        (1, "send", "do 3 ERROR lost"),
    ]
    assert [row["text"] for row in rows(tmp_path / "run")] == [row["text"] for row in as_document]


def test_jaeger_is_read_too(tmp_path: Path) -> None:
    def span(name: str, process: str, start: int, *parents: str) -> dict[str, Any]:
        references = [{"refType": "CHILD_OF", "traceID": "T", "spanID": parent} for parent in parents]
        return {
            "traceID": "T", "spanID": name, "operationName": name, "references": references,
            "startTime": start, "processID": process, "tags": [],
        }  # fmt: skip

    trace = {
        "traceID": "T",
        "spans": [span("b", "p2", 7, "a"), span("a", "p1", 5)],
        "processes": {"p1": {"serviceName": "front"}, "p2": {"serviceName": "back"}},
    }

    imported = take_in(tmp_path, json.dumps({"data": [trace]}), "spans.json")

    assert imported.format == "jaeger"
    assert imported.executions[0].hosts == ("back", "front")
    told = [(row["kind"], row["time_ns"]) for row in rows(tmp_path / "run")]
    assert told == [("deliver", 7000), ("local", 7000), ("send", 5000)]

    alone = take_in(tmp_path, json.dumps(trace), "spans.json")

    assert (alone.format, alone.executions[0].hosts) == ("jaeger", ("back", "front"))
    assert [(row["kind"], row["time_ns"]) for row in rows(tmp_path / "run")] == told


def test_lines_of_thousands_of_spans_are_lines(tmp_path: Path) -> None:
    """A collector writes as many spans in a line as it had at hand: much more than is looked at to recognise the format."""
    lines = [
        json.dumps(otel({"front": [otel_span(f"{line}.{number}", number) for number in range(1000)]})) for line in range(3)
    ]
    assert len(lines[0]) > 1 << 16

    for wanted in ({}, {"format": "otel"}):
        imported = take_in(tmp_path, "\n".join(lines) + "\n", "spans.json", **wanted)

        assert (imported.format, imported.executions[0].events) == ("otel", 3000)
