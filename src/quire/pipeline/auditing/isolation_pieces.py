"""Splits the isolation checks into pieces: checks that all sessions and reads agree with an order that all tasks know.

The orders tried are that of the timestamps and that of the commits. If the sessions follow such an order, and every read saw
the last version before its own transaction in it, then everything that a transaction can have seen precedes it, and what it saw
of an object precedes the version that it read. So there is no cycle at any level. If neither order explains everything, one
task judges the levels by their definitions.
"""

from __future__ import annotations

import numpy as np

from quire.pipeline.auditing.transaction_pieces import PieceRows
from quire.pipeline.auditing.transactions import TransactionHistory, commit_ranks, timestamp_ranks


def count_unexplained(piece: PieceRows, history: TransactionHistory) -> tuple[int, int]:
    """How many session steps and reads are not explained by timestamp order (all of them if there are no timestamps), and how
    many by commit order."""
    by_time, by_commit = timestamp_ranks(piece.rows.words["txn"]), commit_ranks(piece.rows, piece.lamport)
    everything = len(piece.turns.kind) + len(history.read)
    return everything if by_time is None else _unexplained(piece, history, by_time), _unexplained(piece, history, by_commit)


def _unexplained(piece: PieceRows, history: TransactionHistory, ranks: np.ndarray) -> int:
    return _out_of_session(piece, history, ranks) + _not_the_last(piece, history, ranks)


def _out_of_session(piece: PieceRows, history: TransactionHistory, ranks: np.ndarray) -> int:
    """How many transactions precede, in the order, the one that began before them at the same process."""
    txn, process = piece.turns.codes["txn"], piece.turns.processes()
    sends = np.flatnonzero(history.committed[txn])
    _, first = np.unique(txn[sends], return_index=True)
    begin = sends[np.sort(first)]
    rank, home = ranks[txn[begin]], process[begin]
    return int(((rank[1:] < rank[:-1]) & (home[1:] == home[:-1])).sum())


def _not_the_last(piece: PieceRows, history: TransactionHistory, ranks: np.ndarray) -> int:
    """How many reads saw another version than the last one before them."""
    txn, obj = (piece.rows.codes[name] for name in ("txn", "object"))
    width = len(ranks) + 1

    def place(event: np.ndarray) -> np.ndarray:
        """Where an event of a transaction is among the versions of its object; 0 is before all of them."""
        found: np.ndarray = obj[event].astype(np.int64) * width + 1 + ranks[txn[event]]
        return found

    known = np.flatnonzero(history.source >= -1)
    read, source = history.read[known], history.source[known]
    write = history.write[np.maximum(source, 0)] if len(history.write) else read
    # Reads of uncommitted versions are reported separately; a transaction's reads of its own writes do not matter here.
    counts = (source < 0) | (history.committed[txn[write]] & (txn[write] != txn[read]))
    read, source, write = read[counts], source[counts], write[counts]
    versions = np.sort(place(history.write[history.committed[txn[history.write]]]))
    last = np.searchsorted(versions, place(read)) - 1
    before = versions[last] if len(versions) else np.zeros(len(read), np.int64)
    none = (last < 0) | (before // width != obj[read])
    return int((np.where(source < 0, ~none, none | (before != place(write)))).sum())
