"""Decides isolation levels weaker than serialisability, without knowing the version order.

A level states: if a transaction read t1's version of x and had *seen* another transaction t2 that wrote x too, then t2 precedes
t1. The levels differ only in what counts as seen:

read committed        t2, if the transaction had read something of t2 before
read atomic           t2, if the transaction read something of t2 at all, or t2 came before it in its session
transactional causal  t2, if it is before the transaction in any chain of sessions and reads

A history satisfies the level if these edges, the session order and the reads together are acyclic. Initial versions count as
written by an initial transaction that precedes all others. In each session only the last writer of x that was seen matters,
because the earlier ones precede it; so vector clocks over the sessions suffice.

Source: Biswas and Enea, On the complexity of checking transactional consistency, 2019 (definitions 2.2 to 2.4).
"""

from __future__ import annotations

from enum import IntEnum

import msgspec
import numpy as np

from quire.pipeline.auditing.transactions import TransactionHistory
from quire.pipeline.causes import arrange
from quire.pipeline.compiled import compiled
from quire.pipeline.labels import Labelled


class Level(IntEnum):
    READ_COMMITTED = 0
    READ_ATOMIC = 1
    CAUSAL = 2


SESSION, READ, SEEN = range(3)
"""Why A precedes B: session order; B read A's write; a transaction that had seen A read B's version of an object that A wrote
too."""


class Sessions(msgspec.Struct):
    """Committed transactions, numbered session by session; the last number is the initial transaction's."""

    number: np.ndarray
    """Maps the code of a transaction's name to its number; -1 if it did not commit."""
    code: np.ndarray
    """Maps a transaction's number to the code of its name."""
    start: np.ndarray
    """The number of the first transaction of each session."""
    session: np.ndarray
    reader: np.ndarray
    """The reads, in each transaction's order: the reader, the writer of the version, the object and the event of each."""
    writer: np.ndarray
    object: np.ndarray
    event: np.ndarray
    written: np.ndarray
    """The writes as (session, object, number), sorted."""


def find_sessions(rows: Labelled, history: TransactionHistory) -> Sessions:
    txn, obj = rows.codes["txn"].astype(np.int64), rows.codes["object"].astype(np.int64)
    process = rows.processes()
    sends = np.flatnonzero((rows.kind == 0) & (txn >= 0))
    sends = sends[history.committed[txn[sends]]]
    codes, first = np.unique(txn[sends], return_index=True)
    begin = sends[first]
    order = np.argsort(begin, kind="stable")  # By process, and by position there.
    code, begin = codes[order], begin[order]
    number = np.full(len(history.committed), -1, np.int64)
    number[code] = np.arange(len(code))
    homes, session = np.unique(process[begin], return_inverse=True)
    start = np.searchsorted(session, np.arange(len(homes) + 1)).astype(np.int64)
    initial = len(code)
    read = history.read[history.source >= -1]
    source = history.source[history.source >= -1]
    wrote = np.full(len(source), initial, np.int64)
    wrote[source >= 0] = number[txn[history.write[source[source >= 0]]]]
    reader = number[txn[read]]
    # Reads of uncommitted versions are reported separately; a transaction's reads of its own writes do not matter here.
    kept = np.flatnonzero((reader >= 0) & (wrote >= 0) & (wrote != reader))
    kept = kept[np.lexsort((read[kept], reader[kept]))]
    write = history.write[history.committed[txn[history.write]]]
    author = number[txn[write]]
    written = np.unique(np.stack((session[author], obj[write], author), axis=1), axis=0)
    return Sessions(number, code, start, session, reader[kept], wrote[kept], obj[read[kept]], read[kept], written)


def order_of(sessions: Sessions, level: Level) -> tuple[np.ndarray, np.ndarray]:
    """The edges (a transaction, one that it precedes), and for each: the reason, the object, and the read that shows it (-1 if
    none)."""
    count = len(sessions.code)
    inside = np.flatnonzero(sessions.session[1:] == sessions.session[:-1]) if count else np.empty(0, np.int64)
    reads = np.stack((sessions.writer, sessions.reader), axis=1)
    firsts = sessions.start[:-1]
    edges = [
        np.stack((inside, inside + 1), axis=1), np.stack((np.full(len(firsts), count), firsts), axis=1), reads,
    ]  # fmt: skip
    nothing = np.full(len(inside) + len(firsts), -1, np.int64)
    read_numbers = np.arange(len(sessions.reader))
    about = [
        np.stack((np.full(len(nothing), SESSION), nothing, nothing), axis=1),
        np.stack((np.full(len(reads), READ), sessions.object, read_numbers), axis=1),
    ]
    base = np.concatenate(edges)
    depth = arrange(base[:, 1], base[:, 0], np.zeros(count + 1, np.int64)).depth
    if (depth >= 0).all():
        seen = _seen(sessions, level, depth)
        edges.append(np.stack((seen[:, 0], sessions.writer[seen[:, 1]]), axis=1))
        about.append(np.stack((np.full(len(seen), SEEN), sessions.object[seen[:, 1]], seen[:, 1]), axis=1))
    every, said = np.concatenate(edges).astype(np.int64), np.concatenate(about).astype(np.int64)
    keep = every[:, 0] != every[:, 1]
    every, said = every[keep], said[keep]
    _, once = np.unique(every[:, 0] * (count + 1) + every[:, 1], return_index=True)
    return every[once].copy(), said[once].copy()


