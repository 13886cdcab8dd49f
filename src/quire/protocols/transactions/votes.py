"""Majorities of replicas that may lose their disks: ballots, decisions, and which votes count.

A replica that lost its disk comes back under a higher incarnation, after it has asked others for their state. From then on they
tell all replicas its incarnation, so that a vote that it gave before is no longer counted together with theirs, because it has
forgotten that vote.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

import msgspec

from quire.protocols.transactions.cells import Value
from quire.protocols.transactions.timestamps import Timestamp, Version, is_possible

Incarnations = dict[int, int]


class Stage(IntEnum):
    """The stages by which a replica begins to take part."""

    BLANK = 0
    """It has nothing: it lost its disk, or the store is new."""
    FOUNDING = 1
    """The store is new, and it has heard so from all others; it has never voted."""
    BEGUN = 2


class Ballot(NamedTuple):
    """Who proposes a decision, and in which attempt. The client's own ballot is the first, and the same everywhere."""

    round: int
    incarnation: int
    replica: int


FIRST = Ballot(0, 0, 0)


class Decision(msgspec.Struct, frozen=True, array_like=True):
    """How a transaction ended, and what it wrote if it committed."""

    commit: bool
    writes: dict[str, tuple[Version, Value]] = {}

    def is_possible(self, t: Timestamp) -> bool:
        """Whether this transaction can have ended like that. To be checked for everything that a peer sends."""
        return is_possible(t) and all(is_possible(version) and version.writer == t for version, _ in self.writes.values())


ABORT = Decision(False)


class Stance(NamedTuple):
    """The incarnation under which a replica answered, and those of others that it knew."""

    incarnation: int
    known: Incarnations


def merge(into: Incarnations, known: Mapping[int, int]) -> None:
    for replica, incarnation in known.items():
        into[replica] = max(into.get(replica, 0), incarnation)


def valid(votes: Mapping[int, Stance], known: Incarnations) -> frozenset[int]:
    """The replicas whose votes count: neither a member of the set nor the asker knows a later incarnation of them."""
    latest = dict(known)
    for stance in votes.values():
        merge(latest, stance.known)
    return frozenset(replica for replica, stance in votes.items() if stance.incarnation >= latest.get(replica, 0))


def majority(replicas: int) -> int:
    return replicas // 2 + 1
