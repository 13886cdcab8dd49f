"""The end of a process's log in memory, for whoever follows the process while it runs: as much as has room.

Records are handed over as they are, with what their numbers mean. Who asks too late is told so, and goes on with the first that
is left.
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
    """None: it does not record anything yet."""
    first: int = 0
    """The number of the first record here, from 0."""
    rows: int = 0
    """For how many rows of the trace those before it stand."""
    until: int = 0
    """The number after that of the last record here."""
    ahead: int = 0
    """How many records there are after these."""
    lamport: int = 0
    """Where there are none: everything that comes later has a greater logical time than this."""
    names: NewNames = NewNames()
    """What the numbers in these records mean, and no others."""
    records: bytes = b""

    def meaning(self) -> Names:
        """What the numbers in these records mean."""
        return Names(self.names.addresses, self.names.packet_types)


class TraceTail:
    """Filled by whoever records. `flush` is called first whenever somebody asks, and `lamport` says the logical time."""

    def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
        self.description: PartDescription | None = None
        self.flush: Callable[[], None] = lambda: None
        self.lamport: Callable[[], int] = lambda: 0
        self._kept_bytes = kept_bytes
        self._chunks: deque[tuple[int, bytes, Names]] = deque()
        """Records, the number of rows before them, and what their numbers mean."""
        self._first = self._next = self._rows = 0
        self._bytes = 0

    def begin(self, description: PartDescription) -> None:
        self.description = description

    def append(self, names: Names, records: bytes) -> None:
        """More records. The names may become more, but what they mean stays."""
        self._chunks.append((self._rows, records, names))
        self._next += len(records) // RECORD_BYTES
        self._rows += _rows_of(records)
        self._bytes += len(records)
        while self._bytes > self._kept_bytes and len(self._chunks) > 1:
            gone = self._chunks.popleft()[1]
            self._bytes -= len(gone)
            self._first += len(gone) // RECORD_BYTES

    def excerpt(self, since: int) -> Excerpt:
        """What is here from record `since` on; a bounded part of it."""
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
    """For how many rows of the trace packed records stand."""
    return sum(array("q", records)[COUNT::RECORD_FIELDS])


def numbered_anew(pieces: Iterable[tuple[bytes, Names]]) -> tuple[NewNames, bytes]:
    """Records, with numbers for the names that they use, so that whoever asks need not know what came before."""
    used, result = Names(), []
    for piece, names in pieces:
        records, known = array("q", piece), dict[tuple[bool, int], int]()
        numbers = zip(records[KIND::RECORD_FIELDS], records[ADDRESS::RECORD_FIELDS], strict=True)
        for at, (kind, number) in enumerate(numbers):
            name = kind == PACKET, number
            if name not in known:
                known[name] = (
                    used.packet_type(names.packet_types[number]) if kind == PACKET else used.address(names.addresses[number])
                )
            records[at * RECORD_FIELDS + ADDRESS] = known[name]
        result.append(records.tobytes())
    return NewNames(tuple(used.addresses), tuple(used.packet_types)), b"".join(result)
