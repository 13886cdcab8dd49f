"""The order layer: a replica's receipt queue, from which requests leave when they are stable.

Requests of all clients wait in one queue, ordered by Lamport time. A request is stable when no client can send an earlier one
any more, which heartbeats of idle clients ensure. All stable requests leave together, and a run of equal requests for one key
then costs one operation (`omission`). Safety does not depend on this: it trades waiting for fewer operations.

Stability is by the floor of what is known of each client. The floor is the same for all that are queued, so stability is
monotone: a request whose predecessor is not stable is not stable either.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from quire.protocols.transactions.packets import Request
from quire.protocols.transactions.timestamps import Timestamp


class Queued(NamedTuple):
    lc: int
    source: int
    request: Request


class ReceiptQueue:
    def __init__(self, me: int, clients: Sequence[int]) -> None:
        self._known = {client: 0 for client in clients if client != me}
        self._queue: list[Queued] = []

    def heard(self, source: int, lc: int) -> None:
        """Everything that the source sent up to this time has arrived."""
        if source in self._known:
            self._known[source] = max(self._known[source], lc)

    def put(self, source: int, request: Request) -> None:
        # No source sends two requests at one Lamport time, so the requests themselves are never compared.
        insort(self._queue, Queued(request.lc, source, request))

    def take(self) -> list[Queued]:
        """Everything that is stable, in order."""
        if not self._queue:
            return []
        floor = min(((lc + 1, client) for client, lc in self._known.items()), default=None)
        count = 0
        while count < len(self._queue) and (floor is None or self._queue[count][:2] < floor):
            count += 1
        stable, self._queue = self._queue[:count], self._queue[count:]
        return stable

    def drop(self, t: Timestamp) -> None:
        """Drop the requests of this transaction."""
        if self._queue:
            self._queue = [queued for queued in self._queue if queued.request.t != t]

    def __iter__(self) -> Iterator[Queued]:
        return iter(self._queue)

    def __len__(self) -> int:
        return len(self._queue)
