"""Claims prevent starvation: younger transactions wait for one that was refused and retries, so that it gets through.

A transaction is refused only where a younger one was first: it had read what this one writes, or written what this one reads.
Under a new timestamp it could be overtaken again, for ever. So before it retries it claims the keys that it has asked for, and
until it has ended a replica holds up there whatever could overtake it: younger writes of what it reads, and younger reads of
what it writes. Then only transactions can still refuse it that were there before the claim, or at keys that it had not asked
for before. Of the former there are few; and a transaction that was refused a few times claims all keys, so that of the latter
there are none.

A claim grants nothing, so it can be lost, late or forgotten without harm. Younger transactions wait for older ones, here as
everywhere in this protocol, and never the other way, so there are no deadlocks. The claim of a client that is silent for longer
than the lease is void.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from quire.protocols.transactions.timestamps import Timestamp

CLAIMS_MAX = 1 << 16
"""No replica keeps more of them: what goes beyond is not held up for."""


class Wanted(msgspec.Struct, frozen=True, array_like=True):
    """The keys that a transaction reads and writes, as far as it has got. None: all keys."""

    reads: tuple[str, ...] | None = ()
    writes: tuple[str, ...] | None = ()

    def __or__(self, other: Wanted) -> Wanted:
        return Wanted(_union(self.reads, other.reads), _union(self.writes, other.writes))

    def __bool__(self) -> bool:
        return self.reads != () or self.writes != ()

    def among(self, keys: Iterable[str]) -> list[str]:
        """Those of these keys that it reads or writes."""
        if self.reads is None or self.writes is None:
            return list(keys)
        wanted = {*self.reads, *self.writes}
        return [key for key in keys if key in wanted]


def _union(some: tuple[str, ...] | None, others: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return None if some is None or others is None else tuple(sorted({*some, *others}))


class _Held(msgspec.Struct):
    wanted: Wanted
    until_ns: int


_Table = dict[str | None, set[Timestamp]]
"""By key, or None for whatever key, who claims it."""


class Claims:
    """The valid claims at one replica."""

    def __init__(self, lease_ns: int) -> None:
        self._lease_ns = lease_ns
        self._held: dict[Timestamp, _Held] = {}
        self._readers: _Table = {}
        self._writers: _Table = {}

    def put(self, now: int, t: Timestamp, instead_of: Timestamp | None, wanted: Wanted) -> Wanted:
        """The transaction claims exactly this, and the one that it replaces claims nothing any more. Returns what either had
        claimed before."""
        before = self.drop(t)
        if wanted and len(self._held) < CLAIMS_MAX:
            self._held[t] = _Held(wanted, now + self._lease_ns)
            for table, keys in self._entries(wanted):
                for key in keys:
                    table.setdefault(key, set()).add(t)
        return before if instead_of is None else before | self.drop(instead_of)

    def drop(self, t: Timestamp) -> Wanted:
        """The transaction claims nothing any more; returns what it had claimed."""
        held = self._held.pop(t, None)
        if held is None:
            return Wanted()
        for table, keys in self._entries(held.wanted):
            for key in keys:
                table[key].discard(t)
                if not table[key]:
                    del table[key]
        return held.wanted

    def _entries(self, wanted: Wanted) -> Iterator[tuple[_Table, Iterable[str | None]]]:
        yield self._readers, (None,) if wanted.reads is None else wanted.reads
        yield self._writers, (None,) if wanted.writes is None else wanted.writes

    def heard(self, now: int, t: Timestamp) -> None:
        """Its client is alive."""
        if t in self._held:
            self._held[t].until_ns = now + self._lease_ns

    def hold_up(self, t: Timestamp, key: str, *, writes: bool) -> bool:
        """Whether a read or write of this transaction must wait for an older one."""
        table = self._readers if writes else self._writers
        return any(min(table[claimed]) < t for claimed in (key, None) if claimed in table)

    def void(self, now: int) -> Wanted:
        """Drop the claims of clients that are silent; returns what they had claimed."""
        freed = Wanted()
        for t in [t for t, held in self._held.items() if held.until_ns <= now]:
            freed |= self.drop(t)
        return freed

    def due(self) -> int | None:
        return min((held.until_ns for held in self._held.values()), default=None)
