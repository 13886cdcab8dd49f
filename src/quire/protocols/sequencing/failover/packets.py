"""The packets of a service with failover, which wrap those of sequencers, clients and the directory."""

from __future__ import annotations

from typing import ClassVar, Self

import msgspec

from quire.model.messages import Run
from quire.model.packets import Packet
from quire.protocols.sequencing import packets as wire
from quire.protocols.sequencing.events import Event
from quire.protocols.sequencing.failover.configurations import Configuration, Name
from quire.protocols.sequencing.senders import Numbers

Input = (
    wire.DoMulticast | wire.Join | wire.Leave | wire.LeftAck | wire.Fetch | wire.Host | wire.JoinAnswer | wire.Forgotten
    | wire.Open | wire.Transfer | wire.Outcome | wire.Stable | wire.Evict
)  # fmt: skip
"""What a unit takes."""
Inner = (
    Input | Event | wire.Ack | wire.Nak | wire.NewLocation | wire.Poll | wire.Overloaded | wire.Located | wire.Ready
    | wire.Expelled | wire.Create | wire.Lookup | wire.Prepare | wire.Move | wire.Hosted | wire.JoinRequest | wire.Forget
    | wire.Done | wire.Query | wire.Load | wire.Suspect | wire.EvictDone
)  # fmt: skip


class Letter(Packet, frozen=True, tag=70):
    """A packet from one unit, client or the register to another, wherever they run. `epoch`: the epoch of the receiving unit
    as the sender knows it; between units, the sender's own."""

    name: ClassVar[str] = "LETTER"
    to: int
    by: int
    epoch: int
    packet: Inner

    def carried(self) -> Run | None:
        return self.packet.carried()

    def carrying(self, run: Run) -> Self:
        return msgspec.structs.replace(self, packet=self.packet.carrying(run))


# Between the copies of a unit.


class Snapshot(Packet, frozen=True, tag=71):
    """One piece of the whole state of the epoch's primary after this many records, and the number of pieces."""

    name: ClassVar[str] = "SNAP"
    unit: int
    epoch: int
    index: int
    piece: int
    pieces: int
    state: bytes


class Taken(Packet, frozen=True, tag=80):
    """A backup has this many pieces of the snapshot, and asks for the next."""

    name: ClassVar[str] = "TAKEN"
    unit: int
    epoch: int
    life: int
    pieces: int


class Record(Packet, frozen=True, tag=72):
    """One input of the unit, with its number and its sender."""

    name: ClassVar[str] = "REPL"
    unit: int
    epoch: int
    index: int
    source: int
    packet: Input

    def carried(self) -> Run | None:
        return self.packet.carried()

    def carrying(self, run: Run) -> Self:
        return msgspec.structs.replace(self, packet=self.packet.carrying(run))


class Recorded(Packet, frozen=True, tag=73):
    """A backup has everything up to this record."""

    name: ClassVar[str] = "RACK"
    unit: int
    epoch: int
    life: int
    index: int


# With the register.


class Here(Packet, frozen=True, tag=74):
    """A process is running, in this incarnation, and knows the configurations of this version."""

    name: ClassVar[str] = "HERE"
    life: int
    version: int


class Where(Packet, frozen=True, tag=75):
    """A client asks for configurations that are newer than this version."""

    name: ClassVar[str] = "WHERE"
    version: int


class Missing(Packet, frozen=True, tag=76):
    """This process is suspected: nothing has been heard from it."""

    name: ClassVar[str] = "MISSING"
    who: Name


class InSync(Packet, frozen=True, tag=77):
    """All backups of the epoch have the unit's state."""

    name: ClassVar[str] = "INSYNC"
    unit: int
    epoch: int
    lost: tuple[str, ...] = ()
    """Groups that could not be rebuilt."""


class Live(Packet, frozen=True, tag=78):
    name: ClassVar[str] = "LIVE"
    unit: int
    epoch: int


class AskWitnesses(Packet, frozen=True, tag=81):
    """A unit is to be rebuilt: which clients may know something about its groups?"""

    name: ClassVar[str] = "WITNESSES?"
    unit: int
    epoch: int


class Witnesses(Packet, frozen=True, tag=82):
    """The clients that are entered in each group of the unit, all clients that were evicted, and the last move that has
    ended."""

    name: ClassVar[str] = "WITNESSES"
    unit: int
    epoch: int
    groups: dict[str, tuple[int, ...]]
    evicted: tuple[int, ...]
    settled: int


class Configured(Packet, frozen=True, tag=79):
    """Which processes run which unit. `waiting`: units that nobody can run now, because too few eligible processes are
    present."""

    name: ClassVar[str] = "CONF"
    version: int
    configurations: tuple[Configuration, ...]
    waiting: tuple[int, ...] = ()


# With clients, of a unit that is rebuilt from what they know.


class Rebuild(Packet, frozen=True, tag=83):
    """Report what you know of these groups, and ignore anything from an earlier epoch or an earlier incarnation of them from
    now on."""

    name: ClassVar[str] = "REBUILD"
    unit: int
    epoch: int
    life: int
    groups: tuple[str, ...]


class Testimony(Packet, frozen=True, tag=84):
    """All that a client knows of a group."""

    name: ClassVar[str] = "TESTIMONY"
    unit: int
    epoch: int
    group: str
    delivered: int = -1
    """How far it was delivered; -1: the client is not in it."""
    view: tuple[int, ...] = ()
    """The members as of then."""
    mentioned: dict[str, int] = msgspec.field(default_factory=dict)
    """The highest number of any group that the client has heard of in whatever context."""
    kept: tuple[Event, ...] = ()
    """What it received of it and does not know to be delivered everywhere."""
    since: int = -1
    """The number as of which the client was told who had sent to the group; -1: it was not."""
    senders: dict[int, Numbers] = msgspec.field(default_factory=dict)
    requests: int = 0
    """How many joins and leaves the client has asked for, of whatever group."""
    pending: int = -1
    """Which of these is of this group and has no answer."""
    at: str = ""
