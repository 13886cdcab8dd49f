"""The end of a process's log, kept in bounded memory for clients that follow the process while it runs.

Records are handed over packed, with the names that they refer to. A client that asks too late is told so, and continues with
the oldest record that is left.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterable

import msgspec

from quire.trace.kinds import PACKET
from quire.trace.log import Names
from quire.trace.parts.description import PartDescription
from quire.trace.parts.frames import NewNames
from quire.trace.records import ADDRESS, COUNT, KIND, RECORD_BYTES, RECORD_FIELDS

KEPT_BYTES = 4 << 20
EXCERPT_BYTES_MAX = 1 << 20


class Excerpt(msgspec.Struct, frozen=True, kw_only=True):
    """Consecutive records of a process."""

    description: PartDescription | None
    """None if the process does not record anything yet."""
    first: int = 0
    """The number of the first record here, from 0."""
    rows: int = 0
    """How many rows of the trace the records before it stand for."""
    until: int = 0
    """The number after the last record here."""
    ahead: int = 0
    """How many records there are after these."""
    lamport: int = 0
    """If there are none: all later records have greater logical times than this."""
    names: NewNames = NewNames()
    """The names that these records refer to, and no others."""
    records: bytes = b""

    def meaning(self) -> Names:
        """The names that these records refer to."""
        return Names(self.names.addresses, self.names.packet_types)


class TraceTail:
    """Filled by the recorder. `flush` is called before each excerpt; `lamport` returns the current logical time."""

    def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
        self.description: PartDescription | None = None
        self.flush: Callable[[], None] = lambda: None
        self.lamport: Callable[[], int] = lambda: 0
        self._kept_bytes = kept_bytes
        self._chunks: deque[tuple[int, bytes, Names]] = deque()
        """Chunks: the number of rows before it, the records, and the names that they refer to."""
        self._first = self._next = self._rows = 0
        self._bytes = 0

    def begin(self, description: PartDescription) -> None:
        self.description = description

    def append(self, names: Names, records: bytes) -> None:
        """Add records. Names may be added later, but must not change."""
        self._chunks.append((self._rows, records, names))
        self._next += len(records) // RECORD_BYTES
        self._rows += _rows_of(records)
        self._bytes += len(records)
        while self._bytes > self._kept_bytes and len(self._chunks) > 1:
            gone = self._chunks.popleft()[1]
            self._bytes -= len(gone)
            self._first += len(gone) // RECORD_BYTES

    def excerpt(self, since: int) -> Excerpt:
        """The records from number `since` on, up to a bounded size."""
        self.flush()
        chosen: list[tuple[bytes, Names]] = []
        first, rows, at, size = self._next, self._rows, self._first, 0
        for before, records, names in self._chunks:
            count = len(records) // RECORD_BYTES
            if at + count > since and size < EXCERPT_BYTES_MAX:
                skipped = max(0, since - at)
                if not chosen:
                    first = at + skipped
                    rows = before + _rows_of(records[: skipped * RECORD_BYTES])
                chosen.append((records[skipped * RECORD_BYTES :], names))
                size += len(chosen[-1][0])
            at += count
        until = first + size // RECORD_BYTES
        new, records = numbered_anew(chosen)
        return Excerpt(
            description=self.description, first=first, rows=rows, until=until, ahead=self._next - until,
            lamport=self.lamport(), names=new, records=records,
        )  # fmt: skip


def _rows_of(records: bytes) -> int:
    """How many rows of the trace packed records stand for."""
    return sum(array("q", records)[COUNT::RECORD_FIELDS])


def numbered_anew(pieces: Iterable[tuple[bytes, Names]]) -> tuple[NewNames, bytes]:
    """Renumber the names that records use, so that the excerpt can be read without what came before."""
    used, result = Names(), []
    for piece, names in pieces:
        records = array("q", piece)
        # Without a loop in Python: a member does this for whoever follows it, and has better things to do.
        numbers = list(zip(records[KIND::RECORD_FIELDS], records[ADDRESS::RECORD_FIELDS], strict=True))
        known = {
            (kind, number): used.packet_type(names.packet_types[number])
            if kind == PACKET
            else used.address(names.addresses[number])
            for kind, number in dict.fromkeys(numbers)
        }
        records[ADDRESS::RECORD_FIELDS] = array("q", map(known.__getitem__, numbers))
        result.append(records.tobytes())
    return NewNames(tuple(used.addresses), tuple(used.packet_types)), b"".join(result)
