"""Placement of keys: which replicas hold which keys."""

from __future__ import annotations

from collections.abc import Mapping
from zlib import crc32

from quire.model.errors import BadInput
from quire.protocols.transactions.errors import UnknownKey


class Placement:
    """Replicas have the addresses 0 … replicas-1. Each key is at `copies` of them (at all if None), starting with one chosen
    by the key and continuing with its neighbours. With `table`, keys are where the table says, and no others exist."""

    def __init__(self, replicas: int, copies: int | None = None, table: Mapping[str, tuple[int, ...]] | None = None) -> None:
        if copies is not None and not 1 <= copies <= replicas:
            raise BadInput(f"a key must be at 1 to {replicas} of {replicas} replicas, not at {copies}")
        if any(not held_at or not set(held_at) <= set(range(replicas)) for held_at in (table or {}).values()):
            raise BadInput(f"a table of keys must name at least one of the replicas 0 to {replicas - 1} for each")
        self.replicas = tuple(range(replicas))
        self._copies = copies or replicas
        self._table = table

    def of(self, key: str) -> tuple[int, ...]:
        """The replicas of a key. Raises UnknownKey."""
        if self._table is not None:
            if key not in self._table:
                raise UnknownKey(key)
            return tuple(sorted(self._table[key]))
        if self._copies == len(self.replicas):
            return self.replicas
        return self._window(crc32(key.encode()) % len(self.replicas))

    def groups(self) -> frozenset[tuple[int, ...]]:
        """Every set of replicas that a key may have."""
        if self._table is not None:
            return frozenset(tuple(sorted(held_at)) for held_at in self._table.values())
        return frozenset(map(self._window, self.replicas))

    def _window(self, first: int) -> tuple[int, ...]:
        return tuple(sorted((first + step) % len(self.replicas) for step in range(self._copies)))
