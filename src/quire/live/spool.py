"""Writes a live process's events to its part of the trace, without delaying deliveries.

The driver only appends integers in memory. Now and then they are handed to a thread that writes them to the log, where others
can follow them. Where nothing may be missing if the process is killed, they are written at once. For observers of the running
process, the most recent events stay in memory.
"""

from __future__ import annotations

import queue
import threading

from quire.trace.log import EventLog
from quire.trace.parts.description import PartEnd
from quire.trace.parts.frames import NewNames
from quire.trace.parts.writer import PartWriter
from quire.trace.tail import TraceTail

NAMES_MAX = 1 << 14


class Spool:
    """Writes the records of a log to a part, if there is one, and to the tail, if the process can be observed. After a failed
    write, nothing more is written: `error` says why."""

    def __init__(self, log: EventLog, part: PartWriter | None, *, tail: TraceTail | None = None, at_once: bool = False) -> None:
        self.error: OSError | None = None
        self._log = log
        self._part = part
        self._tail = tail
        self._addresses = self._packet_types = 0
        """How many of these names the part has."""
        self._queue: queue.SimpleQueue[tuple[NewNames, bytes] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        if part is not None and not at_once:
            self._thread = threading.Thread(target=self._write, name="quire-trace", daemon=True)
            self._thread.start()

    def spill(self) -> None:
        """Hand what was recorded to the writing thread, for which the event loop does not wait, or write it at once."""
        if self._log.pending():
            records, new = self._log.take(), self._new_names()
            if self._tail is not None:
                self._tail.append(self._log.names, records)
                self._forget_names()
            if self.error is None and self._thread is not None:
                self._queue.put((new, records))
            elif self.error is None:
                self._append(new, records)

    def finish(self, end: PartEnd) -> None:
        """Wait until everything that was handed over is in the part, and then write how the process ended."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
        if self._part is None:
            return
        try:
            if self.error is None:
                self._part.end(end)
            self._part.close()
        except OSError as error:
            self.error = self.error or error

    def _new_names(self) -> NewNames:
        names = self._log.names
        new = NewNames(tuple(names.addresses[self._addresses :]), tuple(names.packet_types[self._packet_types :]))
        self._addresses += len(new.addresses)
        self._packet_types += len(new.packet_types)
        return new

    def _forget_names(self) -> None:
        """Drop names that were written. In a part, names are numbered to the end; without a part, only the tail needs old
        names, and it has its own."""
        if self._part is None and len(self._log.names.addresses) > NAMES_MAX and self._log.renew_names():
            self._addresses = self._packet_types = 0

    def _write(self) -> None:
        while (item := self._queue.get()) is not None:
            if self.error is None:
                self._append(*item)

    def _append(self, new: NewNames, records: bytes) -> None:
        if self._part is None:
            return
        try:
            self._part.append(new, records)
        except OSError as error:
            self.error = error
