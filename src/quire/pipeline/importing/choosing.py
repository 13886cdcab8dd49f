"""Which format logs have, and how they are to be read: what the caller says, and what the beginnings of the files show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from quire.model.errors import BadInput
from quire.pipeline.importing.chunks import decode_text
from quire.pipeline.importing.formats import registry
from quire.pipeline.importing.formats.contract import Format, Likeness, Log, first_line
from quire.pipeline.importing.formats.registry import FORMATS, Entry
from quire.pipeline.importing.request import AUTO, OPTIONS, ImportRequest

_HEAD_BYTES = 1 << 16


class Choice(NamedTuple):
    """A format, and how it is read here."""

    name: str
    format: Format[Any]
    settings: msgspec.Struct


def choose(files: Sequence[Path], request: ImportRequest) -> Choice:
    """How all the files are to be read. Raises BadInput, in one sentence, where that cannot be decided."""
    if not files:
        raise BadInput("name at least one file to import")
    logs = [Log(path, _read_head(path)) for path in files]
    entry = _named(request) or _recognise(logs)
    _check_options(entry, files[0], request)
    format_ = entry.load()
    return Choice(entry.name, format_, format_.settle(logs, request))


def _read_head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
    if not head.strip():
        raise BadInput(f"{path} is empty")
    return head


def _named(request: ImportRequest) -> Entry | None:
    """The format that was asked for, by its name or by an option that only it has."""
    if request.format != AUTO:
        return registry.find(request.format)
    return next((entry for entry in FORMATS if any(getattr(request, option) for option in entry.implied_by)), None)


def _recognise(logs: Sequence[Log]) -> Entry:
    """The format that all the logs have."""
    first = _looks_like(logs[0])
    for log in logs[1:]:
        other = _looks_like(log)
        if other != first:
            raise BadInput(f"{logs[0].path} is {first.name}, but {log.path} is {other.name}; import one format at a time")
    return first


def _looks_like(log: Log) -> Entry:
    likeness = {entry: entry.load().recognise(log) for entry in FORMATS}
    most = max(likeness.values())
    if most == Likeness.NONE:
        decode_text(first_line(log.head), str(log.path), 1)
        raise BadInput(
            f"{log.path} is in none of the formats {registry.names()}; choose one with --format, and --regex or --map"
        )
    return next(entry for entry, found in likeness.items() if found == most)


def _check_options(entry: Entry, path: Path, request: ImportRequest) -> None:
    """Refuse what this format has no use for."""
    for option, flag in OPTIONS.items():
        if getattr(request, option) and option not in entry.options:
            takers = " and ".join(registry.takers(option))
            raise BadInput(f"{flag} is for {takers}, but {path} is {entry.name}")
