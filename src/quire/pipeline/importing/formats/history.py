"""Histories of databases: what transactions read and wrote, as Jepsen and Elle record it, in EDN or as JSON lines.

One entry an operation: `{:type :ok, :process 3, :value [[:r x [1 2]] [:append x 3]]}`, or the same in JSON. The type is `ok`
(it committed), `fail` (it did not), `info` (nobody knows) or `invoke` (it began, which says nothing more). A read tells the
value of a register, or the whole of a list to which others append. Values must differ, so that each tells who wrote it.

A process is a host. Each read and each write is an event, and so is the end of a transaction. Where lists were read, they tell
the order of versions: an additional host, `versions`, takes the writes in that order. Registers do not tell it.

Source: Kingsbury and Alvaro, Elle: inferring isolation anomalies from experimental observations, 2020.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quire.model.errors import BadInput
from quire.pipeline.importing.chunks import decode_text, read_chunk
from quire.pipeline.importing.edn import read_edn
from quire.pipeline.importing.formats.contract import Event, Found, Likeness, LineFormat, Log, Piece, first_line
from quire.pipeline.importing.records import check_name
from quire.pipeline.importing.request import ImportRequest
from quire.pipeline.importing.values import NotJson, read_json
from quire.trace.schema import DELIVER, SEND, VIEW

VERSIONS = "versions"
_ENDS = {"ok": "commit", "fail": "abort"}
_WRITES = ("w", "append")
_TYPES = ("ok", "fail", "info", "invoke")


class Operation(msgspec.Struct, frozen=True):
    """A transaction that has ended, or of which nobody knows: its reads and writes, in order."""

    number: int
    process: str
    type: str
    steps: tuple[tuple[str, str, Any], ...]

    @property
    def name(self) -> str:
        return f"T{self.number}"


class HistorySettings(msgspec.Struct, frozen=True):
    edn: bool


class HistoryFormat(LineFormat[HistorySettings]):
    settings = HistorySettings

    def recognise(self, log: Log) -> Likeness:
        head = log.head.lstrip()
        if head.startswith((b"{:", b"[{:", b"#jepsen")) and b":type" in head:
            return Likeness.CERTAIN
        try:
            first = read_json(first_line(head), dict[str, Any])
        except NotJson:
            return Likeness.NONE
        return Likeness.CERTAIN if first.get("type") in _TYPES and _looks_like_steps(first.get("value")) else Likeness.NONE

    def settle(self, logs: Sequence[Log], request: ImportRequest) -> HistorySettings:  # noqa: ARG002
        return HistorySettings(edn=b":type" in logs[0].head)

    def unit(self, settings: HistorySettings) -> str:  # noqa: ARG002
        return "operation"

    def in_one_piece(self, settings: HistorySettings) -> bool:  # noqa: ARG002
        return True

    def events(self, piece: Piece, settings: HistorySettings, found: Found) -> Iterator[Event]:  # noqa: ARG002
        data, _, _ = read_chunk(piece.chunk)
        entries = _edn(data, piece) if settings.edn else _json(data, piece)
        operations = [operation for entry in entries if (operation := _operation(*entry, piece.name)) is not None]
        seen = Counter(value for operation in operations for value in _seen(operation))
        for operation in operations:
            # Nobody knows how it ended, but somebody read what it wrote.
            observed = operation.type == "info" and any(_version(*step[1:]) in seen for step in _writes(operation))
            yield from _records(operation, _ENDS.get(operation.type, "commit" if observed else ""), piece.name)
        yield from _versions(operations, piece.name)


def _looks_like_steps(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(step, list) and len(step) == 3 for step in value) and bool(value)


def _edn(data: bytes, piece: Piece) -> Iterator[tuple[int, Any]]:
    number = 0
    try:
        for value in read_edn(decode_text(data, piece.name, 1)):
            for entry in value if isinstance(value, list) else [value]:
                number += 1
                yield number, entry
    except NotJson as error:
        raise BadInput(f"{piece.name} operation {number + 1}: {error}") from error


def _json(data: bytes, piece: Piece) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip():
            try:
                yield number, read_json(line)
            except NotJson as error:
                raise BadInput(f"{piece.name} operation {number} is not JSON: {error}") from error


def _operation(number: int, entry: Any, name: str) -> Operation | None:
    """The operation of an entry; None for one that only began, or is about something else."""
    where = f"{name} operation {number}"
    if not isinstance(entry, dict) or entry.get("type") not in _TYPES:
        raise BadInput(f"{where} has no type that is one of {', '.join(_TYPES)}")
    if entry["type"] == "invoke" or not _looks_like_steps(entry.get("value")):
        return None
    steps = []
    for did, key, value in entry["value"]:
        if did != "r" and did not in _WRITES:
            raise BadInput(f"{where}: {str(did)[:20]!r} is none of r, w and append")
        steps.append((str(did), check_name(str(key), "key", where), value))
    process = check_name(str(entry.get("process", "0")), "process", where)
    return Operation(number, process, entry["type"], tuple(steps))


def _writes(operation: Operation) -> list[tuple[str, str, Any]]:
    return [step for step in operation.steps if step[0] in _WRITES]


def _version(key: str, value: Any) -> str:
    return f"{key}={value}"


def _seen(operation: Operation) -> Iterator[str]:
    """The versions that somebody saw."""
    if operation.type == "ok":
        for did, key, value in operation.steps:
            if did == "r" and value not in (None, []):
                yield from (_version(key, each) for each in (value if isinstance(value, list) else [value]))


def _records(operation: Operation, end: str, name: str) -> Iterator[Event]:
    where, txn = f"{name} operation {operation.number}", operation.name

    def record(kind: int, text: str, **more: Any) -> Event:
        said = {"kind": kind, "order": operation.number, "txn": txn, "text": f"{txn} {text}", **more}
        return operation.number, "", operation.process, said

    own: dict[str, list[Any]] = {}
    for number, (did, key, value) in enumerate(operation.steps):
        if did in _WRITES:
            own.setdefault(key, []).append(value)
            version = check_name(_version(key, value), "version", where)
            yield record(SEND, f"writes {version}", key=version, object=key, op="w")
            continue
        asked = f"{txn} reads {key} no. {number}"
        yield record(SEND, f"asks for {key}", key=asked, object=key, op="r")
        if operation.type != "ok":
            continue
        last = (value[-1] if value else None) if isinstance(value, list) else value
        # What a transaction reads of its own writes tells nothing of others; a list tells what was there before them.
        if isinstance(value, list) and own.get(key) and value[-len(own[key]) :] == own[key]:
            last = value[-len(own[key]) - 1] if len(value) > len(own[key]) else None
        elif own.get(key) and last == own[key][-1]:
            last = own[key][-1]
        cause = asked if last is None else check_name(_version(key, last), "version", where)
        yield record(VIEW, f"read {key} as {value}", causes=[cause], object=key, op="r")
    if end:
        yield record(SEND, "commits" if end == "commit" else "aborts", key=f"{txn} {end}", op=end)


def _versions(operations: Sequence[Operation], name: str) -> Iterator[Event]:
    """What the lists that were read tell of the order of versions: of each key the longest, which all others must begin."""
    longest: dict[str, tuple[list[Any], int]] = {}
    lists = [
        (key, value, operation.number)
        for operation in operations
        if operation.type == "ok"
        for did, key, value in operation.steps
        if did == "r" and isinstance(value, list)
    ]
    for key, value, number in lists:
        if len(value) > len(longest.get(key, ([], 0))[0]):
            longest[key] = (value, number)
    for key, value, number in lists:
        whole, other = longest.get(key, (value, number))
        if whole[: len(value)] != value:
            raise BadInput(
                f"{name} operations {number} and {other} read lists of {key} of which neither begins the other: "
                "no order of its versions explains both"
            )
    writers = {_version(*step[1:]): operation.name for operation in operations for step in _writes(operation)}
    at = 0
    for key, (value, number) in longest.items():
        for each in value:
            at += 1
            version = _version(key, each)
            said = {"kind": DELIVER, "order": at, "causes": [version], "object": key, "op": "w", "text": f"{version} is installed"}
            if version in writers:
                yield number, "", VERSIONS, {**said, "txn": writers[version]}


FORMAT = HistoryFormat()
