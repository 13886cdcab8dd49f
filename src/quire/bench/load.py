"""The load that every contender sends, and the check that it arrived.

Each message begins with a header: whether it is its sender's last, its sender, and a number. The digest covers the headers of
everything delivered, in order, so it does not depend on batching, and it differs if a message is lost, repeated or out of
place. Digesting whole messages would cost more than sending them.
"""

from __future__ import annotations

import hashlib
import struct
import time
from collections.abc import Iterator, Sequence

import numpy as np

from quire.bench.assignment import Assignment
from quire.model.errors import BadInput

HEAD_BYTES = 8
SIZE_MIN = HEAD_BYTES
_HEAD = struct.Struct("!BxHI")
_LAST = 1

BATCH = 1024
"""How many distinct messages a sender has, and offers at a time."""


class Supply:
    """What one member sends."""

    def __init__(self, assignment: Assignment, batch: int = BATCH) -> None:
        if assignment.size < SIZE_MIN:
            raise BadInput(f"a message of a benchmark needs at least {SIZE_MIN} bytes, not {assignment.size}")
        filler = bytes(index % 251 for index in range(assignment.size - HEAD_BYTES))
        self.sent = 0
        self._pool = [_HEAD.pack(0, assignment.me, number) + filler for number in range(batch)]
        self._last = _HEAD.pack(_LAST, assignment.me, 0) + filler
        self._messages = assignment.messages
        self._seconds = assignment.seconds

    def batches(self) -> Iterator[Sequence[bytes]]:
        """Batches until it is enough. The very last message says so."""
        until = time.perf_counter() + self._seconds
        pool = self._pool
        while True:
            left = len(pool) if self._messages is None else self._messages - self.sent
            if left <= len(pool) and (self._messages is not None or time.perf_counter() >= until):
                self.sent += left
                yield [*pool[: left - 1], self._last]
                return
            self.sent += len(pool)
            yield pool

    def packed_batches(self) -> Iterator[bytes]:
        """The same with the messages of a batch end to end, packed once for all, as if they had come so from elsewhere."""
        packed = b"".join(self._pool)
        for batch in self.batches():
            yield packed if batch is self._pool else b"".join(batch)


class Tally:
    """What one member has delivered, of all senders or of one."""

    def __init__(self, size: int) -> None:
        self.delivered = 0
        self.senders_done = 0
        self._size = size
        self._hash = hashlib.blake2b(digest_size=16)

    def take_together(self, payload: bytes | memoryview) -> None:
        """Messages end to end."""
        self._take(np.frombuffer(payload, np.uint8).reshape(-1, self._size)[:, :HEAD_BYTES].tobytes())

    def take_each(self, payloads: Sequence[bytes]) -> None:
        self._take(b"".join([payload[:HEAD_BYTES] for payload in payloads]))

    def _take(self, heads: bytes) -> None:
        self.delivered += len(heads) // HEAD_BYTES
        self.senders_done += heads[::HEAD_BYTES].count(_LAST)
        self._hash.update(heads)

    def digest(self) -> str:
        return self._hash.hexdigest()
