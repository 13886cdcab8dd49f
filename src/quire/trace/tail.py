"""The end of a process's log in memory, for whoever follows the process while it runs: as much as has room.

Records are handed over as they are, with what their numbers mean. Who asks too late is told so, and goes on with the first that
is left.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable

import msgspec

from quire.trace.log import Names
from quire.trace.parts.description import PartDescription
from quire.trace.parts.frames import NewNames
from quire.trace.records import COUNT, RECORD_BYTES, RECORD_FIELDS

KEPT_BYTES = 4 << 20
EXCERPT_BYTES_MAX = 1 << 20
NAMES_MAX = 1 << 16
"""Names cannot be forgotten, because later records use them: a process with more of them is followed no further."""


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
    """The names after those that the asker has."""
    records: bytes = b""


class TraceTail:
    """Filled by whoever records. `flush` is called first whenever somebody asks, and `lamport` says the logical time."""

    def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
        self.description: PartDescription | None = None
        self.flush: Callable[[], None] = lambda: None
        self.lamport: Callable[[], int] = lambda: 0
        self._kept_bytes = kept_bytes
        self._names = Names()
        self._chunks: deque[tuple[int, bytes]] = deque()
        """Records, and the number of rows before them."""
        self._first = self._next = self._rows = 0
        self._bytes = 0
        self._full = False

    def begin(self, description: PartDescription) -> None:
        self.description = description

    def append(self, new: NewNames, records: bytes) -> None:
        if self._full:
            return
        for address in new.addresses:
            self._names.address(address)
        for name in new.packet_types:
            self._names.packet_type(name)
        if len(self._names.addresses) > NAMES_MAX:
            self._full = True
            return
        self._chunks.append((self._rows, records))
        self._next += len(records) // RECORD_BYTES
        self._rows += _rows_of(records)
        self._bytes += len(records)
        while self._bytes > self._kept_bytes and len(self._chunks) > 1:
            gone = self._chunks.popleft()[1]
            self._bytes -= len(gone)
            self._first += len(gone) // RECORD_BYTES

    def excerpt(self, since: int, addresses: int = 0, packet_types: int = 0) -> Excerpt:
        """What is here from record `since` on, for somebody who knows so many names already; a bounded part of it."""
        self.flush()
        chosen: list[bytes] = []
        first, rows, at, size = self._next, self._rows, self._first, 0
        for before, records in self._chunks:
            count = len(records) // RECORD_BYTES
            if at + count > since and size < EXCERPT_BYTES_MAX:
                skipped = max(0, since - at)
                if not chosen:
                    first = at + skipped
                    rows = before + _rows_of(records[: skipped * RECORD_BYTES])
                chosen.append(records[skipped * RECORD_BYTES :])
                size += len(chosen[-1])
            at += count
        until = first + size // RECORD_BYTES
        names = NewNames(tuple(self._names.addresses[addresses:]), tuple(self._names.packet_types[packet_types:]))
        return Excerpt(
            description=self.description, first=first, rows=rows, until=until, ahead=self._next - until,
            lamport=self.lamport(), names=names, records=b"".join(chosen),
        )  # fmt: skip


def _rows_of(records: bytes) -> int:
    """For how many rows of the trace packed records stand."""
    return sum(array("q", records)[COUNT::RECORD_FIELDS])
