"""Journal writer for an event loop, with group commit: records appended while the disk is busy become durable together.

A thread writes and syncs. Everything that was appended in one turn of the loop is handed to it together, and whatever comes
while it works is its next batch: one write, one sync. So a single record waits for one sync, and under load one sync is shared
by as many records as come in that time. No timer and no batch size is involved.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import chain
from typing import NamedTuple

from quire.journal.errors import JournalFull
from quire.journal.journal import Journal, Point
from quire.journal.records import Entry, check_types, encoded_pieces
from quire.model.errors import CannotWrite, QuireError

WAITING_BYTES_MAX = 16 << 20


class _Records(NamedTuple):
    """Encoded records to append, how many they are, and how many bytes."""

    pieces: list[bytes]
    amount: int
    size: int


class _Beginning(NamedTuple):
    """A segment to begin, and the future that waits for it."""

    head: Sequence[Entry]
    begun: asyncio.Future[Point]


_Work = _Records | _Beginning | None
"""None is the end."""


class JournalWriter:
    """Make it in a running event loop; all its calls and callbacks belong to that. Nothing here blocks the loop.

    `on_synced(number)`: all records up to this number are durable. `on_failed(error)`: the disk is full or fails, and nothing
    more will become durable. It is called once, and whatever is asked for afterwards raises the same error.
    """

    def __init__(
        self,
        journal: Journal,
        *,
        on_synced: Callable[[int], object],
        on_failed: Callable[[QuireError], object],
        waiting_bytes_max: int = WAITING_BYTES_MAX,
    ) -> None:
        self.last = self.synced = journal.last
        """The numbers of the last record that was appended, and of the last that is durable."""
        self.batches = self.bytes = 0
        """How many syncs there were, and for how many bytes."""
        self.failure: QuireError | None = None
        self._journal = journal
        self._on_synced, self._on_failed = on_synced, on_failed
        self._waiting_bytes, self._waiting_bytes_max = 0, waiting_bytes_max
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._collected: list[bytes] = []
        """The records that were appended in this turn of the loop, encoded."""
        self._collected_count = self._collected_bytes = 0
        self._closed = False
        self._begun: asyncio.Future[Point] | None = None
        self._checkpoint: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._ended = self._loop.create_future()
        self._queue: queue.SimpleQueue[_Work] = queue.SimpleQueue()
        threading.Thread(target=self._write, name="quire-journal", daemon=True).start()

    @property
    def full(self) -> bool:
        """Whether `append` refuses. The caller checks this before it takes more input."""
        return self._waiting_bytes >= self._waiting_bytes_max

    @property
    def size(self) -> int:
        """How many bytes would be read on recovery, besides the snapshot."""
        return self._journal.size

    @property
    def in_checkpoint(self) -> bool:
        return self._checkpoint is not None and not self._checkpoint.done()

    def append(self, entries: Sequence[Entry]) -> int:
        """Take records, and return the number of the last; `on_synced` says when they are durable. Raises JournalFull."""
        self._check()
        if self.full:
            raise JournalFull(f"{self._waiting_bytes:,} bytes wait for the disk; append again when there is room")
        check_types(entries)
        if entries:
            pieces = encoded_pieces(self.last + 1, entries)  # Not in the thread, so that the disk does not wait for it.
            size = sum(map(len, pieces))
            if not self._collected:
                self._loop.call_soon(self._hand_over)
            self._collected += pieces
            self._collected_count += len(entries)
            self._collected_bytes += size
            self.last += len(entries)
            self._add_waiting(size)
        return self.last

    async def room(self) -> None:
        """Return when `append` takes something again."""
        await self._has_room.wait()
        self._check()

    def checkpoint(self, head: Sequence[Entry], chunks: Iterable[bytes]) -> asyncio.Task[None]:
        """Begin a new segment with `head`, at this point of the appended records, and write the application's state as of this
        moment. Await the returned task: it ends when everything before is deleted. Only one may run at a time.

        `head` repeats those of the earlier records that are still needed, the view first. `chunks` are read in a thread, while
        everything else goes on, so they must not change. Raises CannotWrite where there is no room for the state; then nothing
        is lost, and the journal goes on without this checkpoint.
        """
        self._check()
        check_types(head)
        assert not self.in_checkpoint, "a checkpoint is already in progress"
        self._hand_over()
        self._begun = self._loop.create_future()
        self._queue.put(_Beginning(tuple(head), self._begun))
        self.last += len(head) + 1  # The journal adds a record of its own after them.
        self._checkpoint = self._loop.create_task(self._keep(self._begun, chunks))
        return self._checkpoint

    async def close(self) -> None:
        """Make all appended records durable, and end. A failure was reported already, so it is not raised again."""
        if self._closed:
            return
        self._closed = True
        if self._checkpoint is not None:
            await asyncio.wait([self._checkpoint])
        self._hand_over()
        self._queue.put(None)
        await self._ended
        self._journal.close()

    async def _keep(self, begun: asyncio.Future[Point], chunks: Iterable[bytes]) -> None:
        point = await begun
        await asyncio.to_thread(self._journal.keep, point, chunks)

    def _check(self) -> None:
        if self.failure is not None:
            raise self.failure
        if self._closed:
            raise CannotWrite("the journal is closed, and nothing more is written to it")

    def _hand_over(self) -> None:
        if self._collected:
            self._queue.put(_Records(self._collected, self._collected_count, self._collected_bytes))
            self._collected = []
            self._collected_count = self._collected_bytes = 0

    def _add_waiting(self, count: int) -> None:
        self._waiting_bytes += count
        if self.full:
            self._has_room.clear()
        else:
            self._has_room.set()

    # On the loop, told by the thread:

    def _synced(self, number: int, count: int) -> None:
        self._add_waiting(-count)
        self.batches += 1
        self.bytes += count
        if number > self.synced:
            self.synced = number
            self._on_synced(number)

    def _begin(self, beginning: _Beginning, point: Point) -> None:
        if not beginning.begun.done():  # It may have been cancelled.
            beginning.begun.set_result(point)

    def _failed(self, failure: QuireError) -> None:
        self.failure = failure
        self._has_room.set()
        if self._begun is not None and not self._begun.done():
            self._begun.set_exception(failure)
        self._on_failed(failure)

    # In the thread:

    def _write(self) -> None:
        failure: QuireError | None = CannotWrite("the journal failed with an internal error; nothing more is durable")
        try:
            while self._write_batch(self._next_batch()):
                pass
            failure = None
        except QuireError as refused:
            failure = refused
        finally:
            if failure is not None:
                self._tell(self._failed, failure)
            self._tell(self._ended.set_result, None)

    def _next_batch(self) -> list[_Work]:
        """Everything that waits; if nothing does, wait for the next."""
        batch = [self._queue.get()]
        with suppress(queue.Empty):
            while batch[-1] is not None:
                batch.append(self._queue.get_nowait())
        return batch

    def _write_batch(self, batch: Sequence[_Work]) -> bool:
        """Make all of this durable and report it. Returns whether there is more to come."""
        records: list[_Records] = []
        for work in batch:
            if isinstance(work, _Records):
                records.append(work)
            elif work is not None:
                self._append(records)
                self._tell(self._begin, work, self._journal.begin(work.head))
                records = []
        self._append(records)
        if self._journal.synced < self._journal.last:
            self._journal.sync()
        self._tell(self._synced, self._journal.synced, sum(work.size for work in batch if isinstance(work, _Records)))
        return batch[-1] is not None

    def _append(self, records: list[_Records]) -> None:
        if records:
            pieces = chain.from_iterable([each.pieces for each in records])
            self._journal.append_encoded(pieces, sum(each.amount for each in records))

    def _tell(self, callback: Callable[..., object], *arguments: object) -> None:
        with suppress(RuntimeError):  # The loop is closed, so nobody waits for this.
            self._loop.call_soon_threadsafe(callback, *arguments)
