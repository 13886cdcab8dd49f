"""A live member's events on their way to the trace, off the path of deliveries.

The driver only appends integers in memory. Now and then they are handed to a thread that writes them to a file as
they are. When all members have stopped, their files are read back piece by piece and become the trace.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from quire.trace.recorder import RECORD_FIELDS, Address, Integers, Recorder

GROUP_NAME = "all"
ROWS_MAX = 1 << 19
"""How many rows a piece may spread into, so that memory stays bounded however long the runs are."""

_CHUNK_BYTES = RECORD_FIELDS * 8 << 16


class Spool:
    """Records the events of one process in a file."""

    def __init__(self, process: int, members: int, path: Path) -> None:
        self.recorder = make_recorder(process, members)
        self._path = path
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._error: OSError | None = None
        self._thread = threading.Thread(target=self._write, name="quire-trace", daemon=True)
        self._thread.start()

    def spill(self) -> None:
        """Hand what was recorded to the writing thread. Raises OSError if an earlier piece could not be written."""
        if self._error is not None:
            raise self._error
        if self.recorder.pending_records():
            self._queue.put(self.recorder.records().tobytes())
            self.recorder.drop()

    def finish(self) -> None:
        """Wait until everything is in the file. Calling it again does nothing."""
        self.spill()
        self._queue.put(None)
        self._thread.join()
        if self._error is not None:
            raise self._error

    def discard(self) -> None:
        """Stop writing and remove the file."""
        self._queue.put(None)
        self._thread.join()
        self._path.unlink(missing_ok=True)

    def _write(self) -> None:
        try:
            with self._path.open("wb") as file:
                while (piece := self._queue.get()) is not None:
                    file.write(piece)
        except OSError as error:
            self._error = error


def make_recorder(process: int, members: int) -> Recorder:
    """A recorder of a process that belongs to one group of all members."""
    return Recorder(process, (Address(GROUP_NAME, tuple(range(members))),))


def read_spool(path: Path) -> Iterator[Integers]:
    """The records in a spool's file, in pieces that each stand for a bounded number of rows."""
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            records = np.frombuffer(chunk, np.int64).reshape(-1, RECORD_FIELDS)
            rows = np.cumsum(records[:, 3])
            start = 0
            while start < len(records):
                before = int(rows[start - 1]) if start else 0
                stop = max(start + 1, int(np.searchsorted(rows, before + ROWS_MAX, side="right")))
                yield records[start:stop]
                start = stop
