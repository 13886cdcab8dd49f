"""Vectors that represent significant precedence: the exact one (IV) and the dense one (D), in one form.

A message *significantly precedes* another if it was sent or received, before the other was sent, by the same instance
or by one that conflicts with it and had ended before it started; and transitively. The exact vector counts
sends by instance, so it says that and nothing else. The dense vector counts sends by object instead: it misses nothing
and has one entry for each object however long the group runs, but also orders what is unrelated. Both are maps from who
sent to how much of it is past; only the key differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from quire.protocols.objects.packets import Instance, Mark, Past

ENDLESS = 2**63 - 1


def merge(into: Past, marks: Iterable[tuple[Instance, Mark]]) -> None:
    """Merge marks into a vector: for each sender, the larger count."""
    for instance, mark in marks:
        held = into.get(instance)
        if held is None or mark > held:
            into[instance] = mark


def precedes(sender: Instance, sends: int, past: Mapping[Instance, Mark]) -> bool:
    """Whether this sender's message number `sends` is in that past."""
    mark = past.get(sender)
    return mark is not None and mark.sends >= sends


def dense_key(instance: Instance) -> Instance:
    """The entry of the dense vector for this instance's object at its member."""
    return Instance(-1, -1, instance.object, instance.member)


def delivered_floor(rows: Mapping[int, Mapping[int, int]], view: Sequence[int], source: int) -> int:
    """Everything from `source` up to this clock is delivered at all destinations."""
    return min((rows[member][source] for member in view if source in rows[member]), default=ENDLESS)


def prune(past: Past, floor: Mapping[int, int]) -> None:
    """Drop what is delivered everywhere. A vector is only asked about messages that wait somewhere or whose response is
    outstanding; what is delivered everywhere is in no queue and, because links have no gaps, never will be again."""
    for instance in [each for each, mark in past.items() if mark.clock <= floor[each.member]]:
        del past[instance]
