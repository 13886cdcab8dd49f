"""For formats with columns: maps columns to fields, and converts a row to a record."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from quire.model.errors import BadInput
from quire.pipeline.importing.records import KINDS, check_name
from quire.pipeline.importing.values import NotJson, parse_clock, parse_time, read_json, whole_number
from quire.trace.kinds import DELIVER, LOCAL, SEND

FIELDS: dict[str, tuple[str, ...]] = {
    "host": ("host", "process", "node", "member", "service", "servicename", "podname", "hostname"),
    "kind": ("kind", "type"),
    "id": ("spanid", "eventid", "commit", "id"),
    "after": ("after", "parentspanid", "parentid", "parents", "parent", "follows", "causes"),
    "scope": ("traceid",),
    "message": ("message", "messageid", "msg", "id"),
    "clock": ("clock", "vector", "vectorclock"),
    "event": ("event", "text", "description", "operationname", "spanname", "name"),
    "order": ("order", "pos", "position"),
    "dests": ("dests", "to", "destinations"),
    "group": ("group", "topic", "channel"),
    "lamport": ("lamport",),
    "time": ("timens", "time", "timestamp", "date", "starttimeunixnano", "starttime"),
    "object": ("object",),
    "op": ("op",),
    "txn": ("txn", "transaction"),
    "execution": ("execution", "run", "trace"),
}
"""The fields that can be mapped, and the usual column names for each, which are used by default; case and underscores do not
matter."""

NOWHERE = "-"
"""The host of events with causes if no host is named. It is not a valid host name."""

_NAMES = ("group", "object", "op", "txn")
_FOLLOWING = ("id", "after", "scope")


def parse_mapping(texts: Sequence[str]) -> dict[str, str]:
    """Parse mappings such as `host=hostname`."""
    mapping = {}
    for text in texts:
        field, equals, column = text.partition("=")
        if not equals or field not in FIELDS or not column:
            raise BadInput(f"--map takes FIELD=COLUMN, where FIELD is one of {', '.join(FIELDS)}, not {text!r}")
        mapping[field] = column
    return mapping


class Columns(msgspec.Struct, frozen=True):
    """The columns that were found, by field."""

    columns: dict[str, str]

    def record(self, row: Mapping[str, Any], where: str) -> tuple[str, str, dict[str, Any]]:
        """The row's execution and host, and the record."""

        def value(field: str) -> Any:
            return look_up(row, self.columns[field]) if field in self.columns else None

        follows = value("id") is not None
        host = value("host")
        if host in (None, "") and (not follows or "host" in self.columns):
            raise BadInput(f"{where}: the event has no {self.columns.get('host', 'host')}")
        host = NOWHERE if host in (None, "") else _name(host, "host", where)
        record: dict[str, Any] = {
            "order": whole_number(value("order"), "order", where),
            "lamport": whole_number(value("lamport"), "logical time", where),
            "time_ns": parse_time(value("time")),
            "text": None if value("event") is None else _text(value("event")),
        }
        if record["time_ns"] is None and value("time") not in (None, ""):
            record["untimed"] = str(value("time"))
        for field in _NAMES:
            if value(field) not in (None, ""):
                record[field] = _name(value(field), field, where)
        if follows:
            self._follow(record, value("id"), value("after"), value("scope"), where)
        else:
            self._causality(record, value("kind"), value("message"), value("clock"), value("dests"), where)
        execution = value("execution")
        return "" if execution is None else _text(execution), host, record

    def _follow(self, record: dict[str, Any], own: Any, after: Any, scope: Any, where: str) -> None:
        """Set the event's name and the names of the events that it follows."""
        prefix = "" if scope in (None, "") else f"{scope}:"
        record["kind"] = LOCAL
        record["key"] = _name(own, "id", where, prefix)
        if "after" in self.columns:  # Otherwise the log does not say what follows what.
            named = [] if after in (None, "") else names_in(after, where)
            record["causes"] = [_name(name, "id", where, prefix) for name in dict.fromkeys(named)]
        if record["order"] is None:
            record["order"] = record["time_ns"]

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
        name = _name(message, "message", where)
        if record["kind"] == DELIVER:
            record["causes"] = [name]
            return
        assert record["kind"] == SEND
        record["key"] = name
        if dests not in (None, ""):
            record["dests"] = [_name(name, "destination", where) for name in names_in(dests, where)]


def _name(value: Any, what: str, where: str, prefix: str = "") -> str:
    """A valid name. Raises BadInput if the value is none, like the object that holds it."""
    if isinstance(value, dict | list):
        kind = "object" if isinstance(value, dict) else "array"
        raise BadInput(f"{where}: the {what} is a JSON {kind}, not a name; a field in an object is mapped as COLUMN.FIELD")
    return check_name(prefix + _text(value), what, where)


def _text(value: Any) -> str:
    """A value as the log has it."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def look_up(row: Mapping[str, Any], column: str) -> Any:
    """The value of a column; `a.b` is the field b of column a, unless there is a column with that name."""
    if column in row or "." not in column:
        return row.get(column)
    value: Any = row
    for name in column.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def names_in(value: Any, where: str) -> list[str]:
    """Parse a list of names: a JSON array, or names separated by spaces, commas or semicolons."""
    if isinstance(value, str) and value.startswith("["):
        try:
            value = read_json(value)
        except NotJson as error:
            raise BadInput(f"{where}: the names are not a JSON array: {error}") from error
    if isinstance(value, list):
        return [_name(name, "name in the list", where) for name in value]
    if isinstance(value, dict):
        raise BadInput(f"{where}: a JSON object is not a list of names")
    return [name for name in re.split(r"[\s;,]+", _text(value)) if name]


def usual_columns(names: Sequence[str], given: Mapping[str, str]) -> Columns:
    """The columns by field: as given, or by their usual names."""
    return Columns(_found(names, given, [field for field in FIELDS if field not in _FOLLOWING]))


def with_following(names: Sequence[str], given: Mapping[str, str]) -> dict[str, str]:
    """The given mapping, plus the columns of names and causes if the events seem to have them. That cannot be decided for each
    event alone, because the first event follows none."""
    if "after" in given and "id" not in given:
        raise BadInput("--after says what events follow, so --id must say what they are called")
    columns = _found(names, given, _FOLLOWING)
    follows = "id" in given or ("id" in columns and "after" in columns and not have_kind(names))
    return columns if follows else dict(given)


def have_kind(names: Sequence[str]) -> bool:
    """Whether one of the columns says what kind of event it is, so that messages are sent and delivered."""
    return any(_plain(name) in FIELDS["kind"] for name in names)


def _found(names: Sequence[str], given: Mapping[str, str], fields: Sequence[str]) -> dict[str, str]:
    """The given mapping, plus the columns of these fields by their usual names. Raises BadInput if two could be meant."""
    plain: dict[str, list[str]] = {}
    for name in names:
        plain.setdefault(_plain(name), []).append(name)
    columns = dict(given)
    for field in fields:
        usual = next((plain[name] for name in FIELDS[field] if name in plain), [])
        free = [] if field in columns else [name for name in usual if name not in columns.values()]
        if len(free) > 1:
            raise BadInput(
                f"the columns {free[0]!r} and {free[1]!r} may both hold the {field}; say which with --map {field}={free[0]}"
            )
        if free:
            columns[field] = free[0]
    return columns


def _plain(name: str) -> str:
    return re.sub(r"[_\-\s]", "", name).lower()
