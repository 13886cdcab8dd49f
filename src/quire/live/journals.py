"""The journal of a live process: records go in, and what is durable comes back. When it has grown, a checkpoint makes it short.

A process counts its own records, and a journal counts those that begin its segments, too. So what is appended is remembered by
both numbers until it is durable.
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
"""When a journal has grown by so much, or by as much as what it began with, what came before is dropped."""

_AT_ONCE_BYTES = 1 << 20
"""A few milliseconds' worth of a snapshot."""

Found = TypeVar("Found")


class ProcessJournal(Generic[Found]):
    """Opened in a running event loop. `read`: what a process makes of what an earlier one wrote, which is `found` until it
    begins. Raises BadInput where another process has the journal, and JournalCorrupt where it is damaged."""

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
        """Whether something waits for what is unwritten."""
        self._appended: deque[tuple[int, int]] = deque()
        """(number in the journal, number of the process) of what is not durable yet."""
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
        """Make everything durable that was saved, as soon as there is room for it."""
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
        """From now on the journal begins with `head`, which says what still counts, and with the state of this moment, which
        comes when it comes, and chunk by chunk."""
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
    """The same chunks, with room for whatever else there is to do now and then: seldom, because then all of it is done."""
    size = 0
    for chunk in chunks:
        yield chunk
        size += len(chunk)
        if size >= _AT_ONCE_BYTES:
            size = 0
            await asyncio.sleep(0)


class _Feed(Iterator[bytes]):
    """Chunks that are made in the event loop, which goes on meanwhile, and taken in a thread."""

    def __init__(self, snapshot: Awaitable[Iterator[bytes]]) -> None:
        self._made: queue.SimpleQueue[bytes | OSError | None] = queue.SimpleQueue()
        self._making = asyncio.get_running_loop().create_task(self._make(snapshot))

    async def _make(self, snapshot: Awaitable[Iterator[bytes]]) -> None:
        async for chunk in little_by_little(await snapshot):
            self._made.put(chunk)
        self._made.put(None)

    def end(self) -> None:
        """Nobody waits for the rest."""
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
