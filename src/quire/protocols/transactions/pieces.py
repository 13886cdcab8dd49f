"""Reads a changing state piece by piece: for a replica that lost its disk, and for a checkpoint.

The knowledge of a transaction moves through the tables of a state in one direction: its prewrites, promises and accepted values
are removed when it is decided, and the decision is dropped last. The tables are read in the same direction. So everything that
was there when reading began is met, as it was then or as what it has become since. What is new may be missed: a checkpoint has
it in later records, and a replica that reads for another one has already announced that votes of that one's earlier lives no
longer count beside new ones.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, NamedTuple

from quire.protocols.transactions.cells import Cell
from quire.protocols.transactions.durable import Durable
from quire.protocols.transactions.records import Piece, Rest
from quire.protocols.transactions.timestamps import ZERO, Timestamp
from quire.protocols.transactions.votes import Decision

PIECE_BYTES = 1 << 20
"""A piece is about as long, unless one entry is longer."""
_ENTRY_BYTES = 64
"""About what an entry takes besides keys and values."""
_CELLS, _PROMISED, _ACCEPTED, _BALLOTS, _DECIDED, _REST = range(6)


class Place(NamedTuple):
    """The position where a piece begins: after this entry of a table. `key` identifies an entry of the cells, `t` one of the
    other tables."""

    table: int = _CELLS
    key: str | None = None
    t: Timestamp = ZERO


START = Place()


class PieceReader:
    """Reads a state once, from start to end. It may be asked for the same piece again."""

    def __init__(self, state: Durable, piece_bytes: int | None = None) -> None:
        self._state = state
        self._piece_bytes = PIECE_BYTES if piece_bytes is None else piece_bytes
        self._orders: dict[int, list[Any]] = {}

    def read(self, place: Place) -> tuple[Piece, Place | None]:
        """The next piece, and where the one after it begins; None after the last piece."""
        tables: tuple[dict[Any, Any], ...] = ({}, {}, {}, {}, {})
        room = self._piece_bytes
        while place.table < _REST:
            behind = self._behind(place)
            source, found = self._table(place.table), tables[place.table]
            for entry in behind:
                if room <= 0:
                    return self._piece(tables, None), place
                if entry in source:
                    found[entry] = source[entry]
                    room -= _ENTRY_BYTES + _size(entry, source[entry])
                place = Place(place.table, entry) if place.table == _CELLS else Place(place.table, None, entry)
            place = Place(place.table + 1)
        return self._piece(tables, self._rest()), None

    def __iter__(self) -> Iterator[Piece]:
        """All pieces, each as of the moment when it is requested."""
        place: Place | None = START
        while place is not None:
            piece, place = self.read(place)
            yield piece

    def _table(self, table: int) -> dict[Any, Any]:
        state = self._state
        return (state.cells, state.promised, state.accepted, state.ballots, state.decided)[table]

    def _behind(self, place: Place) -> Iterator[Any]:
        """The entries after a position, in order."""
        after: Any = place.key if place.table == _CELLS else place.t
        order = self._orders.get(place.table)
        if order is None:
            order = self._orders[place.table] = sorted(self._table(place.table))
        first = 0 if after in (None, ZERO) else bisect_right(order, after)
        return (order[index] for index in range(first, len(order)))

    def _piece(self, tables: tuple[dict[Any, Any], ...], rest: Rest | None) -> Piece:
        cells, promised, accepted, ballots, decided = tables
        return Piece(
            {key: Cell(cell.wts, cell.value, cell.rts, dict(cell.prewrites)) for key, cell in cells.items()},
            list(promised.items()),
            [(t, *each) for t, each in accepted.items()],
            list(ballots.items()),
            list(decided.items()),
            rest,
        )

    def _rest(self) -> Rest:
        state = self._state
        return Rest(
            dict(state.known),
            tuple(sorted(state.gone)),
            state.cap,
            state.floor,
            state.closed,
            state.horizon,
        )


def _size(entry: Any, value: Any) -> int:
    """The approximate size of an entry's keys and values in bytes."""
    if isinstance(value, Cell):
        prewrites = sum(len(each.value or b"") for each in value.prewrites.values())
        return len(entry) + len(value.value or b"") + prewrites
    decision = value[1] if isinstance(value, tuple) and isinstance(value[1], Decision) else value
    if isinstance(decision, Decision):
        return sum(len(key) + len(written or b"") for key, (_, written) in decision.writes.items())
    return 0
