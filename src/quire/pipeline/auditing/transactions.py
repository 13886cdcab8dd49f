"""Reconstructs what transactions did from a trace: which ones committed, what each wrote, and what each read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quire.model.errors import BadInput
from quire.pipeline.auditing.total import identify
from quire.pipeline.labels import Labelled, texts_of
from quire.trace.kinds import DELIVER, SEND, VIEW

COLUMNS = ("object", "op", "txn")
TIMESTAMP, DELIVERED = "timestamp", "delivered"

_TIMESTAMP = r"\A(?P<one>[0-9]+)\.(?P<other>[0-9]+)\z"


class TransactionHistory(msgspec.Struct):
    """The transactions' reads and writes. Transactions and objects are dictionary codes; reads and writes are event indices."""

    committed: np.ndarray
    aborted: np.ndarray
    write: np.ndarray
    """One event for each write: its send or, if that is not recorded, a delivery."""
    final: np.ndarray
    """For each write, whether it is its transaction's last write of the object."""
    read: np.ndarray
    """The events that record what committed transactions read."""
    source: np.ndarray
    """For each read, the write whose version it saw, as an index into `write`; -1: the initial state; -2: no recorded write."""
    lacking: np.ndarray
    """For each committed transaction, the number of read requests minus that of the reads that record what they saw."""


def find_transactions(rows: Labelled) -> TransactionHistory:
    obj, op, txn = (rows.codes[name] for name in COLUMNS)

    def is_op(word: str) -> np.ndarray:
        code = rows.words["op"].index(word) if word in rows.words["op"] else -2
        chosen: np.ndarray = (op == code) & (txn >= 0)
        return chosen

    sends, delivers = rows.kind == SEND, rows.kind == DELIVER
    count = len(rows.words["txn"])
    committed, aborted = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    committed[txn[is_op("commit")]] = True
    aborted[txn[is_op("abort")]] = True
    reads = is_op("r")
    named = np.flatnonzero(is_op("w") & (sends | delivers) | reads & (sends | (rows.kind == VIEW)))
    numbers, size = identify(rows.origin[named], rows.seq[named])
    message = np.full(len(op), -1, numbers.dtype)
    message[named] = numbers
    # The first event of each write stands for it, a send before any delivery; events of a process are in its order.
    writes = np.flatnonzero(is_op("w") & (sends | delivers))
    writes = writes[np.argsort(delivers[writes], kind="stable")]
    _, first = np.unique(message[writes], return_index=True)
    write = np.sort(writes[first])
    key = txn[write].astype(np.int64) * max(1, len(rows.words["object"])) + obj[write]
    final = np.ones(len(write), np.bool_)
    order = np.lexsort((rows.seq[write], key))
    final[order[:-1]] = key[order[1:]] != key[order[:-1]]
    at = np.full(size, -2, np.int64)
    at[message[reads & sends]] = -1
    at[message[write]] = np.arange(len(write))
    read = np.flatnonzero(reads & (rows.kind == VIEW) & committed[txn])
    source = at[message[read]]
    asked = np.bincount(txn[reads & sends & committed[txn]], minlength=count)
    lacking = asked - np.bincount(txn[read], minlength=count)
    real = np.flatnonzero(source >= 0)
    source[real[obj[write[source[real]]] != obj[read[real]]]] = -2
    return TransactionHistory(committed, aborted, write, final, read, source, lacking)


def parse_versions(setting: object) -> str:
    """The version order that a run's settings declare; empty if they declare none."""
    if setting is None:
        return ""
    if setting not in (TIMESTAMP, DELIVERED):
        raise BadInput(f"settings.versions in run.json must be {TIMESTAMP} or {DELIVERED}, not {setting!r}")
    return str(setting)


class Versions(NamedTuple):
    """The committed versions of each object in order."""

    object: np.ndarray
    txn: np.ndarray
    sequence: np.ndarray
    """By timestamps, every object has one sequence; by deliveries, it has one at each process that delivered its writes."""


def version_sequences(rows: Labelled, history: TransactionHistory, versions: str, ranks: np.ndarray | None) -> Versions:
    """`ranks` are those of the transactions' timestamps, if all have some."""
    obj, _, txn = (rows.codes[name] for name in COLUMNS)
    names, objects = rows.words["txn"], max(1, len(rows.words["object"]))
    if versions == DELIVERED or (ranks is None and versions != TIMESTAMP):
        w = rows.words["op"].index("w") if "w" in rows.words["op"] else -2
        found = np.flatnonzero((rows.kind == DELIVER) & (rows.codes["op"] == w) & (txn >= 0))
        found = found[history.committed[txn[found]] & (obj[found] >= 0)]
        where = rows.processes()[found].astype(np.int64) * objects + obj[found]
        # What a transaction writes last is its version, so the last delivery counts.
        _, last = np.unique((where * len(names) + txn[found])[::-1], return_index=True)
        kept = np.sort(len(found) - 1 - last)
        kept = kept[np.argsort(where[kept], kind="stable")]
        return _versions(obj[found[kept]], txn[found[kept]], where[kept])
    if ranks is None:
        name = names[int(np.flatnonzero(~np.asarray(pc.match_substring_regex(texts_of(names), _TIMESTAMP)))[0])]
        raise BadInput(f"settings.versions in run.json is {TIMESTAMP}, but transaction {name!r} is not named number.number")
    write = history.write[history.committed[txn[history.write]] & history.final]
    write = write[np.lexsort((ranks[txn[write]], obj[write]))]
    return _versions(obj[write], txn[write], obj[write])


def _versions(*columns: np.ndarray) -> Versions:
    return Versions(*(column.astype(np.int64) for column in columns))


def commit_ranks(rows: Labelled, lamport: np.ndarray) -> np.ndarray:
    """The place of each transaction in the order of the logical times at which they first committed."""
    ends = np.flatnonzero(rows.codes["op"] == (rows.words["op"].index("commit") if "commit" in rows.words["op"] else -2))
    txn, times = rows.codes["txn"][ends], lamport[ends]
    count = len(rows.words["txn"])
    first = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(first, txn[txn >= 0], times[txn >= 0])
    ranks = np.empty(count, np.int64)
    ranks[np.argsort(first, kind="stable")] = np.arange(count)
    return ranks


def timestamp_ranks(names: Sequence[str]) -> np.ndarray | None:
    """The rank of each transaction by the timestamp in its name; None if some names are not timestamps."""
    parsed = _parse_timestamps(names)
    if parsed is None:
        return None
    ranks = np.empty(len(names), np.int64)
    ranks[np.lexsort(parsed[::-1])] = np.arange(len(names))
    return ranks


def _parse_timestamps(names: Sequence[str]) -> tuple[np.ndarray, np.ndarray] | None:
    """Both numbers of each name; None if one has no such name."""
    parts: Any = pc.extract_regex(texts_of(names), _TIMESTAMP)
    if parts.null_count:
        return None
    one, other = parts.flatten()
    try:
        return np.asarray(one.cast(pa.int64())), np.asarray(other.cast(pa.int64()))
    except pa.ArrowInvalid:  # Numbers of more than 63 bits.
        return _ranked(one), _ranked(other)


def _ranked(numbers: Any) -> np.ndarray:
    """Of each number its place among all."""
    found = [int(number) for number in numbers.to_pylist()]
    place = {number: at for at, number in enumerate(sorted(set(found)))}
    return np.array([place[number] for number in found], np.int64)
