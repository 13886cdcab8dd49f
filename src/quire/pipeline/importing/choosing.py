"""Chooses the format of the logs and how to read them, from the caller's request and the beginnings of the files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from quire.model.errors import BadInput
from quire.pipeline.importing.chunks import decode_text
from quire.pipeline.importing.formats import registry
from quire.pipeline.importing.formats.contract import Format, Likeness, Log, compile_where, first_line, starts_like_json
from quire.pipeline.importing.formats.registry import FORMATS, Entry
from quire.pipeline.importing.inputs import Input
from quire.pipeline.importing.request import AUTO, OPTIONS, ImportRequest
from quire.pipeline.importing.values import NotJson, read_json

_HEAD_BYTES = 1 << 16


class Choice(NamedTuple):
    """A format, with its settings for this import."""

    name: str
    format: Format[Any]
    settings: msgspec.Struct


def choose(files: Sequence[Input], request: ImportRequest) -> Choice:
    """Decide how to read all the files. Raises BadInput, with a message of one sentence, if that is not possible."""
    logs = [Log(file, _read_head(file)) for file in files]
    entry = _named(request) or _recognise(logs, request.where)
    _check_options(entry, files[0].name, request)
    format_ = entry.load()
    return Choice(entry.name, format_, format_.settle(logs, request))


def _read_head(file: Input) -> bytes:
    try:
        with file.path.open("rb") as opened:
            opened.seek(file.begin)
            head = opened.read(_HEAD_BYTES)
    except OSError as error:
        raise BadInput(f"cannot read {file.name}: {error.strerror}") from error
    if not head.strip():
        raise BadInput(f"{file.name} is empty")
    return head


def _named(request: ImportRequest) -> Entry | None:
    """The requested format: by its name, or by an option that only it has."""
    if request.format != AUTO:
        return registry.find(request.format)
    return next((entry for entry in FORMATS if any(getattr(request, option) for option in entry.implied_by)), None)


def _recognise(logs: Sequence[Log], where: str | None) -> Entry:
    """The common format of all the logs."""
    first = _looks_like(logs[0], where)
    for log in logs[1:]:
        other = _looks_like(log, where)
        if other != first:
            raise BadInput(
                f"{logs[0].file.name} is {first.name}, but {log.file.name} is {other.name}; import one format at a time"
            )
    return first


def _looks_like(log: Log, where: str | None) -> Entry:
    # A log may begin with lines that are no events, like comments; a header need not match either.
    for seen in (log, _without_others(log, where)):
        likeness = {entry: entry.load().recognise(seen) for entry in FORMATS}
        most = max(likeness.values())
        if most != Likeness.NONE:
            return next(entry for entry, found in likeness.items() if found == most)
    decode_text(first_line(log.head), log.file.name, 1)
    if starts_like_json(log):
        _check_json(log)
    raise BadInput(
        f"{log.file.name} is in none of the formats {registry.names()}; choose one with --format, and --regex or --map"
    )


def _check_json(log: Log) -> None:
    """Say what is wrong with the first line of a log that looks like JSON lines."""
    try:
        read_json(first_line(log.head))
    except NotJson as error:
        raise BadInput(f"{log.file.name} line 1 is not a JSON object: {error}") from error


def _without_others(log: Log, where: str | None) -> Log:
    """The log from its first line on that is an event."""
    wanted, head = compile_where(where), log.head
    while wanted is not None and head and not wanted.search(first_line(head)):
        _, _, head = head.partition(b"\n")
    return Log(log.file, head or log.head)


def _check_options(entry: Entry, name: str, request: ImportRequest) -> None:
    """Refuse options that this format does not take."""
    for option, flag in OPTIONS.items():
        if getattr(request, option) and option not in entry.options:
            takers = " and ".join(registry.takers(option))
            raise BadInput(f"{flag} is for {takers}, but {name} is {entry.name}")
