"""The named guarantees of a delivery order, and which implies which.

A protocol promises a set of these; a run's description carries the promise; the audit checks it.
Every definition speaks of what members *deliver*, and holds for any mixture of groups:

integrity   a delivered message was sent, was addressed to the member, and is delivered there once
agreement   what one correct member sends or delivers, every correct destination delivers
fifo        a member delivers nothing of a sender before what that sender addressed to it earlier
causal      a member delivers nothing before a message addressed to it that happened before it
total       any two members deliver the messages that both deliver in the same relative order
acyclic     all members' delivery orders together have no cycle, even through a third group
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Guarantee(StrEnum):
    INTEGRITY = "integrity"
    AGREEMENT = "agreement"
    FIFO = "fifo"
    CAUSAL = "causal"
    TOTAL = "total"
    ACYCLIC = "acyclic"


_IMPLIES: dict[Guarantee, frozenset[Guarantee]] = {
    Guarantee.CAUSAL: frozenset({Guarantee.FIFO}),
    Guarantee.ACYCLIC: frozenset({Guarantee.TOTAL}),
}

RELIABLE = frozenset({Guarantee.INTEGRITY, Guarantee.AGREEMENT})


def implied_by(guarantees: Iterable[Guarantee]) -> frozenset[Guarantee]:
    """The given guarantees and everything that follows from them."""
    known: set[Guarantee] = set()
    todo = list(guarantees)
    while todo:
        guarantee = todo.pop()
        if guarantee not in known:
            known.add(guarantee)
            todo.extend(_IMPLIES.get(guarantee, ()))
    return frozenset(known)


def in_order(guarantees: Iterable[Guarantee]) -> tuple[Guarantee, ...]:
    """The guarantees in the order in which this module lists them, for people and for stable files."""
    chosen = frozenset(guarantees)
    return tuple(guarantee for guarantee in Guarantee if guarantee in chosen)
