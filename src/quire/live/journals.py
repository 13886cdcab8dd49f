"""The journal of a live process: takes records, reports when they are durable, and is shortened by checkpoints.

A process counts only its own records, while the journal also counts the records that begin its segments. So each appended
record is remembered by both numbers until it is durable.
"""

from __future__ import annotations

import asyncio
import queue
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from quire.journal.disk import OwnDirectory
from quire.journal.journal import Journal, Recovered
from quire.journal.records import Entry, encoded_bytes
from quire.journal.writer import JournalWriter
from quire.model.errors import QuireError

CHECKPOINT_BYTES = 64 << 20
"""A checkpoint is due when a journal has grown by so much, or by as much as it began with."""

_AT_ONCE_BYTES = 1 << 20
"""A few milliseconds' worth of a snapshot."""

Found = TypeVar("Found")


class ProcessJournal(Generic[Found]):
    """A journal, opened in a running event loop. `read` turns what an earlier process wrote into `found`, which is kept until
    `begin`. Raises BadInput where another process has the journal open, and JournalCorrupt where it is damaged."""

    def __init__(self, path: Path, read: Callable[[Recovered], Found]) -> None:
        self._directory = OwnDirectory(path)
        try:
            self._journal, recovered = Journal.open(self._directory)
            self.found = read(recovered)
        except BaseException:
            self._directory.close()
            raise
        self._writer: JournalWriter | None = None
        self._unwritten: list[Entry] = []
        self._last = 0
        """The process's number of the last record that it saved."""
        self._wanted = False
        """Whether something waits for records that are not handed to the writer yet."""
        self._appended: deque[tuple[int, int]] = deque()
        """(number in the journal, number in the process) of records that are not durable yet."""
        self._kept_bytes = self._journal.size
        self._feed: _Feed | None = None

    def begin(self, synced: Callable[[int], None], failed: Callable[[QuireError], None]) -> None:
        """Take records from now on. `synced`: the process's records up to this number are durable."""
        del self.found

        def durable(number: int) -> None:
            last = 0
            while self._appended and self._appended[0][0] <= number:
                last = self._appended.popleft()[1]
            self._hand_over()
            if last:
                synced(last)

        self._writer = JournalWriter(self._journal, on_synced=durable, on_failed=failed)

    def keep(self, number: int, entry: Entry) -> None:
        """Save a record, which has this number in the process."""
        self._unwritten.append(entry)
        self._last = number

    def sync(self) -> None:
        """Make all saved records durable, as soon as the writer has room for them."""
        self._wanted = bool(self._unwritten)
        self._hand_over()

    def _hand_over(self) -> None:
        writer = self._writer
        if not self._wanted or writer is None or writer.full or writer.failure is not None:
            return
        entries, self._unwritten, self._wanted = self._unwritten, [], False
        self._appended.append((writer.append(entries), self._last))

    @property
    def full(self) -> bool:
        """Whether so much waits for the disk that nothing more should be taken in."""
        return self._wanted

    def batches(self) -> tuple[int, int]:
        """How many batches were made durable, and how many bytes they had together."""
        return (0, 0) if self._writer is None else (self._writer.batches, self._writer.bytes)

    def is_long(self) -> bool:
        """Whether it is time for a checkpoint."""
        writer = self._writer
        if writer is None or writer.in_checkpoint or writer.failure is not None or self._wanted:
            return False
        return writer.size - self._kept_bytes > max(CHECKPOINT_BYTES, self._kept_bytes)

    def begin_anew(self, head: Sequence[Entry], snapshot: Awaitable[Iterator[bytes]]) -> asyncio.Task[None]:
        """Start the journal afresh with `head`, the records that are still needed, and with the present state, of which the
        chunks may come later, one by one."""
        assert self._writer is not None
        self.sync()
        self._feed = _Feed(snapshot)
        self._kept_bytes = encoded_bytes(head)
        return self._writer.checkpoint(head, self._feed)

    async def close(self) -> None:
        if self._feed is not None:
            self._feed.end()
        if self._writer is not None:
            self.sync()
            await self._writer.close()
        else:
            self._journal.close()
        self._directory.close()


async def little_by_little(chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    """The same chunks, yielding to the event loop now and then; not often, because each time the loop runs everything that is
    ready."""
    size = 0
    for chunk in chunks:
        yield chunk
        size += len(chunk)
        if size >= _AT_ONCE_BYTES:
            size = 0
            await asyncio.sleep(0)


class _Feed(Iterator[bytes]):
    """Chunks that are produced in the event loop, without blocking it, and consumed in a thread."""

    def __init__(self, snapshot: Awaitable[Iterator[bytes]]) -> None:
        self._made: queue.SimpleQueue[bytes | OSError | None] = queue.SimpleQueue()
        self._making = asyncio.get_running_loop().create_task(self._make(snapshot))

    async def _make(self, snapshot: Awaitable[Iterator[bytes]]) -> None:
        async for chunk in little_by_little(await snapshot):
            self._made.put(chunk)
        self._made.put(None)

    def end(self) -> None:
        """The consumer needs no more chunks."""
        if not self._making.done():
            self._making.cancel()
            self._made.put(OSError("the process ends"))

    def __next__(self) -> bytes:
        chunk = self._made.get()
        if chunk is None:
            raise StopIteration
        if isinstance(chunk, OSError):
            raise chunk
        return chunk
