"""A live member's events on their way to the trace, off the path of deliveries.

The driver only appends integers in memory. Now and then they are handed to a thread that writes them to a file as
they are, where others can follow them. When all members have stopped, their files become the trace.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from contextlib import suppress
from pathlib import Path

from quire.trace.logs import LogHead, head_file, write_head
from quire.trace.recorder import Address, Recorder

GROUP_NAME = "all"
SPILL_S = 0.2
"""How long an event may take to the file in which others follow it."""


class Spool:
    """Records the events of one process in a file."""

    def __init__(self, process: int, members: int, path: Path, run: str = "") -> None:
        self.recorder = make_recorder(process, members)
        self._members = members
        self._run = run
        self._path = path
        self._head: LogHead | None = None
        self._queue: queue.SimpleQueue[tuple[LogHead | None, bytes] | None] = queue.SimpleQueue()
        self._error: OSError | None = None
        self._spilling = threading.Lock()  # A loop may still spill now and then while another thread finishes.
        self._thread = threading.Thread(target=self._write, name="quire-trace", daemon=True)
        self._thread.start()

    def spill(self) -> None:
        """Hand what was recorded to the writing thread. Raises OSError if an earlier piece could not be written."""
        if self._error is not None:
            raise self._error
        with self._spilling:
            if self.recorder.pending_records():
                self._queue.put((self._new_head(), self.recorder.records().tobytes()))
                self.recorder.drop()

    def finish(self) -> None:
        """Wait until everything is in the file. Calling it again does nothing."""
        self.spill()
        self._queue.put(None)
        self._thread.join()
        if self._error is not None:
            raise self._error

    def discard(self) -> None:
        """Stop writing and remove the files."""
        self._queue.put(None)
        self._thread.join()
        self._path.unlink(missing_ok=True)
        head_file(self._path).unlink(missing_ok=True)

    def _new_head(self) -> LogHead | None:
        """What the records mean, if that is not what it was."""
        recorder, known = self.recorder, self._head
        addresses, names = recorder.addresses(), recorder.packet_names()
        if known is not None and (len(known.addresses), len(known.packet_names)) == (len(addresses), len(names)):
            return None
        self._head = LogHead(
            run=self._run,
            process=recorder.process,
            members=self._members,
            addresses=tuple(addresses),
            packet_names=tuple(names),
        )
        return self._head

    def _write(self) -> None:
        try:
            # Unbuffered, because whoever follows sees only what has left this process.
            with self._path.open("wb", buffering=0) as file:
                while (item := self._queue.get()) is not None:
                    head, piece = item
                    if head is not None:
                        write_head(self._path, head)
                    file.write(piece)
        except OSError as error:
            self._error = error


async def spill_regularly(spool: Spool) -> None:
    """Keep those who follow up to date, until it is cancelled. That a piece could not be written, `finish` says."""
    with suppress(OSError):
        while True:
            spool.spill()
            await asyncio.sleep(SPILL_S)


def make_recorder(process: int, members: int) -> Recorder:
    """A recorder of a process that belongs to one group of all members."""
    return Recorder(process, (Address(GROUP_NAME, tuple(range(members))),))
