"""Inserts externally observed events, such as crashes and network cuts, among a process's own records."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from quire.trace.kinds import VIEW
from quire.trace.log import Address, Names
from quire.trace.parts.reader import Piece
from quire.trace.records import ADDRESS, COUNT, FIRST, KIND, LAMPORT, RECORD_FIELDS, TIME_NS
from quire.trace.tables import Integers
from quire.trace.views import ViewEvent

_IN_A_VIEW = (ViewEvent.INSTALL, ViewEvent.RESUME)
_OUT_OF_IT = (ViewEvent.EXCLUDED, ViewEvent.LEFT, ViewEvent.CRASH)


class Observed(NamedTuple):
    process: int
    """Its number in the run."""
    time_ns: int
    what: ViewEvent
    others: tuple[int, ...] = ()
    """The processes it cannot reach, or can reach again."""


class _Stay(NamedTuple):
    """A process's current view, its group, and the process's incarnation."""

    number: int
    group: str | None
    incarnation: str | None


class Observing:
    """Inserts what was observed of one process by time. Observations made while it was in no view are left out."""

    def __init__(self, process: int, observed: Iterable[Observed]) -> None:
        self._process = process
        self._waiting = deque(sorted((each for each in observed if each.process == process), key=lambda each: each.time_ns))
        self._stay: _Stay | None = None
        self._lamport = 0
        """The logical time of the last record, or of the last message in it."""
        self._time_ns = 0

    def __call__(self, pieces: Iterable[Piece]) -> Iterator[Piece]:
        """All records of the process, from all its parts. Logical times must leave room between any two records."""
        names = Names()
        for piece in pieces:
            names = piece.names
            yield self._with_observed(piece)
        if self._waiting and self._stay is not None:
            rest = Piece(names, np.empty((0, RECORD_FIELDS), np.int64))
            yield self._with_observed(rest, everything=True)

    def _with_observed(self, piece: Piece, *, everything: bool = False) -> Piece:
        if not (
            self._waiting and (everything or (len(piece.records) and self._waiting[0].time_ns < piece.records[-1, TIME_NS]))
        ):
            for record in piece.records[piece.records[:, KIND] == VIEW]:
                self._follow(piece.names, record)
            self._pass(piece.records)
            return piece
        names = Names()
        names.addresses[:], names.packet_types[:] = piece.names.addresses, piece.names.packet_types
        rows: list[Integers] = []
        for record in piece.records:
            rows += self._due(names, int(record[TIME_NS]))
            rows.append(record)
            if record[KIND] == VIEW:
                self._follow(names, record)
            self._pass(record[np.newaxis])
        if everything:
            rows += self._due(names, None)
        return Piece(names, np.stack(rows) if rows else piece.records)

    def _due(self, names: Names, before_ns: int | None) -> Iterator[Integers]:
        """The observations before the next record, or all that are left."""
        while self._waiting and (before_ns is None or self._waiting[0].time_ns < before_ns):
            seen = self._waiting.popleft()
            if self._stay is None:
                continue
            number, group, incarnation = self._stay
            names.addresses.append(Address(group, seen.others, None, seen.what.value, incarnation))
            self._lamport += 1
            self._time_ns = max(self._time_ns, seen.time_ns)
            address = len(names.addresses) - 1
            yield np.array([VIEW, self._process, number, 1, self._lamport, self._time_ns, address, 0], np.int64)
            if seen.what in _OUT_OF_IT:
                self._stay = None

    def _follow(self, names: Names, record: Integers) -> None:
        address = names.addresses[int(record[ADDRESS])]
        if address.op in _IN_A_VIEW:
            self._stay = _Stay(int(record[FIRST]), address.group, address.txn)
        elif address.op in _OUT_OF_IT:
            self._stay = None

    def _pass(self, records: Integers) -> None:
        if len(records):
            self._lamport = int(records[-1, LAMPORT] + records[-1, COUNT]) - 1
            self._time_ns = int(records[-1, TIME_NS])
