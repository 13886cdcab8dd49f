"""The intermediate form of an import, common to all formats: one record per event, in Arrow columns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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
        ("clock_hosts", pa.list_(pa.int32())),
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
"""`execution` is a number within the chunk, and later within the run. `order` is the position at the host if the log states it;
otherwise the line counts. `key` is the name by which others refer to the event as a cause; a delivery names its message as a
cause, and has no key. `clock_hosts` are indices into a list of names that is stored with the records."""

NAMES = b"names"
"""The metadata key under which a file of records stores the host names, as a JSON array."""

KINDS = {
    "send": SEND, "sent": SEND, "multicast": SEND, "broadcast": SEND,
    "deliver": DELIVER, "delivered": DELIVER, "receive": DELIVER, "received": DELIVER, "recv": DELIVER,
    "local": LOCAL, "event": LOCAL, "internal": LOCAL, "": LOCAL,
}  # fmt: skip
"""Other systems' names for the kinds of events."""

NAME_MAX = 256
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SEPARATOR = re.compile(r"[/\\]")
_NUMBER = re.compile(r"[-+]?\d+(\.\d+)?")


def check_name(name: str, what: str, where: str) -> str:
    """Validate the name of a host, message or object. Names end up in tables, reports and spreadsheets, so names that would
    have an effect there are refused; they never become paths."""
    if len(name) > NAME_MAX:
        raise BadInput(f"{where}: the {what} is longer than {NAME_MAX} characters, too long for a name")
    if problem := _problem(name):
        raise BadInput(f"{where}: the {what} {problem}")
    return name


def is_name(name: str) -> bool:
    """Whether `check_name` would accept it."""
    return len(name) <= NAME_MAX and not _problem(name)


def check_names(names: tuple[str, ...], what: str, where: str) -> None:
    """Like `check_name`, for several names."""
    if not _are_good(names):
        for name in names:
            check_name(name, what, where)


@lru_cache(maxsize=1 << 10)
def _are_good(names: tuple[str, ...]) -> bool:
    """Whether all names are valid; cached, because vector clocks name the same few hosts in every event."""
    return all(map(is_name, names))


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


class Block(NamedTuple):
    """Records of several hosts."""

    names: list[str]
    """The names of hosts, by number."""
    host: np.ndarray
    """The number of each record's host."""
    records: pa.RecordBatch


def as_block(hosts: Sequence[str], rows: Sequence[dict[str, Any]]) -> Block:
    """Convert rows to a block; missing values become null. A row's clock, if it has one, is keyed by host name."""
    numbers: dict[str, int] = {}
    own = np.array([numbers.setdefault(host, len(numbers)) for host in hosts], np.int32)
    columns = {name: [row.get(name) for row in rows] for name in set().union(*rows)}
    if "clock_hosts" in columns:
        columns["clock_hosts"] = [
            None if names is None else [numbers.setdefault(name, len(numbers)) for name in names]
            for names in columns["clock_hosts"]
        ]
    return Block(list(numbers), own, as_batch(len(rows), columns))


def as_batch(rows: int, columns: Mapping[str, Any]) -> pa.RecordBatch:
    """A batch of records from these columns; missing columns are null."""
    arrays = [
        pa.array(columns[field.name], field.type) if field.name in columns else pa.nulls(rows, field.type) for field in RECORDS
    ]
    return pa.record_batch(arrays, schema=RECORDS)


def as_lists(lengths: np.ndarray, values: Any, nulls: Any = None) -> Any:
    """A list column with these lengths and these concatenated values."""
    offsets: Any = pa.array(np.concatenate(([0], np.cumsum(lengths))).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, cast(Any, pa.array(values)), mask=nulls)


def join_blocks(blocks: Sequence[Block]) -> Block:
    """Concatenate blocks."""
    if len(blocks) == 1:
        return blocks[0]
    numbers: dict[str, int] = {}
    hosts, batches = [np.empty(0, np.int32)], []
    for block in blocks:
        spread = np.array([numbers.setdefault(name, len(numbers)) for name in block.names], np.int32)
        hosts.append(spread[block.host])
        batches.append(rename_hosts(block.records, spread))
    records = pa.Table.from_batches(batches, RECORDS).combine_chunks().to_batches()
    return Block(list(numbers), np.concatenate(hosts), records[0] if records else as_batch(0, {}))


def replace_rows(block: Block, rows: Sequence[int], other: Block) -> Block:
    """The block with some of its records replaced by others."""
    both = join_blocks([block, other])
    order = np.arange(len(block.host))
    order[rows] = len(block.host) + np.arange(len(rows))
    return Block(both.names, both.host[order], both.records.take(order))


def rename_hosts(records: pa.RecordBatch, spread: np.ndarray) -> pa.RecordBatch:
    """The records with the hosts in their clocks renumbered."""
    clocks = records["clock_hosts"]
    if clocks.null_count == len(clocks):
        return records
    lengths = np.asarray(pc.list_value_length(clocks).fill_null(0))
    renamed = as_lists(lengths, spread[np.asarray(pc.list_flatten(clocks))], clocks.is_null() if clocks.null_count else None)
    return records.set_column(records.schema.get_field_index("clock_hosts"), "clock_hosts", renamed)
