"""Nothing leaves before what it depends on is durable: what comes after a record is held back until that one is safe.

A node says in which order (`Save` before whatever follows from it), and a driver knows when something is durable. What is
between the two is the same for every driver: effects leave in the order in which the node had them, each as soon as all
records before it are safe. After a crash nobody has seen anything that the disk does not know.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from quire.protocols.node import Effect, Save


class Gate:
    """Records count from 1, as they come."""

    def __init__(self) -> None:
        self.saved = 0
        """The number of the last record."""
        self._durable = 0
        self._held: deque[tuple[int, Effect]] = deque()

    def admit(self, effects: Iterable[Effect]) -> list[Effect]:
        """What of these to do now: write every record, and whatever need not wait for one."""
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
        """All records up to this one are durable: what to do now."""
        self._durable = max(self._durable, number)
        released = []
        while self._held and self._held[0][0] <= self._durable:
            released.append(self._held.popleft()[1])
        return released
