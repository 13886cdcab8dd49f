"""Reads and writes that wait at a replica, key by key, for an older transaction to end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from quire.protocols.transactions.quorum_packets import Fetch, Prewrite


class Waiting(NamedTuple):
    source: int
    request: Fetch | Prewrite


class Queues:
    """The waiting requests of each key. Iteration yields the keys that have any."""

    def __init__(self) -> None:
        self._at: dict[str, list[Waiting]] = {}

    def put(self, waiting: Waiting) -> None:
        """The request waits from now on. A retransmitted one waits only once."""
        queue = self._at.setdefault(waiting.request.key, [])
        if waiting not in queue:
            queue.append(waiting)

    def take(self, key: str) -> list[Waiting]:
        """Remove the requests that wait for this key, to be judged again."""
        return self._at.pop(key, [])

    def __iter__(self) -> Iterator[str]:
        return iter(self._at)

    def __bool__(self) -> bool:
        return bool(self._at)

    def lengths(self) -> dict[str, int]:
        return {key: len(queue) for key, queue in self._at.items()}
