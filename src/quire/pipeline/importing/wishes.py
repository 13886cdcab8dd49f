"""How logs are to be read: what the caller says, and what the beginnings of the files show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from quire.model.errors import BadInput
from quire.pipeline.importing import csv, shiviz
from quire.pipeline.importing.chunks import CHUNK_BYTES
from quire.pipeline.importing.detect import FORMATS, detect, read_head
from quire.pipeline.importing.parsing import Options

SHARES = 16
"""Stages that go by host have at most so many tasks."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """How to read the logs; `auto` looks at their beginnings."""

    format: str = "auto"
    regex: str | None = None
    parser: str | None = None
    delimiter: str | None = None
    columns: dict[str, str] = {}
    chunk_bytes: int = CHUNK_BYTES
    shares: int = SHARES


def choose_options(files: Sequence[Path], wanted: Wanted) -> Options:
    """How all the files are to be read, from what was asked and from their beginnings."""
    if not files:
        raise BadInput("name at least one file to import")
    if wanted.format != "auto" and wanted.format not in FORMATS:
        raise BadInput(f"--format knows {', '.join(FORMATS)} and auto, not {wanted.format!r}")
    heads = {path: read_head(path) for path in files}
    forced = "shiviz" if wanted.format == "auto" and (wanted.regex or wanted.parser) else wanted.format
    forms = {path: detect(path) if forced == "auto" else forced for path in files}
    if len(set(forms.values())) > 1:
        (one, its), (other, theirs) = list({form: (path, form) for path, form in forms.items()}.values())[:2]
        raise BadInput(f"{one} is {its}, but {other} is {theirs}; import one format at a time")
    form: Any = forms[files[0]]
    if form == "shiviz":
        if wanted.parser is not None and wanted.parser not in shiviz.PARSERS:
            raise BadInput(f"--parser knows {', '.join(shiviz.PARSERS)}, not {wanted.parser!r}")
        regex = wanted.regex or shiviz.PARSERS[wanted.parser or shiviz.guess(heads[files[0]])]
        shiviz.Layout(regex, wanted.delimiter)
        return Options(format=form, regex=regex, delimiter=wanted.delimiter)
    if wanted.regex or wanted.parser or wanted.delimiter:
        raise BadInput(f"--regex, --parser and --delimiter are for shiviz, but {files[0]} is {form}")
    if form == "csv":
        headers = {path: csv.read_header(head.split(b"\n", 1)[0].rstrip(b"\r"), str(path)) for path, head in heads.items()}
        names, separator = headers[files[0]]
        for path, (columns, _) in headers.items():
            if columns != names:
                raise BadInput(f"{files[0]} and {path} do not have the same columns")
        for field, column in wanted.columns.items():
            if column not in names:
                raise BadInput(f"{files[0]} has no column {column!r} for {field}, only {', '.join(names)}")
        return Options(format=form, columns=wanted.columns, header=names, separator=separator)
    documents = form in ("otel", "jaeger") and not _is_lines(heads[files[0]])
    return Options(format=form, columns=wanted.columns, documents=documents)


def _is_lines(head: bytes) -> bool:
    first, newline, _ = head.partition(b"\n")
    try:
        msgspec.json.decode(first)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return bool(newline)