def _seen(sessions: Sessions, level: Level, depth: np.ndarray) -> np.ndarray:
    """Pairs (transaction, read): the reader had seen the transaction, which wrote the object that was read."""
    begin = np.searchsorted(sessions.reader, np.arange(len(sessions.code) + 1)).astype(np.int64)
    order = np.argsort(depth[:-1], kind="stable")
    objects = int(max(sessions.object.max(initial=0), sessions.written[:, 1].max(initial=0))) + 1
    keys = sessions.written[:, 0] * objects + sessions.written[:, 1]
    found: np.ndarray = seen_writers(
        int(level), order, begin, sessions.writer, sessions.object, sessions.session, sessions.start, keys,
        sessions.written[:, 2].copy(), objects,
    )  # fmt: skip
    return found


@compiled
def seen_writers(
    level: int, order: np.ndarray, begin: np.ndarray, writer: np.ndarray, obj: np.ndarray, session: np.ndarray,
    start: np.ndarray, keys: np.ndarray, author: np.ndarray, objects: int,
) -> np.ndarray:  # fmt: skip
    """Visit the transactions in an order in which every transaction comes after those it has seen."""
    sessions, count = len(start) - 1, len(session)
    known = np.zeros((count if level == 2 else 0, sessions), np.int64)
    upto = np.zeros(sessions, np.int64)
    found, size = np.empty((1024, 2), np.int64), 0
    for txn in order:
        own = session[txn]
        if level == 2:
            _know(known, txn, own, begin, writer, session, start)
        for at in range(begin[txn], begin[txn + 1]):
            upto[:] = 0
            if level == 1:
                upto[own] = txn - start[own]
            if level == 2:
                upto[:] = known[txn]
            else:
                # Only the transactions that were read from, not those that precede them.
                for earlier in range(begin[txn], at if level == 0 else begin[txn + 1]):
                    seen = writer[earlier]
                    if seen == count or seen == writer[at]:
                        continue
                    if _last_writer(keys, author, session[seen] * objects + obj[at], seen + 1) == seen:
                        found = _with_room(found, size)
                        found[size, 0], found[size, 1] = seen, at
                        size += 1
            for other in range(sessions):
                if upto[other] == 0:
                    continue
                last = _last_writer(keys, author, other * objects + obj[at], start[other] + upto[other])
                if last >= 0 and last != writer[at]:
                    found = _with_room(found, size)
                    found[size, 0], found[size, 1] = last, at
                    size += 1
    return found[:size]


@compiled
def _know(
    known: np.ndarray, txn: int, own: int, begin: np.ndarray, writer: np.ndarray, session: np.ndarray, start: np.ndarray
) -> None:  # fmt: skip
    """Set a transaction's vector clock: for each session, how many of its transactions precede it, by way of its predecessor in
    the session and of what it reads."""
    if txn > start[own]:
        known[txn, :] = known[txn - 1, :]
    known[txn, own] = txn - start[own]
    for at in range(begin[txn], begin[txn + 1]):
        source = writer[at]
        if source < len(session):
            for other in range(len(start) - 1):
                known[txn, other] = max(known[txn, other], known[source, other])
            known[txn, session[source]] = max(known[txn, session[source]], source - start[session[source]] + 1)


@compiled
def _with_room(found: np.ndarray, size: int) -> np.ndarray:
    if size < len(found):
        return found
    bigger = np.empty((2 * len(found), found.shape[1]), found.dtype)
    bigger[:size] = found
    return bigger


@compiled
def _last_writer(keys: np.ndarray, author: np.ndarray, key: int, end: int) -> int:
    """The last transaction before `end` that wrote the object of `key` in its session, or -1."""
    low, high = np.searchsorted(keys, key), np.searchsorted(keys, key, side="right")
    at = low + np.searchsorted(author[low:high], end) - 1
    return author[at] if at >= low else -1
