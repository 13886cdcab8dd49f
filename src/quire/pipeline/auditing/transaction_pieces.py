"""Splits the serialisability check by object: each task judges the transactions' accesses to a share of the objects.

Every edge of the dependency graph is about one object, so each task can find the edges of its own objects. The whole graph is
acyclic if every edge points forward in some order of the transactions; the orders tried are that of their timestamps and that
of the logical times at which they committed. If neither agrees with all edges, one task must judge the whole graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from quire.pipeline.auditing.transactions import COLUMNS
from quire.pipeline.columns import kinds, numbers, present
from quire.pipeline.hashing import bytes_of, hash_texts
from quire.pipeline.labels import Labelled, LabelledSlices
from quire.pipeline.layout import RowGroup, World
from quire.pipeline.reading import TraceReader
from quire.trace.kinds import DELIVER, SEND, VIEW

ROWS_PER_PIECE = 2_500_000

_NOWHERE = -1
_READ, _WRITE, _END = range(3)
_OPERATIONS = {"r": _READ, "w": _WRITE, "commit": _END, "abort": _END}


class PieceRows(NamedTuple):
    """The events of a piece's objects, and the commits and aborts of all transactions."""

    rows: Labelled
    lamport: np.ndarray
    """Their logical times; -1 if one is not recorded."""
    apart: bool
    """Whether all events of each message are about objects of one piece: otherwise pieces cannot be judged apart."""


def read_piece(world: World, groups: Sequence[RowGroup], pieces: int, piece: int) -> PieceRows:
    slices, times, named = LabelledSlices(world, COLUMNS), [np.empty(0, np.int64)], [np.empty((0, 3), np.int64)]
    apart = True
    with TraceReader(world.run) as reader:
        for own, table in reader.read_files(groups, ["kind", "origin", "seq", "lamport", *COLUMNS]):
            kind, at = kinds(table["kind"]), _by_word(table["object"], lambda words: hash_texts(*bytes_of(words)) % pieces)
            op = _by_word(table["op"], _what)
            op[~present(table["txn"])] = _NOWHERE
            says = ((op == _WRITE) & ((kind == SEND) | (kind == DELIVER))) | ((op == _READ) & ((kind == SEND) | (kind == VIEW)))
            apart = apart and not (says & (at == _NOWHERE)).any()
            origin, seq = (np.where(present(table[name]), numbers(table, name)[0], -1) for name in ("origin", "seq"))
            mine = says & ((origin * 31 + seq) % pieces == piece)
            named.append(np.stack((origin[mine], seq[mine], at[mine]), axis=1).astype(np.int64))
            wanted = (op == _END) | (says & (at == piece))
            slices.add(own, table.drop_columns(["lamport"]), wanted)
            times.append(np.where(present(table["lamport"]), numbers(table, "lamport")[0], -1)[wanted])
    return PieceRows(slices.labelled(), np.concatenate(times), apart and _are_about_one(np.concatenate(named)))


def _what(operations: Any) -> np.ndarray:
    return np.array([_OPERATIONS.get(word, _NOWHERE) for word in operations.to_pylist()], np.int64)


def _by_word(column: Any, meaning: Callable[[Any], np.ndarray]) -> np.ndarray:
    """Map each row's text to a number, by way of the column's dictionary; -1 if there is no text, or it has no meaning."""
    found = [np.empty(0, np.int64)]
    for chunk in column.chunks:
        of_word = np.append(meaning(chunk.dictionary), _NOWHERE)
        found.append(of_word[np.asarray(chunk.indices.fill_null(len(of_word) - 1))])
    return np.concatenate(found)


def _are_about_one(named: np.ndarray) -> bool:
    """Whether all rows of each message belong to one piece."""
    named = named[np.lexsort((named[:, 1], named[:, 0]))]
    same = (named[1:, :2] == named[:-1, :2]).all(axis=1)
    return not (same & (named[1:, 2] != named[:-1, 2])).any()


def backward(piece: PieceRows, edges: np.ndarray, committed: np.ndarray, ranks: np.ndarray | None) -> tuple[int, int]:
    """How many edges point backwards in timestamp order (all of them if there are no timestamps), and in commit order."""
    if not len(edges):
        return 0, 0
    by_time = len(edges) if ranks is None else int((ranks[edges[:, 0]] >= ranks[edges[:, 1]]).sum())
    rows = piece.rows
    ends = np.flatnonzero(rows.codes["op"] == (rows.words["op"].index("commit") if "commit" in rows.words["op"] else -2))
    txn, lamport = rows.codes["txn"][ends], piece.lamport[ends]
    first = np.full(len(committed), np.iinfo(np.int64).max)
    np.minimum.at(first, txn[txn >= 0], lamport[txn >= 0])
    order = np.empty(len(first), np.int64)
    order[np.lexsort((np.arange(len(first)), first))] = np.arange(len(first))
    return by_time, int((order[edges[:, 0]] >= order[edges[:, 1]]).sum())
