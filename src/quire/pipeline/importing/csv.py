"""CSV with a header: one line an event, as RFC 4180 has it, line breaks in quotes included.

A chunk begins inside quotes when an odd number of quotes stands before it, so that chunks can be told apart by counting.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping

import numpy as np

from quire.model.errors import BadInput
from quire.pipeline.importing.chunks import decode_text
from quire.pipeline.importing.jsonl import Parsed
from quire.pipeline.importing.mapping import usual_columns

SEPARATORS = ",\t;"
_QUOTE, _NEWLINE = ord('"'), ord("\n")


def read_header(line: bytes, path: str) -> tuple[list[str], str]:
    """The names of the columns, and what separates them."""
    text = decode_text(line, path, 1).lstrip("\ufeff")
    separator = max(SEPARATORS, key=text.count)
    try:
        names = next(csv.reader([text], delimiter=separator, strict=True), [])
    except csv.Error as error:
        raise BadInput(f"{path} line 1 is not a header of CSV: {error}") from error
    names = [name.strip() for name in names]
    if len(set(names)) < len(names):
        raise BadInput(f"{path} line 1 names a column twice: {', '.join(names)}")
    return names, separator


def own_records(data: bytes, own: int, inside: bool) -> tuple[int, int]:
    """Where the first record that begins in the chunk begins, and where the first that begins after it does."""
    if not inside and b'"' not in data[: own + 1]:
        return 0, own
    letters = np.frombuffer(data, np.uint8)
    quoted = (np.cumsum(letters == _QUOTE) + inside) % 2 == 1
    starts = np.concatenate(([] if inside else [0], np.flatnonzero((letters == _NEWLINE) & ~quoted) + 1)).astype(np.int64)
    later = starts[starts >= own]
    first = int(starts[0]) if len(starts) else len(data)
    return min(first, len(data)), int(later[0]) if len(later) else len(data)


def parse(
    data: bytes, path: str, first_line: int, names: list[str], separator: str, given: Mapping[str, str]
) -> Iterator[Parsed]:  # fmt: skip
    """The events of whole records of a file; the header is none of them."""
    columns = usual_columns(names, given)
    text = decode_text(data, path, first_line)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    line = first_line
    try:
        for row in reader:
            at, line = line, first_line + reader.line_num
            if not row or (at == 1):
                continue
            where = f"{path} line {at}"
            if len(row) != len(names):
                raise BadInput(f"{where} has {len(row)} columns, but the header has {len(names)}")
            yield (at, *columns.record(dict(zip(names, row, strict=True)), where))
    except csv.Error as error:
        raise BadInput(f"{path} line {line} is not CSV: {error}") from error
