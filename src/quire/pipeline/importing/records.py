"""What every format is read into: one record an event, in columns, until the trace is written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa

from quire.model.errors import BadInput
from quire.trace.kinds import DELIVER, LOCAL, SEND


def schema_of(columns: Sequence[tuple[str, Any]]) -> pa.Schema:
    return pa.schema([pa.field(name, kind) for name, kind in columns])


RECORDS: pa.Schema = schema_of(
    [
        ("execution", pa.int32()),
        ("file", pa.int32()),
        ("line", pa.int64()),
        ("kind", pa.int8()),
        ("order", pa.int64()),
        ("key", pa.string()),
        ("causes", pa.list_(pa.string())),
        ("clock_hosts", pa.list_(pa.string())),
        ("clock_counts", pa.list_(pa.int64())),
        ("dests", pa.list_(pa.string())),
        ("group", pa.string()),
        ("lamport", pa.int64()),
        ("time_ns", pa.int64()),
        ("object", pa.string()),
        ("op", pa.string()),
        ("txn", pa.string()),
        ("text", pa.string()),
    ]
)
"""`execution` is a number among those of the chunk, and later among those of the run. `order` is the position at the host where
the log says it; the line is, where it does not. `key` is what others may name as a cause; a delivery names the message, and has
no key."""

KINDS = {
    "send": SEND, "sent": SEND, "multicast": SEND, "broadcast": SEND,
    "deliver": DELIVER, "delivered": DELIVER, "receive": DELIVER, "received": DELIVER, "recv": DELIVER,
    "local": LOCAL, "event": LOCAL, "internal": LOCAL, "": LOCAL,
}  # fmt: skip
"""What other systems call the kinds of events."""

NAME_MAX = 256
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SEPARATOR = re.compile(r"[/\\]")
_NUMBER = re.compile(r"[-+]?\d+(\.\d+)?")


def check_name(name: str, what: str, where: str) -> str:
    """A host, message or object by its name. Names end up in tables, reports and other people's spreadsheets, so what would
    do something there is refused; they never become paths."""
    if len(name) > NAME_MAX:
        raise BadInput(f"{where}: the {what} is longer than {NAME_MAX} characters, too long for a name")
    if problem := _problem(name):
        raise BadInput(f"{where}: the {what} {problem}")
    return name


def check_names(names: tuple[str, ...], what: str, where: str) -> None:
    """The same for several."""
    if not _are_good(names):
        for name in names:
            check_name(name, what, where)


@lru_cache(maxsize=1 << 10)
def _are_good(names: tuple[str, ...]) -> bool:
    """Vector clocks name the same few hosts in every event, so the answer is kept."""
    return all(len(name) <= NAME_MAX and not _problem(name) for name in names)


@lru_cache(maxsize=1 << 16)
def _problem(name: str) -> str:
    """What is wrong with a name."""
    if not name:
        return "is empty"
    if _CONTROL.search(name):
        return f"{name!r} holds control characters"
    if ".." in _SEPARATOR.split(name):
        return f"{name!r} contains `..`, which would leave the directory of the run"
    if name[0] in "=+-@" and not _NUMBER.fullmatch(name):
        return f"{name!r} begins like a spreadsheet formula"
    return ""


def as_batch(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    """The records; what a row lacks is null."""
    present = set().union(*rows)
    columns = [
        pa.array([row.get(field.name) for row in rows], field.type)
        if field.name in present
        else pa.nulls(len(rows), field.type)
        for field in RECORDS
    ]
    return pa.record_batch(columns, schema=RECORDS)
