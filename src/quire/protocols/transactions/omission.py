"""Omission of insignificant operations: in one queue, consecutive requests of one kind for one key cost one operation.

Reads of such a run share one fetch; of its writes only the last is carried out, and the others are kept in case it aborts.
Every request is still judged by itself, and answered. The rule as printed in the paper drops the later write, which leaves the
old value; and a superseded write that is dropped at once is missing when the write that superseded it aborts.

`ratio` is operations carried out by requests that came. It follows from how many requests are found together: see
`batch_ratio`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

import msgspec

from quire.protocols.transactions.packets import Write
from quire.protocols.transactions.queue import Queued


class Counts(msgspec.Struct):
    transmitted: int = 0
    """Copies of requests that came."""
    delivered: int = 0
    """Operations that were carried out for them when they were stable."""
    late: int = 0
    """Writes that were left out then, and carried out when they committed, because the next had not."""
    batches: int = 0
    """How often requests became stable."""

    def add(self, other: Counts) -> None:
        self.transmitted += other.transmitted
        self.delivered += other.delivered
        self.late += other.late
        self.batches += other.batches

    @property
    def ratio(self) -> float:
        return self.delivered / self.transmitted if self.transmitted else 1.0

    @property
    def depth(self) -> float:
        """How many requests became stable together, on average."""
        return self.transmitted / self.batches if self.batches else 0.0


def insignificant(stable: Iterable[Queued], waiting: Iterable[Queued]) -> frozenset[Queued]:
    """The stable requests that the next one for the same key, stable or still waiting, makes unnecessary."""
    last: dict[str, Queued] = {}
    omitted = set()
    unstable = False
    for queued in chain(stable, (None,), waiting):
        if queued is None:
            unstable = True
            continue
        key = queued.request.key
        before = last.get(key)
        if before is not None and isinstance(before.request, Write) is isinstance(queued.request, Write):
            omitted.add(before)
        if unstable:
            last.pop(key, None)
        else:
            last[key] = queued
    return frozenset(omitted)


def batch_ratio(requests: int, keys: int, replicas: int, write_share: float) -> float:
    """The ratio if this many independent requests are always found together, of which this share are writes to all replicas
    and the others reads of one.

    Of the copies at one replica, p are writes. A requested key has one run, plus one for each further request that differs
    in kind from the one before it.
    """
    p = write_share / (write_share + (1 - write_share) / replicas)
    asked = 1 - (1 - 1 / keys) ** requests
    return keys * (asked + (requests / keys - asked) * 2 * p * (1 - p)) / requests
