"""With whom a member has links, and what goes through it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from quire.protocols.contract import Protocol


class Topology(NamedTuple):
    """With whom a member has links, and between which of them it passes messages on."""

    neighbours: tuple[int, ...]
    onward: Mapping[int, tuple[int, ...]]
    """Per neighbour, to whom what comes from it may go on."""
    addressed: bool = False

    @classmethod
    def of(cls, protocol: Protocol) -> Topology:
        neighbours = protocol.neighbours()
        return cls(neighbours, {member: protocol.passes_on(member) for member in neighbours}, protocol.addressed)

    @classmethod
    def to_all(cls, me: int, members: int) -> Topology:
        others = tuple(member for member in range(members) if member != me)
        return cls(others, dict.fromkeys(others, ()))
