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
from typing import NamedTuple

import msgspec
import numpy as np

from quire.pipeline.auditing.transactions import TransactionHistory
from quire.pipeline.causes import arrange, begins
from quire.pipeline.compiled import compiled, first_not_below, piece
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
    """The writes as (object, session, number), sorted."""


def find_sessions(rows: Labelled, history: TransactionHistory) -> Sessions:
    txn = rows.codes["txn"]
    sends = np.flatnonzero((rows.kind == 0) & (txn >= 0))
    sends = sends[history.committed[txn[sends]]]
    codes, first = np.unique(txn[sends], return_index=True)
    begin = sends[first]
    order = np.argsort(begin, kind="stable")  # By process, and by position there.
    code, begin = codes[order], begin[order]
    number = np.full(len(history.committed), -1, np.int64)
    number[code] = np.arange(len(code))
    homes, session = np.unique(rows.processes()[begin], return_inverse=True)
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
    written = np.stack((rows.of("object", write), session[author], author), axis=1)
    written = written[np.lexsort((written[:, 2], written[:, 0]))]  # Sessions are in the order of their numbers.
    written = written[np.append(True, (written[1:] != written[:-1]).any(axis=1))[: len(written)]]
    return Sessions(number, code, start, session, reader[kept], wrote[kept], rows.of("object", read[kept]), read[kept], written)


class Orders:
    """In what order the levels put the transactions."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        count = len(sessions.code)
        self.nodes = count + 1
        inside = np.flatnonzero(sessions.session[1:] == sessions.session[:-1]) if count else np.empty(0, np.int64)
        firsts = sessions.start[:-1]
        self._in_sessions = len(inside) + len(firsts)
        self._base = np.concatenate((
            np.stack((inside, inside + 1), axis=1), np.stack((np.full(len(firsts), count), firsts), axis=1),
            np.stack((sessions.writer, sessions.reader), axis=1),
        )).astype(np.int64)  # fmt: skip
        self._depth = arrange(self._base[:, 1], self._base[:, 0], np.zeros(self.nodes, np.int64)).depth

    def at(self, level: Level, among: np.ndarray) -> Ordered:
        """The order at this level, between transactions in the mask `among`. Where sessions and reads alone are a cycle,
        nothing can be said to have been seen."""
        seen = np.empty((0, 2), np.int64)
        if not (self._depth < 0).any():
            seen = _seen(self._sessions, level, self._depth, among)
        edges = np.concatenate((self._base, np.stack((seen[:, 0], self._sessions.writer[seen[:, 1]]), axis=1)))
        number = np.arange(len(edges))
        if not among.all():
            number = np.flatnonzero(among[edges[:, 0]] & among[edges[:, 1]])
            edges = edges[number]
        return Ordered(self._sessions, edges, number, self._in_sessions, seen[:, 1])


class Ordered(NamedTuple):
    """Pairs of transactions of which the first comes before the second: in a session, by a read, or because it was seen."""

    sessions: Sessions
    edges: np.ndarray
    number: np.ndarray
    """Of each pair, its place among all: first those of sessions, then the reads, then what was seen."""
    in_sessions: int
    seen_by: np.ndarray
    """Of what was seen, the read that says so."""

    def about(self, edge: int) -> tuple[int, int, int]:
        """Why the first comes before the second, the object that it is about, and the read that says so (-1 for none)."""
        if self.number[edge] < self.in_sessions:
            return SESSION, -1, -1
        read = int(self.number[edge]) - self.in_sessions
        if read < len(self.sessions.reader):
            return READ, int(self.sessions.object[read]), read
        read = int(self.seen_by[read - len(self.sessions.reader)])
        return SEEN, int(self.sessions.object[read]), read


def _seen(sessions: Sessions, level: Level, depth: np.ndarray, among: np.ndarray) -> np.ndarray:
    """Pairs (transaction, read): the reader had seen the transaction, which wrote the object that was read. At least those are
    found in which it, and the writer that was read, are `among` these."""
    begin = np.searchsorted(sessions.reader, np.arange(len(sessions.code) + 1)).astype(np.int64)
    if level is Level.CAUSAL:
        order = np.argsort(depth[:-1], kind="stable")
    else:  # It does not depend on what others have seen.
        order = np.unique(sessions.reader[among[sessions.writer]])
    written = sessions.written
    objects = int(max(sessions.object.max(initial=0), written[:, 0].max(initial=0))) + 1
    found: np.ndarray = seen_writers(
        int(level), order, begin, sessions.writer, sessions.object, sessions.session, sessions.start,
        begins(written[:, 0], objects), written[:, 2].copy(),
    )  # fmt: skip
    return found


@compiled
def seen_writers(
    level: int, order: np.ndarray, begin: np.ndarray, writer: np.ndarray, obj: np.ndarray, session: np.ndarray,
    start: np.ndarray, first_author: np.ndarray, authors: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Visit transactions: at the last level all of them, in an order in which each comes after those it has seen. The writers
    of object x are `authors[first_author[x] : first_author[x + 1]]`, sorted."""
    sessions, count = len(start) - 1, len(session)
    known = np.zeros((count if level == 2 else 0, sessions), np.int32)
    upto = np.zeros(sessions, np.int64)
    found, size = np.empty((1024, 2), np.int64), 0
    for txn in order:
        own = session[txn]
        if level == 2:
            _know(known, txn, own, begin, writer, session, start)
        for at in range(begin[txn], begin[txn + 1]):
            low, high = first_author[obj[at]], first_author[obj[at] + 1]
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
                    if _last_writer(authors, low, high, start[session[seen]], seen + 1) == seen:
                        found = _with_room(found, size)
                        found[size, 0], found[size, 1] = seen, at
                        size += 1
            for other in range(sessions):
                if upto[other] == 0:
                    continue
                last = _last_writer(authors, low, high, start[other], start[other] + upto[other])
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


@piece
def _last_writer(authors: np.ndarray, low: int, high: int, first: int, end: int) -> int:
    """The last of these authors with a number from `first` to before `end`, or -1."""
    at = first_not_below(authors, low, high, end) - 1
    return authors[at] if at >= low and authors[at] >= first else -1
