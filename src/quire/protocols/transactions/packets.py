"""The packets between clients and replicas where every replica of a key must agree (`all`)."""

from __future__ import annotations

from typing import Literal

from quire.model.messages import Body, Run
from quire.model.packets import Packet
from quire.protocols.transactions.cells import Value
from quire.protocols.transactions.claims import Wanted
from quire.protocols.transactions.timestamps import Timestamp, Version, write_id


def carried_value(version: Version, value: Value) -> Run | None:
    """A written value in the form in which a packet carries it for the application."""
    return None if not value else Run(*write_id(version), 1, Body(value, len(value)))


class Numbered(Packet, frozen=True):
    """A packet that a channel numbers, retransmits and orders. `ack`: how many packets of the other direction have arrived."""

    sq: int
    ack: int
    lc: int


class Write(Numbered, frozen=True, tag="write"):
    name = "WRITE"
    t: Timestamp
    number: int
    key: str
    version: Version
    value: Value

    def carried(self) -> Run | None:
        return carried_value(self.version, self.value)


class Read(Numbered, frozen=True, tag="read"):
    name = "READ"
    t: Timestamp
    number: int
    key: str


class Claim(Numbered, frozen=True, tag="claim"):
    """Transaction t replaces one that was refused: delay younger transactions for it, until it is withdrawn."""

    name = "CLAIM"
    t: Timestamp
    instead_of: Timestamp | None
    wanted: Wanted


class End(Numbered, frozen=True, tag="end"):
    name = "END"
    t: Timestamp
    commit: bool
    keys: tuple[str, ...]
    """The keys that it wrote at this replica."""


class Done(Numbered, frozen=True, tag="done"):
    """A write was accepted, or a read saw this version."""

    name = "OK"
    t: Timestamp
    number: int
    version: Version
    value: Value


class Refused(Numbered, frozen=True, tag="refused"):
    """`late`: a younger transaction was first. `lost`: a read waits for `hint`, whose client is silent. `latest`: the
    youngest transaction that the replica has heard of, for any key."""

    name = "OBSOLETE"
    t: Timestamp
    number: int
    reason: Literal["late", "lost"]
    hint: Timestamp
    latest: int


class Beat(Packet, frozen=True, tag="beat"):
    """A heartbeat: `sq` packets were sent so far, `ack` have arrived, and the next one will be later than `lc`."""

    name = "HEARTBEAT"
    sq: int
    ack: int
    lc: int


Request = Write | Read
Numbers = Write | Read | Claim | End | Done | Refused
PACKETS: tuple[type[Packet], ...] = (Write, Read, Claim, End, Done, Refused, Beat)
