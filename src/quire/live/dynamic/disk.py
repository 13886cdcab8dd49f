"""The journal of a member: its records go in, and what is durable comes back. When it has grown, a checkpoint makes it short.

A member counts its own records, and a journal counts those that begin its segments, too. So what is appended is remembered by
both numbers until it is durable.
"""

from __future__ import annotations

import asyncio
import queue
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path

from quire.journal.disk import OwnDirectory
from quire.journal.journal import Journal
from quire.journal.records import SNAPSHOT, TYPES, Entry
from quire.journal.records import Record as Written
from quire.journal.writer import JournalWriter
from quire.live.dynamic.state import little_by_little
from quire.model.errors import QuireError
from quire.views import records
from quire.views.codec import GroupCodec
from quire.views.effects import Save
from quire.views.records import Caught, Kept, Record

CHECKPOINT_BYTES = 64 << 20
"""When a journal has grown by so much, or by as much as the state has, what came before is dropped."""

_TYPES: dict[type, int] = {
    kind: 1 + TYPES.index(name)
    for kind, name in (
        (records.Started, "incarnation"),
        (records.Entered, "view"),
        (records.Kept, "view"),
        (records.Promised, "promise"),
        (records.Voted, "accept"),
        (records.Took, "held"),
        (records.Submitted, "op"),
        (records.Sent, "held"),
        (records.Delivered, "delivered"),
        (records.Learned, "delivered"),
        (records.Decided, "decision"),
        (records.Caught, "session"),
    )
}


class MemberJournal:
    """Opened in a running event loop. Raises BadInput where another process has it, and JournalCorrupt where it is damaged."""

    def __init__(self, path: Path, codec: GroupCodec) -> None:
        self._codec = codec
        self._directory = OwnDirectory(path)
        try:
            self._journal, recovered = Journal.open(self._directory)
            self.records = list(self._read(recovered.records, recovered.snapshot and recovered.snapshot.chunks()))
            """What the member had written when its process ended."""
        except BaseException:
            self._directory.close()
            raise
        self._writer: JournalWriter | None = None
        self._unwritten: list[Entry] = []
        self._last = 0
        """The number of the member's last record."""
        self._wanted = False
        """Whether something waits for what is unwritten."""
        self._appended: deque[tuple[int, int]] = deque()
        """(number in the journal, number of the member) of what is not durable yet."""
        self._kept_bytes = self._journal.size
        self._feed: _Feed | None = None

    def _read(self, found: Sequence[Written], state: Iterator[bytes] | None) -> Iterator[Record]:
        for each in found:
            if each.type == SNAPSHOT:
                continue  # The journal's own.
            record = self._codec.record(each.body)
            yield record
            if isinstance(record, Kept) and state is not None:
                yield Caught(record.position, record.table, b"".join(state))
                state = None

    def begin(self, synced: Callable[[int], None], failed: Callable[[QuireError], None]) -> None:
        """Take records from now on. `synced`: the member's records up to this number are durable."""
        self.records = []

        def durable(number: int) -> None:
            last = 0
            while self._appended and self._appended[0][0] <= number:
                last = self._appended.popleft()[1]
            self._hand_over()
            if last:
                synced(last)

        self._writer = JournalWriter(self._journal, on_synced=durable, on_failed=failed)

    def save(self, effect: Save) -> None:
        self._unwritten.append((_TYPES[type(effect.record)], self._codec.encode(effect.record)))
        self._last = effect.number

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

    def checkpoint(self, kept: Kept, snapshot: Awaitable[Iterator[bytes]]) -> asyncio.Task[None]:
        """From now on the journal begins with what still counts, and with the application's state of this moment, which comes
        when it comes, and chunk by chunk."""
        assert self._writer is not None
        self.sync()
        body = self._codec.encode(kept)
        self._feed = _Feed(snapshot)
        self._kept_bytes = len(body)
        return self._writer.checkpoint(((_TYPES[Kept], body),), self._feed)

    async def close(self) -> None:
        if self._feed is not None:
            self._feed.end()
        if self._writer is not None:
            self.sync()
            await self._writer.close()
        else:
            self._journal.close()
        self._directory.close()


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
