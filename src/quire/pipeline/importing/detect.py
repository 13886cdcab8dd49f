"""Which format a file has, by its beginning."""

from __future__ import annotations

from pathlib import Path

import msgspec

from quire.model.errors import BadInput
from quire.pipeline.importing import csv, shiviz

FORMATS = ("shiviz", "jsonl", "csv", "otel", "jaeger")
HEAD_BYTES = 1 << 16


def read_head(path: Path) -> bytes:
    """The beginning of a file. Raises BadInput where there is none."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
    if not head.strip():
        raise BadInput(f"{path} is empty")
    return head


def detect(path: Path) -> str:
    """One of FORMATS. Raises BadInput for what is none."""
    head = read_head(path)
    if head.lstrip()[:1] == b"{":
        first = head.split(b"\n", 1)[0]
        for word, form in ((b'"resourceSpans"', "otel"), (b'"processes"', "jaeger"), (b'"operationName"', "jaeger")):
            if word in head:
                return form
        return "jsonl" if _is_object(first) else "jaeger" if b'"data"' in head else _refuse(path)
    if path.suffix.lower() in (".csv", ".tsv"):
        return "csv"
    regex = shiviz.PARSERS[shiviz.guess(head)]
    if next(iter(shiviz.Layout(regex, None).event.finditer(head)), None) is not None:
        return "shiviz"
    names, _ = csv.read_header(head.split(b"\n", 1)[0], str(path))
    return "csv" if len(names) > 1 else _refuse(path)


def _is_object(line: bytes) -> bool:
    try:
        msgspec.json.decode(line, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True


def _refuse(path: Path) -> str:
    raise BadInput(
        f"{path} looks like none of {', '.join(FORMATS)}; say which it is with --format, and how with --regex or --map"
    )
