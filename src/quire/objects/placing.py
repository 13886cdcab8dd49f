"""Placement of objects: which objects a group has, and at which members, as declared by the application."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from quire.objects.declare import Object
from quire.protocols.objects.declarations import Catalogue, Placed


class Placement(msgspec.Struct, frozen=True):
    """An object of this class at these members; each of them calls `make`."""

    kind: type[Object]
    members: tuple[int, ...]
    make: Callable[[], Object]


def place(kind: type[Object], *members: int, make: Callable[[], Object] | None = None) -> Placement:
    """Place an object of this class at one member, or replicas of it at several. It is created without arguments or by
    `make`, which must create equal objects everywhere."""
    return Placement(kind, members, kind if make is None else make)


def catalogue_of(members: int, objects: Mapping[str, Placement]) -> Catalogue:
    return Catalogue(members, {name: Placed(each.kind.type, each.members) for name, each in objects.items()})


def objects_at(member: int, objects: Mapping[str, Placement]) -> dict[str, Object]:
    """This member's own copies of its objects."""
    return {name: each.make() for name, each in objects.items() if member in each.members}


def described(objects: Mapping[str, Placement]) -> dict[str, Sequence[object]]:
    """The objects, in a form that members compare before they start."""
    return {
        name: [each.members, {op: sorted(against) for op, against in each.kind.type.conflicting.items()}]
        for name, each in sorted(objects.items())
    }
