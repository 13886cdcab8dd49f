"""Splits the serialisability check by object: each task judges the transactions' accesses to a share of the objects.

Every edge of the dependency graph is about one object, so each task can find the edges of its own objects. The whole graph is
acyclic if every edge points forward in some order of the transactions; the orders tried are that of their timestamps and that
of the logical times at which they committed. If neither agrees with all edges, one task must judge the whole graph.

Every piece reads the whole trace, because the events of an object may be anywhere in it. So as long as one task can hold the
trace, it judges it at once: that takes less than two pieces do, and nothing is ever judged again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

import msgspec
import numpy as np

from quire.pipeline.auditing.total import identify
from quire.pipeline.auditing.transaction_findings import Wrong, lacks, say_unknown
from quire.pipeline.auditing.transactions import COLUMNS, TransactionHistory, commit_ranks
from quire.pipeline.columns import kinds, numbers, present
from quire.pipeline.hashing import bytes_of, hash_texts
from quire.pipeline.labels import Labelled, LabelledSlices
from quire.pipeline.layout import RowGroup, World
from quire.pipeline.reading import TraceReader
from quire.trace.kinds import DELIVER, SEND, VIEW

ROWS_AT_ONCE = 10_000_000
"""With so many rows a task holds up to 1.5 GiB."""
ROWS_PER_PIECE = 5_000_000
"""A piece of a longer trace holds fewer, because it also reads what is not its own, file by file."""

_AS_MET = ("txn",)
_NOWHERE = -1
_READ, _WRITE, _END = range(3)
_OPERATIONS = {"r": _READ, "w": _WRITE, "commit": _END, "abort": _END}


class Part(msgspec.Struct, frozen=True):
    """What a piece reports about its objects for the joint verdict; it is conclusive only once all pieces are joined."""

    apart: bool = True
    """Whether its objects can be judged apart from the others."""
    backward: tuple[int, int] = (0, 0)
    """How much each of the orders that may explain all does not explain."""
    lacking: dict[int, int] = {}
    """By transaction, the number of its read requests minus that of its reads that record what they saw."""
    committed: bool = False
    reads: int = 0
    unknown: int = 0
    """How many objects have versions in no known order."""

    def joined(self, other: Part) -> Part:
        lacking = Counter(self.lacking)
        for txn, count in other.lacking.items():
            lacking[txn] += count
        return Part(
            self.apart and other.apart,
            (self.backward[0] + other.backward[0], self.backward[1] + other.backward[1]),
            dict(lacking), self.committed or other.committed, self.reads + other.reads, self.unknown + other.unknown,
        )  # fmt: skip

    @property
    def why(self) -> str:
        """Why nothing can be said to hold, if so."""
        unsaid = sum(count for count in self.lacking.values() if count > 0)
        return lacks(self.committed, unsaid, self.reads) or say_unknown(self.unknown)

    @property
    def settled(self) -> bool:
        return self.apart and min(self.backward) == 0


class PieceResult(msgspec.Struct, kw_only=True):
    """What every check of transactions finds, in all objects or in those of a piece."""

    named: bool = True
    """Whether any event names a transaction. If not, nothing was judged."""
    why: str = ""
    """Why it cannot be said to hold; empty if it can."""
    wrong: Wrong = Wrong()
    part: Part | None = None
    """Set in the result of a piece."""

    def joined(self, other: Self) -> Self:
        """Combine the results of two pieces. If the joined result is settled, there is no cycle."""
        if self.part is None or other.part is None:
            return self if self.part is None else other
        part = self.part.joined(other.part)
        return type(self)(named=self.named or other.named, why=part.why, wrong=self.wrong.joined(other.wrong), part=part)


def part_of(history: TransactionHistory, backward: tuple[int, int], unknown: int = 0) -> Part:
    lacking = np.flatnonzero(history.lacking)
    return Part(
        backward=backward, lacking=dict(zip(lacking.tolist(), history.lacking[lacking].tolist(), strict=True)),
        committed=bool(history.committed.any()), reads=len(history.read), unknown=unknown,
    )  # fmt: skip


def count_pieces(groups: Sequence[RowGroup]) -> int:
    rows = sum(group.rows for group in groups)
    return 1 if rows <= ROWS_AT_ONCE else -(-rows // ROWS_PER_PIECE)


class PieceRows(NamedTuple):
    """The events of a piece's objects, and the commits and aborts of all transactions."""

    rows: Labelled
    lamport: np.ndarray
    """Their logical times; -1 if one is not recorded."""
    turns: Labelled
    """Of some of the processes, those sends that are of another transaction than the one before; empty unless asked for."""
    apart: bool
    """Whether all events of each message are about objects of one piece: otherwise pieces cannot be judged apart."""


