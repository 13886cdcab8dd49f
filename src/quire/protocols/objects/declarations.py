"""Declarations of objects: their operations, which of these conflict, and the members at which the objects live.

Two operations of one object conflict unless it is known that they do not. A pair is known when it is listed, as conflicting or
as compatible, or when both of its operations occur somewhere in the list of conflicts: an author who lists conflicts of both
has thought about both. All other pairs conflict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from quire.model.errors import BadInput
from quire.protocols.objects.errors import EmptyDestination, UnknownObject, UnknownOperation

Pair = tuple[str, str]


class ObjectType(msgspec.Struct, frozen=True):
    """A class of objects. Created by `declare`, which checks it."""

    conflicting: Mapping[str, frozenset[str]]
    """For each operation, those that conflict with it; symmetric."""
    leaves: frozenset[str] = frozenset()
    """The operations that call nobody, and so end by themselves."""
    undoable: frozenset[str] = frozenset()
    """The operations whose effect is undone when the call that they belong to fails later."""

    @property
    def operations(self) -> tuple[str, ...]:
        return tuple(self.conflicting)

    def conflict(self, one: str, other: str) -> bool:
        return other in self.conflicting[one]


def declare(
    operations: Iterable[str],
    conflicts: Iterable[Pair] = (),
    compatible: Iterable[Pair] = (),
    *,
    leaves: Iterable[str] = (),
    undoable: Iterable[str] = (),
) -> ObjectType:
    """A class of objects with these operations. Raises BadInput if a pair is listed both as conflicting and as not, or names
    an unknown operation."""
    names = tuple(dict.fromkeys(operations))
    conflicts, compatible, leaves, undoable = tuple(conflicts), tuple(compatible), tuple(leaves), tuple(undoable)
    listed = {name for pair in (*conflicts, *compatible) for name in pair} | set(leaves) | set(undoable)
    if unknown := sorted(listed - set(names)):
        raise BadInput(f"there is no operation {unknown[0]!r}; the operations are {', '.join(names) or 'none'}")
    against, together = _both_ways(conflicts), _both_ways(compatible)
    if both := sorted(against & together):
        raise BadInput(f"{both[0][0]} and {both[0][1]} are declared as conflicting and as compatible; choose one")
    considered = {name for pair in conflicts for name in pair}
    return ObjectType(
        {
            one: frozenset(
                other
                for other in names
                if (one, other) in against or ((one, other) not in together and not (one in considered and other in considered))
            )
            for one in names
        },
        frozenset(leaves),
        frozenset(undoable),
    )


def _both_ways(pairs: Iterable[Pair]) -> set[Pair]:
    return {each for one, other in pairs for each in ((one, other), (other, one))}


class Placed(msgspec.Struct, frozen=True):
    """An object, and its members: one, or several that hold replicas."""

    type: ObjectType
    members: tuple[int, ...]

    def may_call(self, op: str) -> bool:
        """Whether the operation may call others. Operations of replicas may not: each replica would make the call again."""
        return len(self.members) == 1 and op not in self.type.leaves


class Catalogue:
    """All objects of a group, the same at every member."""

    def __init__(self, members: int, objects: Mapping[str, Placed]) -> None:
        for name, placed in objects.items():
            if not name:
                raise BadInput("an object needs a name")
            if not placed.members or len(set(placed.members)) != len(placed.members):
                raise BadInput(f"{name} must be placed at one member or more, and at none twice")
            for member in placed.members:
                if not 0 <= member < members:
                    raise BadInput(f"{name} is placed at member {member}, but the members are 0 to {members - 1}")
        self.members = members
        self.objects = dict(objects)

    def find(self, name: str) -> Placed:
        placed = self.objects.get(name)
        if placed is None:
            raise UnknownObject(f"there is no object {name!r}")
        return placed

    def check_call(self, targets: tuple[str, ...], op: str) -> None:
        """Raise the reason why this operation may not be called at these objects, if there is one."""
        if not targets:
            raise EmptyDestination("a call must name at least one object")
        if len(set(targets)) != len(targets):
            raise EmptyDestination("a call must not name an object twice")
        for target in targets:
            if op not in self.find(target).type.conflicting:
                known = ", ".join(self.find(target).type.operations)
                raise UnknownOperation(f"{target} has no operation {op!r}; it has {known or 'none'}")

    def gated(self, targets: tuple[str, ...], op: str) -> tuple[str, ...]:
        """The targets at which the operation may call others: a serial tree of calls runs them one after the other."""
        return tuple(target for target in targets if self.find(target).may_call(op))

    def at(self, member: int) -> tuple[str, ...]:
        """The objects of this member."""
        return tuple(name for name, placed in self.objects.items() if member in placed.members)
