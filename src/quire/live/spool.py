"""A live member's events on their way to the trace, off the path of deliveries.

The driver only appends integers in memory. Now and then they are handed to a thread that writes them to a file as
they are; when the member has stopped, the file is read back piece by piece, spread into rows and written as Parquet.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from quire.trace.recorder import Group, Recorder

_CHUNK_BYTES = 4 << 20


class Spool:
    """Records the events of one process in a file beside the run that it will belong to."""

    def __init__(self, process: int, members: int, path: Path) -> None:
        self.recorder = Recorder(process, (Group("all", range(members)),))
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
        """Wait until everything is in the file."""
        self.spill()
        self._queue.put(None)
        self._thread.join()
        if self._error is not None:
            raise self._error

    def tables(self, run: str) -> Iterator[pa.Table]:
        """The rows of the trace, a piece at a time; the file is gone afterwards."""
        with self._path.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                self.recorder.write(chunk)
                yield self.recorder.take(run)
        self._path.unlink()

    def _write(self) -> None:
        try:
            with self._path.open("wb") as file:
                while (piece := self._queue.get()) is not None:
                    file.write(piece)
        except OSError as error:
            self._error = error