def read_piece(world: World, groups: Sequence[RowGroup], pieces: int, piece: int, *, turns: bool = False) -> PieceRows:
    slices, times, named = LabelledSlices(world, COLUMNS, _AS_MET), [np.empty(0, np.int64)], [np.empty((0, 3), np.int64)]
    sent = LabelledSlices(world, ("txn",), _AS_MET)
    apart = True
    with TraceReader(world.run) as reader:
        for own, table in reader.read_files(groups, ["kind", "origin", "seq", "lamport", *COLUMNS]):
            kind, at = kinds(table["kind"]), _by_word(table["object"], lambda words: hash_texts(*bytes_of(words)) % pieces)
            op, of_some = _by_word(table["op"], _what), present(table["txn"])
            op[~of_some] = _NOWHERE
            says = ((op == _WRITE) & ((kind == SEND) | (kind == DELIVER))) | ((op == _READ) & ((kind == SEND) | (kind == VIEW)))
            apart = apart and not (says & (at == _NOWHERE)).any()
            origin, seq = (np.where(present(table[name]), numbers(table, name)[0], -1) for name in ("origin", "seq"))
            mine = says & ((origin * 31 + seq) % pieces == piece)
            named.append(np.stack((origin[mine], seq[mine], at[mine]), axis=1).astype(np.int64))
            wanted = (op == _END) | (says & (at == piece))
            times.append(np.where(present(table["lamport"]), numbers(table, "lamport")[0], -1)[wanted])
            table = table.drop_columns(["lamport"])
            slices.add(own, table, wanted)
            if turns:
                chosen = (kind == SEND) & of_some & (own[0].process % pieces == piece)
                sent.add(own, table.drop_columns(["object", "op"]), _first_of_each(table["txn"], chosen))
    return PieceRows(slices.labelled(), np.concatenate(times), sent.labelled(), apart and _are_about_one(np.concatenate(named)))


def _what(operations: Any) -> np.ndarray:
    return np.array([_OPERATIONS.get(word, _NOWHERE) for word in operations.to_pylist()], np.int64)


def _by_word(column: Any, meaning: Callable[[Any], np.ndarray]) -> np.ndarray:
    """Map each row's text to a number, by way of the column's dictionary; -1 if there is no text, or it has no meaning."""
    found = [np.empty(0, np.int64)]
    for chunk in column.chunks:
        of_word = np.append(meaning(chunk.dictionary), _NOWHERE)
        found.append(of_word[np.asarray(chunk.indices.fill_null(len(of_word) - 1))])
    return np.concatenate(found)


def _first_of_each(column: Any, chosen: np.ndarray) -> np.ndarray:
    """Which of the chosen rows have another word than the chosen one before. In every row group the first is taken for such."""
    first, begin = np.zeros(len(chosen), np.bool_), 0
    for chunk in column.chunks:
        rows = np.flatnonzero(chosen[begin : begin + len(chunk)])
        word = np.asarray(chunk.indices.fill_null(-1))[rows]
        first[begin + rows] = np.append(True, word[1:] != word[:-1])[: len(rows)]
        begin += len(chunk)
    return first


def _are_about_one(named: np.ndarray) -> bool:
    """Whether all rows of each message belong to one piece."""
    message, size = identify(named[:, 0], named[:, 1])
    piece = np.empty(size, np.int64)
    piece[message] = named[:, 2]
    return bool((piece[message] == named[:, 2]).all())


def count_backward(piece: PieceRows, ranks: np.ndarray | None, pairs: np.ndarray) -> tuple[int, int]:
    """How many pairs point backwards in timestamp order (all of them if there are no timestamps), and in commit order."""
    if not len(pairs):
        return 0, 0
    by_time, by_commit = (
        len(pairs) if order is None else int((order[pairs[:, 0]] >= order[pairs[:, 1]]).sum())
        for order in (ranks, commit_ranks(piece.rows, piece.lamport))
    )
    return by_time, by_commit
