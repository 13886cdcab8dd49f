"""JSON lines: one object an event."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from quire.model.errors import BadInput
from quire.pipeline.importing.mapping import Columns, usual_columns

Parsed = tuple[int, str, str, dict[str, Any]]
"""Line, execution, host and record."""


def parse(data: bytes, path: str, first_line: int, given: Mapping[str, str]) -> Iterator[Parsed]:
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
                raise BadInput(f"{where} does not name a host; say where it does with --map host=COLUMN")
        yield (number, *known[names].record(row, where))
