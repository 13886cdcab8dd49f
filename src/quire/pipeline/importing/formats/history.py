"""Database histories of transactions' reads and writes, as recorded for Jepsen and Elle, in EDN or as JSON lines.

There is one entry per operation: `{:type :ok, :process 3, :value [[:r x [1 2]] [:append x 3]]}`, or the same in JSON. The type
is `ok` (committed), `fail` (aborted), `info` (outcome unknown) or `invoke` (began, which is ignored). A read returns the value
of a register, or the whole list to which others append. Values must be distinct, so that each identifies its writer.

A process is a host. Each read, each write and each end of a transaction is an event. The order of versions that the history
reveals (`versions.py`) becomes deliveries at additional hosts, `versions`, `versions 2` and so on.

Source: Kingsbury and Alvaro, Elle: inferring isolation anomalies from experimental observations, 2020.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import Any

import msgspec

from quire.model.errors import BadInput
from quire.pipeline.importing.chunks import decode_text, read_chunk
from quire.pipeline.importing.edn import read_edn
from quire.pipeline.importing.formats.contract import Event, Found, Likeness, LineFormat, Log, Piece, first_line
from quire.pipeline.importing.records import check_name
from quire.pipeline.importing.request import ImportRequest
from quire.pipeline.importing.values import NotJson, read_json
from quire.pipeline.importing.versions import WRITES, Operation, find_writers, order_of_versions, seen_of, version_of
from quire.trace.kinds import DELIVER, SEND, VIEW

VERSIONS = "versions"
_ENDS = {"ok": "commit", "fail": "abort"}
_TYPES = ("ok", "fail", "info", "invoke")


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
        writers = find_writers(operations, piece.name)
        aborted = {version for version, writer in writers.items() if writer.type == "fail"}
        unsure = {version for version, writer in writers.items() if writer.type == "info"}
        observed = {writers[version].number for version in seen_of(operations, unsure)}
        for operation in operations:
            # If its outcome is unknown but somebody read its writes, it committed.
            end = _ENDS.get(operation.type, "commit" if operation.number in observed else "")
            yield from _records(operation, end, aborted, piece.name)
        for host, version, number, at in order_of_versions(operations, writers, piece.name):
            said = {"kind": DELIVER, "order": at, "causes": [version], "object": writers[version].keys[version], "op": "w"}
            txn = {"txn": writers[version].name, "text": f"{version} is installed"}
            yield number, "", f"{VERSIONS} {host + 1}" if host else VERSIONS, {**said, **txn}


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
    """The operation of an entry; None for an invocation, or for an entry about something else."""
    where = f"{name} operation {number}"
    if not isinstance(entry, dict) or entry.get("type") not in _TYPES:
        raise BadInput(f"{where} has no type that is one of {', '.join(_TYPES)}")
    if entry["type"] == "invoke" or not _looks_like_steps(entry.get("value")):
        return None
    steps = []
    for did, key, value in entry["value"]:
        if did != "r" and did not in WRITES:
            raise BadInput(f"{where}: {str(did)[:20]!r} is none of r, w and append")
        steps.append((str(did), check_name(str(key), "key", where), value))
    process = check_name(str(entry.get("process", "0")), "process", where)
    return Operation(number, process, entry["type"], tuple(steps))


def _records(operation: Operation, end: str, aborted: Set[str], name: str) -> Iterator[Event]:
    where, txn = f"{name} operation {operation.number}", operation.name

    def record(kind: int, text: str, **more: Any) -> Event:
        said = {"kind": kind, "order": operation.number, "txn": txn, "text": f"{txn} {text}", **more}
        return operation.number, "", operation.process, said

    own: dict[str, list[Any]] = {}
    for number, (did, key, value) in enumerate(operation.steps):
        if did in WRITES:
            own.setdefault(key, []).append(value)
            version = check_name(version_of(key, value), "version", where)
            yield record(SEND, f"writes {version}", key=version, object=key, op="w")
            continue
        asked = f"{txn} reads {key} no. {number}"
        yield record(SEND, f"asks for {key}", key=asked, object=key, op="r")
        if operation.type != "ok":
            continue
        if aborted and isinstance(value, list):
            for each in value[:-1]:
                if (version := version_of(key, each)) in aborted:
                    yield record(VIEW, f"read {version}", causes=[version], object=key, op="r")
        last = (value[-1] if value else None) if isinstance(value, list) else value
        # A transaction's read of its own write says nothing about others; in a list, the value before its own appends does.
        if isinstance(value, list) and own.get(key) and value[-len(own[key]) :] == own[key]:
            last = value[-len(own[key]) - 1] if len(value) > len(own[key]) else None
        cause = asked if last is None else check_name(version_of(key, last), "version", where)
        yield record(VIEW, f"read {key} as {value}", causes=[cause], object=key, op="r")
    if end:
        yield record(SEND, "commits" if end == "commit" else "aborts", key=f"{txn} {end}", op=end)


FORMAT = HistoryFormat()
