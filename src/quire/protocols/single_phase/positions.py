"""Positions in the total order, and the frontier below which nothing new can come."""

from __future__ import annotations

from collections.abc import Sequence


def rank(member: int, time: int, members: int, rotating: bool) -> int:
    """A member's rank among operations of equal time."""
    return (member + time) % members if rotating else member


def need(other: int, time: int, member: int, members: int, rotating: bool) -> int:
    """The clock of `other` that rules out that it sends something which belongs before the operation (time, member)."""
    if not rotating:
        return time if other < member else time - 1
    return time if rank(other, time, members, rotating) < rank(member, time, members, rotating) else time - 1


def frontier(clocks: Sequence[int], rotating: bool) -> tuple[int, int]:
    """The earliest position that an operation still to come can have. Whatever lies before it is stable."""
    lowest = min(clocks)
    if not rotating:
        return lowest + 1, clocks.index(lowest)
    members, time = len(clocks), lowest + 1
    return time, min((member + time) % members for member in range(members) if clocks[member] == lowest)
