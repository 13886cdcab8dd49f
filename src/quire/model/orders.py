"""The named guarantees of a delivery order, and which implies which.

A protocol promises a set of these; a run's description carries the promise; the audit checks it.
Every definition speaks of what members *deliver*, and holds for any mixture of groups:

integrity   a delivered message was sent, was addressed to the member, and is delivered there once
agreement   what one correct member sends or delivers, every correct destination delivers
fifo        a member delivers nothing of a sender before what that sender addressed to it earlier
causal      a member delivers nothing before a message addressed to it that happened before it
total       any two members deliver the messages that both deliver in the same relative order
acyclic     all members' delivery orders together have no cycle, even through a third group

Those are orders of any messages. The others speak of what only some systems have:

hybrid        total within each group, and causal across all of them
memberships   what a member delivers of a group is a slice of the group's one log, from its join to its leave
significant   conflicting requests, and answers to one caller, in the order of what significantly precedes what; and
              conflicting requests that have several destinations in common in the same order at all of them
serialisable  one order of the committed transactions, one after the other on one copy, explains what each of them read

and weaker than the last, for systems that do not promise so much:

read-committed        no transaction read what was not committed, or an older version after it had seen a newer one
read-atomic           a transaction that saw one write of another saw no older version of anything else that it wrote
transactional-causal  a transaction saw no older version than any that happened before what it saw

The last three speak of groups whose members agree on numbered views:

virtual-synchrony  members that go from one view to the next together have delivered the same messages in it, and each
                   message is delivered in the view in which it was sent
uniform            what anybody delivered in a view, crashed or excluded or not, everybody who goes on from it delivered
once               no operation of a session is carried out twice, however often it was sent

Where members come and go, total order is asked only of two members that were in both messages' groups at once. In views,
agreement is asked of who goes on from the view of a message, and FIFO and causal order of messages of one view.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Guarantee(StrEnum):
    """What a protocol may promise and an audit can check."""

    INTEGRITY = "integrity"
    AGREEMENT = "agreement"
    FIFO = "fifo"
    CAUSAL = "causal"
    TOTAL = "total"
    ACYCLIC = "acyclic"
    HYBRID = "hybrid"
    MEMBERSHIPS = "memberships"
    SIGNIFICANT = "significant"
    SERIALISABLE = "serialisable"
    READ_COMMITTED = "read-committed"
    READ_ATOMIC = "read-atomic"
    TRANSACTIONAL_CAUSAL = "transactional-causal"
    VIRTUAL_SYNCHRONY = "virtual-synchrony"
    UNIFORM = "uniform"
    ONCE = "once"


_IMPLIES: dict[Guarantee, frozenset[Guarantee]] = {
    Guarantee.CAUSAL: frozenset({Guarantee.FIFO}),
    Guarantee.ACYCLIC: frozenset({Guarantee.TOTAL}),
    Guarantee.HYBRID: frozenset({Guarantee.CAUSAL}),
    Guarantee.READ_ATOMIC: frozenset({Guarantee.READ_COMMITTED}),
    Guarantee.TRANSACTIONAL_CAUSAL: frozenset({Guarantee.READ_ATOMIC}),
}

RELIABLE = frozenset({Guarantee.INTEGRITY, Guarantee.AGREEMENT})

OF_ANY_MESSAGES = (
    Guarantee.INTEGRITY, Guarantee.AGREEMENT, Guarantee.FIFO, Guarantee.CAUSAL, Guarantee.TOTAL, Guarantee.ACYCLIC,
)  # fmt: skip
"""What can be asked of every run, whatever its messages are for."""


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
