"""Write-ahead gate: holds back each effect of a node until all records before it are durable.

A node states the order (`Save` before whatever depends on it), and a driver knows when a record is durable. What lies between
is the same for every driver: effects are released in the order in which the node returned them, each as soon as all records
before it are durable. So after a crash nobody has seen anything that is not on the disk.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from quire.protocols.node import Effect, Save


class Gate:
    """The gate of one node. Records are numbered from 1, in the order in which they come."""

    def __init__(self) -> None:
        self.saved = 0
        """The number of the last record."""
        self._durable = 0
        self._held: deque[tuple[int, Effect]] = deque()

    def admit(self, effects: Iterable[Effect]) -> list[Effect]:
        """Take effects in; returns those to perform now: all records, and everything that need not wait for one."""
        now: list[Effect] = []
        for effect in effects:
            if isinstance(effect, Save):
                self.saved += 1
                now.append(effect)
            elif self.saved > self._durable:
                self._held.append((self.saved, effect))
            else:
                now.append(effect)
        return now

    def synced(self, number: int) -> list[Effect]:
        """All records up to this one are durable; returns the effects to perform now."""
        self._durable = max(self._durable, number)
        released = []
        while self._held and self._held[0][0] <= self._durable:
            released.append(self._held.popleft()[1])
        return released
