"""Ready-made replicated objects: a dictionary, a counter and a queue.

Give them types, as in `ReplicatedDict[str, int]()`, and what is put in is checked. Values that cannot be changed in place
(numbers, texts, tuples, frozen structs) make commands cheap: nothing has to be copied for the case that one fails.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from quire.replicated.base import Replicated
from quire.replicated.calls import command, query
from quire.replicated.cancelling import taken_or_given_back
from quire.replicated.generics import TypedByArguments

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")


class ReplicatedDict(TypedByArguments, Replicated, Generic[K, V]):
    """A dictionary with a copy at every member."""

    entries: dict[K, V]

    @command
    def set(self, key: K, value: V) -> None:
        """Set the value of the key."""
        self.entries[key] = value

    @command
    def setdefault(self, key: K, value: V) -> V:
        """Set the value of the key if it has none; returns its value after that."""
        return self.entries.setdefault(key, value)

    @command
    def replace(self, key: K, expected: V | None, value: V) -> bool:
        """Set the value of the key if its current value is the expected one (None: if it has none); returns whether it did."""
        if self.entries.get(key) != expected:
            return False
        self.entries[key] = value
        return True

    @command
    def update(self, entries: dict[K, V]) -> None:
        """Set all of these in one step."""
        self.entries.update(entries)

    @command
    def pop(self, key: K) -> V:
        """Remove the key and return its value. Raises KeyError if it is missing."""
        return self.entries.pop(key)

    @command
    def discard(self, key: K) -> bool:
        """Remove the key if it is present; returns whether it was."""
        if key not in self.entries:
            return False
        del self.entries[key]
        return True

    @command
    def clear(self) -> None:
        self.entries.clear()

    @query
    def get(self, key: K) -> V | None:
        return self.entries.get(key)

    @query
    def contains(self, key: K) -> bool:
        return key in self.entries

    @query
    def size(self) -> int:
        return len(self.entries)

    @query
    def items(self) -> dict[K, V]:
        """A copy of all entries."""
        return self.entries


class ReplicatedCounter(Replicated):
    """A number that all members increase and decrease. Each call of `add` returns a different total."""

    total: int = 0

    @command
    def add(self, amount: int = 1) -> int:
        """Add this amount and return the new total. Raises OverflowError beyond 64 bits."""
        self.total += amount
        return self.total

    @command
    def reset(self, total: int = 0) -> int:
        """Set the total; returns the previous one."""
        before, self.total = self.total, total
        return before

    @query
    def get(self) -> int:
        return self.total


class ReplicatedQueue(TypedByArguments, Replicated, Generic[T]):
    """A queue into which all members put items; each item goes to one taker.

    An item leaves the queue when it is taken: if the taker's process ends at that moment, the item is lost.
    """

    waiting: dict[int, T]
    first: int = 0
    end: int = 0

    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields)
        self._asking = 0

    @command
    def put(self, item: T) -> None:
        """Add an item at the end."""
        self.waiting[self.end] = item
        self.end += 1

    @command
    def put_first(self, items: list[T]) -> None:
        """Add items at the front; the first of them is taken next."""
        for item in reversed(items):
            self.first -= 1
            self.waiting[self.first] = item

    @command
    def take(self, most: int = 1) -> list[T]:
        """Take the oldest items, at most this many; none if the queue is empty."""
        taken: list[T] = []
        while self.waiting and len(taken) < most:
            taken.append(self.waiting.pop(self.first))
            self.first += 1
        return taken

    @query
    def size(self) -> int:
        return len(self.waiting)

    async def get(self) -> T:
        """Take the oldest item, waiting until there is one. If this is cancelled, the item goes back to the front."""
        while True:
            # Other callers in this process are about to take some of these items.
            if len(self.waiting) <= self._asking:
                await self.changed()
                continue
            self._asking += 1
            try:
                taken = await taken_or_given_back(self.take(), lambda items: items and self.put_first(items))
            finally:
                self._asking -= 1
            if taken:
                return taken[0]
