"""Reconstructs what transactions did from a trace: which ones committed, what each wrote, and what each read."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec
import numpy as np

from quire.model.errors import BadInput
from quire.pipeline.auditing.total import identify
from quire.pipeline.labels import Labelled
from quire.trace.kinds import DELIVER, SEND, VIEW

COLUMNS = ("object", "op", "txn")
TIMESTAMP, DELIVERED = "timestamp", "delivered"

_TIMESTAMP = re.compile(r"([0-9]+)\.([0-9]+)")


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
    message = np.full(len(op), -1, np.int64)
    message[named], size = identify(rows.origin[named], rows.seq[named])
    # The first event of each write represents it, a send before any delivery; the events of a process are in local order.
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


def version_sequences(rows: Labelled, history: TransactionHistory, versions: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The committed versions of each object in order: object, transaction and number of the sequence of each entry.

    By timestamps, every object has one sequence; by deliveries, it has one at each process that delivered its writes.
    """
    obj, _, txn = (rows.codes[name].astype(np.int64) for name in COLUMNS)
    names = rows.words["txn"]
    ranks = None if versions == DELIVERED else timestamp_ranks(names)
    if ranks is None and versions != TIMESTAMP:
        w = rows.words["op"].index("w") if "w" in rows.words["op"] else -2
        found = np.flatnonzero((rows.kind == DELIVER) & (rows.codes["op"] == w) & (txn >= 0))
        found = found[history.committed[txn[found]] & (obj[found] >= 0)]
        process = rows.processes()[found]
        where = process * max(1, len(rows.words["object"])) + obj[found]
        # A transaction's version is its last write of the object, so the last delivery counts.
        _, last = np.unique((where * len(names) + txn[found])[::-1], return_index=True)
        kept = np.sort(len(found) - 1 - last)
        kept = kept[np.argsort(where[kept], kind="stable")]
        return obj[found[kept]], txn[found[kept]], where[kept]
    if ranks is None:
        name = next(name for name in names if _TIMESTAMP.fullmatch(name) is None)
        raise BadInput(f"settings.versions in run.json is {TIMESTAMP}, but transaction {name!r} is not named number.number")
    write = history.write[history.committed[txn[history.write]] & history.final]
    write = write[np.lexsort((ranks[txn[write]], obj[write]))]
    return obj[write], txn[write], obj[write]


def timestamp_ranks(names: Sequence[str]) -> np.ndarray | None:
    """The rank of each transaction by the timestamp in its name; None if some names are not timestamps."""
    parsed = []
    for name in names:
        stamp = _TIMESTAMP.fullmatch(name)
        if stamp is None:
            return None
        parsed.append((int(stamp[1]), int(stamp[2])))
    ranks = np.zeros(len(parsed), np.int64)
    ranks[sorted(range(len(parsed)), key=parsed.__getitem__)] = np.arange(len(parsed))
    return ranks
