"""The request queue of one object: which requests may start, must wait, or have to give way (wait-die).

Requests that conflict start in the order of their stamps; the others as they come. That alone could deadlock, because instances
hold their object while they call others. So a request gives way (wait-die) rather than wait for something older. Ages are those
of the roots, kept over retries, so that every tree of calls becomes the oldest at last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import msgspec

from quire.protocols.objects.declarations import Placed
from quire.protocols.objects.packets import Instance, Request, Stamp

Key: TypeAlias = tuple[Stamp, Stamp]
"""The age of the root, then the stamp: who has the smaller one is never made to give way to the other."""


class Copy(msgspec.Struct):
    """A request that waits at one of its targets."""

    request: Request
    object: str
    stamp: Stamp
    key: Key
    held: bool
    """It waits for its release."""
    came: int
    blocked: bool = False
    own: bool = False
    """What it gives way to is of its own tree."""

    @property
    def op(self) -> str:
        return self.request.op


class Running(msgspec.Struct, frozen=True):
    """What the queue needs to know of an active instance at its object."""

    instance: Instance
    op: str
    key: Key
    may_call: bool


class ObjectQueue:
    """The requests that wait at one object, ordered by stamp, and its active instances."""

    def __init__(self, placed: Placed) -> None:
        self.placed = placed
        self.copies: list[Copy] = []
        self.active: dict[Instance, Running] = {}
        self._conflicting = placed.type.conflicting

    def add(self, copy: Copy) -> None:
        index = len(self.copies)
        while index and self.copies[index - 1].stamp > copy.stamp:
            index -= 1
        self.copies.insert(index, copy)

    def free(self, orphan: Callable[[Copy], bool]) -> None:
        """Nobody is left to release these requests."""
        for copy in self.copies:
            copy.held = copy.held and not orphan(copy)

    def release(self, request: tuple[int, int]) -> Copy | None:
        for copy in self.copies:
            if copy.request.id == request:
                copy.held = False
                return copy
        return None

    def is_free(self, op: str) -> bool:
        """Whether nothing conflicts with the operation, so that requests still to come do not matter."""
        return not self._conflicting[op]

    def in_the_way(self, copy: Copy) -> Iterator[Running]:
        """The active instances that conflict with the copy, except its own callers."""
        against, chain = self._conflicting[copy.op], copy.request.chain
        return (each for each in self.active.values() if each.op in against and each.instance not in chain)

    def before(self, copy: Copy) -> Iterator[Copy]:
        """The waiting requests that must run before the copy."""
        against = self._conflicting[copy.op]
        for other in self.copies:
            if other.stamp >= copy.stamp:
                return
            if other.op in against:
                yield other

    def is_ready(self, copy: Copy) -> bool:
        return not copy.held and not any(self.in_the_way(copy)) and not any(self.before(copy))

    def must_die(self, copy: Copy) -> bool:
        """Whether it would wait for something older that may itself be waiting. An operation that calls nobody ends by
        itself, so waiting for it is safe; and `blocked` is transitive, because a queue passes waiting on."""
        older = [each.key for each in self.in_the_way(copy) if each.may_call and each.key < copy.key]
        older += [each.key for each in self.before(copy) if each.blocked and each.key < copy.key]
        copy.own = copy.request.pace == "serial" and any(age == copy.key[0] for age, _ in older)
        return bool(older)

    def is_blocked(self, copy: Copy) -> bool:
        return (
            copy.held or any(each.may_call for each in self.in_the_way(copy)) or any(each.blocked for each in self.before(copy))
        )

    def next_decision(self, is_stable: Callable[[Request], bool]) -> tuple[Copy, bool] | None:
        """The first waiting copy that may start (True) or must give way (False), removed from the queue; None if all must
        wait.

        It need not be the head: what waits for an instance must not prevent that instance's own callees from running.
        """
        for index, copy in enumerate(self.copies):
            copy.blocked = self.is_blocked(copy)
            if not (self.is_free(copy.op) or is_stable(copy.request)):
                continue
            starts = self.is_ready(copy)
            if starts or self.must_die(copy):
                del self.copies[index]
                return copy, starts
        return None
