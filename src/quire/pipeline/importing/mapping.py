"""Which column holds what, for formats that have columns; and a row of them as a record."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from quire.model.errors import BadInput
from quire.pipeline.importing.records import KINDS, check_name
from quire.pipeline.importing.values import parse_clock, parse_time, whole_number
from quire.trace.schema import DELIVER, LOCAL, SEND

FIELDS: dict[str, tuple[str, ...]] = {
    "host": ("host", "process", "node", "member", "service"),
    "kind": ("kind", "type"),
    "message": ("message", "message_id", "msg", "id"),
    "clock": ("clock", "vector", "vector_clock"),
    "event": ("event", "text", "description"),
    "order": ("order", "pos", "position"),
    "dests": ("dests", "to", "destinations"),
    "group": ("group", "topic", "channel"),
    "lamport": ("lamport",),
    "time": ("time_ns", "time", "timestamp", "date"),
    "object": ("object",),
    "op": ("op",),
    "txn": ("txn", "transaction"),
    "execution": ("execution", "run", "trace"),
}
"""What can be mapped, and the names of columns that are taken for it where nothing else is said."""

_NAMES = ("group", "object", "op", "txn")


def parse_mapping(texts: Sequence[str]) -> dict[str, str]:
    """`host=hostname` and so on."""
    mapping = {}
    for text in texts:
        field, equals, column = text.partition("=")
        if not equals or field not in FIELDS or not column:
            raise BadInput(f"--map takes FIELD=COLUMN, where FIELD is one of {', '.join(FIELDS)}, not {text!r}")
        mapping[field] = column
    return mapping


class Columns(msgspec.Struct, frozen=True):
    """The columns that were found."""

    columns: dict[str, str]

    def record(self, row: Mapping[str, Any], where: str) -> tuple[str, str, dict[str, Any]]:
        """Its execution, its host and the record."""

        def value(field: str) -> Any:
            return row.get(self.columns[field]) if field in self.columns else None

        host = value("host")
        if host is None or host == "":
            raise BadInput(f"{where}: the event has no {self.columns['host']}")
        host = check_name(str(host), "host", where)
        record: dict[str, Any] = {
            "order": whole_number(value("order"), "order", where),
            "lamport": whole_number(value("lamport"), "logical time", where),
            "time_ns": parse_time(value("time")),
            "text": None if value("event") is None else str(value("event")),
        }
        for field in _NAMES:
            if value(field) not in (None, ""):
                record[field] = check_name(str(value(field)), field, where)
        self._causality(record, value("kind"), value("message"), value("clock"), value("dests"), where)
        execution = value("execution")
        return "" if execution is None else str(execution), host, record

    def _causality(self, record: dict[str, Any], kind: Any, message: Any, clock: Any, dests: Any, where: str) -> None:
        word = "" if kind is None else str(kind).lower()
        if word not in KINDS:
            raise BadInput(f"{where}: the kind {str(kind)[:60]!r} is none of {', '.join(sorted(filter(None, KINDS)))}")
        record["kind"] = KINDS[word]
        if clock not in (None, ""):
            entries = parse_clock(clock if isinstance(clock, str) else msgspec.json.encode(clock), where)
            record["clock_hosts"], record["clock_counts"] = list(entries), list(entries.values())
            record["kind"] = LOCAL
            return
        if record["kind"] == LOCAL:
            return
        if message in (None, ""):
            raise BadInput(f"{where}: a send or a delivery must name its message; map the column with --map message=COLUMN")
        name = check_name(str(message), "message", where)
        if record["kind"] == DELIVER:
            record["causes"] = [name]
            return
        assert record["kind"] == SEND
        record["key"] = name
        if dests not in (None, ""):
            record["dests"] = [check_name(name, "destination", where) for name in _names(dests, where)]


def _names(value: Any, where: str) -> list[str]:
    """A list of names: a JSON array, or words between spaces, commas or semicolons."""
    if isinstance(value, str) and value.startswith("["):
        try:
            value = msgspec.json.decode(value)
        except msgspec.DecodeError as error:
            raise BadInput(f"{where}: the destinations are not a JSON array: {error}") from error
    if isinstance(value, list):
        return [str(name) for name in value]
    return [name for name in re.split(r"[\s;,]+", str(value)) if name]


def usual_columns(names: Sequence[str], given: Mapping[str, str]) -> Columns:
    """The columns by what they hold: as was said, or by their usual names."""
    columns = dict(given)
    for field, usual in FIELDS.items():
        found = next((name for name in usual if name in names), None)
        if field not in columns and found is not None and found not in columns.values():
            columns[field] = found
    return Columns(columns)
