"""What every format is read into: one record an event, in columns, until the trace is written."""

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
"""`execution` is a number among those of the chunk, and later among those of the run. `order` is the position at the host where
the log says it; the line is, where it does not. `key` is what others may name as a cause; a delivery names the message, and has
no key. `clock_hosts` are numbers of names, which stand beside the records."""

NAMES = b"names"
"""Where a file of records has the names of hosts, as a JSON array."""

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


def is_name(name: str) -> bool:
    """Whether `check_name` would take it."""
    return len(name) <= NAME_MAX and not _problem(name)


def check_names(names: tuple[str, ...], what: str, where: str) -> None:
    """The same for several."""
    if not _are_good(names):
        for name in names:
            check_name(name, what, where)


@lru_cache(maxsize=1 << 10)
def _are_good(names: tuple[str, ...]) -> bool:
    """Vector clocks name the same few hosts in every event, so the answer is kept."""
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
    """Of hosts, by their numbers."""
    host: np.ndarray
    """The number of each record's."""
    records: pa.RecordBatch


def as_block(hosts: Sequence[str], rows: Sequence[dict[str, Any]]) -> Block:
    """The records of these hosts; what a row lacks is null. Where a row has a clock, it names the hosts."""
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
    """Columns of records; those that are not there are null."""
    arrays = [
        pa.array(columns[field.name], field.type) if field.name in columns else pa.nulls(rows, field.type) for field in RECORDS
    ]
    return pa.record_batch(arrays, schema=RECORDS)


def as_lists(lengths: np.ndarray, values: Any, nulls: Any = None) -> Any:
    """A column of lists with these lengths, and these values one after the other."""
    offsets: Any = pa.array(np.concatenate(([0], np.cumsum(lengths))).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, cast(Any, pa.array(values)), mask=nulls)


def join_blocks(blocks: Sequence[Block]) -> Block:
    """The records of all of them, one after the other."""
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
    """The records with other numbers for the hosts in their clocks."""
    clocks = records["clock_hosts"]
    if clocks.null_count == len(clocks):
        return records
    lengths = np.asarray(pc.list_value_length(clocks).fill_null(0))
    renamed = as_lists(lengths, spread[np.asarray(pc.list_flatten(clocks))], clocks.is_null() if clocks.null_count else None)
    return records.set_column(records.schema.get_field_index("clock_hosts"), "clock_hosts", renamed)
