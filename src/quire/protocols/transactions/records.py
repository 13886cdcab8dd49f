"""The write-ahead records of a replica: each is one change of its durable state, written before others can know of it.

Applied one after the other they give the state again. So a changing state can be read piece by piece (`pieces`): the pieces,
with every record since the first of them was read, are the whole state.
"""

from __future__ import annotations

import msgspec

from quire.protocols.transactions.cells import Cell, Value
from quire.protocols.transactions.timestamps import Timestamp, Version
from quire.protocols.transactions.votes import Ballot, Decision, Incarnations


class Record(msgspec.Struct, frozen=True, array_like=True):
    """Base class of all records."""


class Emptied(Record, frozen=True, tag="emptied"):
    """The disk was lost. Records of earlier attempts to recover are void."""


class Founds(Record, frozen=True, tag="founds"):
    """The store is new: no replica has a state, and this one has never voted."""

    incarnation: int


class Began(Record, frozen=True, tag="began"):
    """The replica knows enough to take part, under this incarnation."""

    incarnation: int


class Known(Record, frozen=True, tag="known"):
    """Another replica lost its disk, and has come back, or tries to, under this incarnation."""

    replica: int
    incarnation: int


class GivenUp(Record, frozen=True, tag="gone"):
    """Another replica was away for too long: what it missed is not kept for it."""

    replica: int


class Prewrote(Record, frozen=True, tag="prewrote"):
    t: Timestamp
    key: str
    version: Version
    value: Value


class Capped(Record, frozen=True, tag="capped"):
    """No transaction with a larger number has read."""

    cap: int


class Promises(Record, frozen=True, tag="promises"):
    t: Timestamp
    ballot: Ballot


class Accepts(Record, frozen=True, tag="accepts"):
    t: Timestamp
    ballot: Ballot
    decision: Decision


class Tries(Record, frozen=True, tag="tries"):
    """The replica uses this ballot of its own."""

    t: Timestamp
    ballot: Ballot


class Decided(Record, frozen=True, tag="decided"):
    t: Timestamp
    decision: Decision


class Closed(Record, frozen=True, tag="closed"):
    closed: Timestamp


class Forgot(Record, frozen=True, tag="forgot"):
    horizon: Timestamp


class Rest(msgspec.Struct, frozen=True, array_like=True):
    """The part of the state that does not grow. It is read last, because what was read before it may be older."""

    known: Incarnations
    gone: tuple[int, ...]
    cap: int
    floor: Timestamp
    closed: Timestamp
    horizon: Timestamp


class Piece(Record, frozen=True, tag="piece"):
    """A part of a state."""

    cells: dict[str, Cell] = {}
    promised: list[tuple[Timestamp, Ballot]] = []
    accepted: list[tuple[Timestamp, Ballot, Decision]] = []
    ballots: list[tuple[Timestamp, Ballot]] = []
    decided: list[tuple[Timestamp, Decision]] = []
    rest: Rest | None = None


AboutReplicas = Emptied | Founds | Began | Known | GivenUp
AboutTransactions = Prewrote | Capped | Promises | Accepts | Tries | Decided | Closed | Forgot
AnyRecord = AboutReplicas | AboutTransactions | Piece
