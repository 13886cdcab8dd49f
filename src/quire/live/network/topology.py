"""Which members a member has links with, and which messages it relays between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from quire.protocols.contract import Protocol


class Topology(NamedTuple):
    """The neighbours of a member, and between which of them it relays messages."""

    neighbours: tuple[int, ...]
    onward: Mapping[int, tuple[int, ...]]
    """For each neighbour, those to which its messages may be relayed."""
    addressed: bool = False

    @classmethod
    def of(cls, protocol: Protocol) -> Topology:
        neighbours = protocol.neighbours()
        return cls(neighbours, {member: protocol.passes_on(member) for member in neighbours}, protocol.addressed)

    @classmethod
    def to_all(cls, me: int, members: int) -> Topology:
        others = tuple(member for member in range(members) if member != me)
        return cls(others, dict.fromkeys(others, ()))
