"""Shows how the first events of the logs would be interpreted, before the import is started."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from quire.pipeline.importing.choosing import choose
from quire.pipeline.importing.chunks import Chunk
from quire.pipeline.importing.formats.contract import Found, Piece
from quire.pipeline.importing.inputs import plain_files, unpacked_files
from quire.pipeline.importing.mapping import NOWHERE
from quire.pipeline.importing.request import ImportRequest
from quire.trace.kinds import KINDS

EVENTS = 10
_BYTES = 1 << 16
_BYTES_MAX = 64 << 20
_UNPACKED = 4 << 20


class Understood(msgspec.Struct, frozen=True):
    """A record, formatted for display."""

    line: int
    host: str
    kind: str
    name: str
    """The name of the event or the message."""
    after: str
    """The events that it follows, or its clock."""
    time_ns: int | None
    text: str


class Preview(msgspec.Struct, frozen=True):
    format: str
    file: str
    events: tuple[Understood, ...]
    unused: tuple[str, ...]
    """Columns that are not used."""


def preview(files: Sequence[Path], request: ImportRequest) -> Preview:
    """The first events of the first file. Writes nothing, except a copy of the beginning of a file that must be converted.
    Raises BadInput as an import would."""
    with tempfile.TemporaryDirectory(prefix="quire-") as directory:
        inputs = plain_files(files, request.skip_lines)
        inputs = inputs or unpacked_files(files, Path(directory) / "plain", request.skip_lines, _UNPACKED)
        choice = choose(inputs, request)
        first = inputs[0]
        size = first.path.stat().st_size
        share, found = _BYTES, Found()
        while True:
            end = size if choice.format.in_one_piece(choice.settings) else min(size, first.begin + share)
            chunk = Chunk(0, str(first.path.absolute()), first.begin, end, first.begin)
            piece = Piece(chunk, first.name, 1 + request.skip_lines, False, None)
            found = Found()
            choice.format.read(piece, choice.settings, found)
            if end == size or share >= _BYTES_MAX or len(found.block().host) >= EVENTS:
                break
            share *= 8
    names, host, records = found.block()
    shown = np.argsort(np.asarray(records["line"]), kind="stable")[:EVENTS]
    rows = records.take(shown).to_pylist()
    events = tuple(_understood(names[own], row, names) for own, row in zip(host[shown].tolist(), rows, strict=True))
    return Preview(choice.name, first.name, events, tuple(sorted(found.unused)))


def _understood(host: str, row: dict[str, object], names: Sequence[str]) -> Understood:
    causes, clock_hosts, clock_counts = (row.get(name) or [] for name in ("causes", "clock_hosts", "clock_counts"))
    assert isinstance(causes, list)
    assert isinstance(clock_hosts, list)
    assert isinstance(clock_counts, list)
    after = ", ".join(causes) or ", ".join(
        f"{names[one]} {count}" for one, count in zip(clock_hosts, clock_counts, strict=True)
    )
    time_ns, line, kind = row.get("time_ns"), row["line"], row["kind"]
    assert isinstance(line, int)
    assert isinstance(kind, int)
    return Understood(
        line, "" if host == NOWHERE else host, KINDS[kind], str(row.get("key") or ""), after,
        time_ns if isinstance(time_ns, int) else None, str(row.get("text") or ""),
    )  # fmt: skip
