"""Garbage collection of decisions: those below a horizon that all replicas have agreed on are no longer needed.

The outcome of a transaction must be kept as long as packets of it can still come: otherwise it would be taken for a new one. So
each replica announces two bounds. Below `closed` it takes part in no transaction that it does not know by now; the undecided
ones that it holds are never below. Below `settled` it holds nothing undecided, all replicas have closed, and they have all
decisions that it has. Where all have settled, each transaction is either decided everywhere, or will never be decided by any
replica: this is the horizon, and whatever still comes from below it is late, and has no effect.

From its first vote on, a transaction is held by some replica, whose `closed`, and so every replica's `settled`, is below it
until it is decided; and at a replica that has decided it, `settled` is below it until all others have said that they know. So
the horizon cannot overtake a transaction that is in progress, whatever is lost or comes late.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import nlargest

from quire.protocols.transactions.durable import Durable
from quire.protocols.transactions.timestamps import ZERO, Timestamp


class Horizon:
    """What the replicas have announced. `remembered`: how many of the latest decisions are always kept, because an unknown
    transaction can still begin above the oldest of them."""

    def __init__(self, me: int, replicas: Sequence[int], remembered: int) -> None:
        self._me = me
        self._remembered = remembered
        self._closed = dict.fromkeys(replicas, ZERO)
        self._settled = dict.fromkeys(replicas, ZERO)

    def is_wanted(self, state: Durable) -> bool:
        """Whether enough is kept to make it worth asking the others."""
        return len(state.decided) > 2 * self._remembered

    def heard(self, replica: int, closed: Timestamp, settled: Timestamp) -> None:
        if replica not in self._closed:
            return
        self._closed[replica] = max(closed, self._closed[replica])
        self._settled[replica] = max(settled, self._settled[replica])

    def gone(self, replica: int) -> None:
        """The replica will never come back, so it need not agree."""
        self._closed.pop(replica, None)
        self._settled.pop(replica, None)

    def back(self, replica: int) -> None:
        """The replica has started again, and must agree again."""
        self._closed.setdefault(replica, ZERO)
        self._settled.setdefault(replica, ZERO)

    def advance(self, state: Durable, unsure: Iterable[Timestamp]) -> tuple[Timestamp, Timestamp]:
        """Close and settle as far as possible, and drop what is below the horizon. Returns what to tell the others.
        `unsure`: decisions known here that some replica may lack."""
        undecided = min(state.undecided(), default=None)
        if len(state.decided) > self._remembered:
            oldest = nlargest(self._remembered, state.decided)[-1]
            state.close(oldest if undecided is None else min(oldest, undecided))
        self._closed[self._me] = state.closed
        held = [*unsure] if undecided is None else [*unsure, undecided]
        self.heard(self._me, state.closed, min([*self._closed.values(), *held]))
        state.forget(min(self._settled.values()))
        return state.closed, self._settled[self._me]
