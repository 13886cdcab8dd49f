"""What a member asks to be done. Its driver does it in this order, before it gives the member the next input."""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

from quire.views.packets import Entry, GroupPacket
from quire.views.records import Record
from quire.views.view import Position, Value, View


class Send(msgspec.Struct, frozen=True):
    """Put the packet on the links to these processes. Without an incarnation: to whichever is there now."""

    packet: GroupPacket
    to: tuple[str, ...]
    incarnation: int | None = None


class PacketSent(NamedTuple):
    """Copies of a packet left: so many, each of so many bytes, at a logical time."""

    packet: GroupPacket
    copies: int
    size: int
    lamport: int


class Save(msgspec.Struct, frozen=True):
    """Append a record to the journal. Records count from 1."""

    number: int
    record: Record


class Sync(msgspec.Struct, frozen=True):
    """Something waits for the records up to this one: make them durable, and say so with `synced`."""

    number: int


class Deliver(msgspec.Struct, frozen=True):
    """Hand the run of an entry to the application. Its messages are the ones from `index` on that are delivered in its epoch:
    where the order is total, that is the same at every member."""

    entry: Entry
    index: int


class Install(msgspec.Struct, frozen=True):
    """A new view begins. Everything that was delivered before belongs to the one before."""

    view: View
    joined: bool
    """Whether this process joins with it, and does not come from the view before."""


class Block(msgspec.Struct, frozen=True):
    """Nothing is delivered until the next view."""

    epoch: int


class Exclude(msgspec.Struct, frozen=True):
    """The others go on without this process. It asks to join again, as another incarnation."""

    epoch: int
    value: Value | None


class Checkpoint(msgspec.Struct, frozen=True):
    """Take a snapshot of the application's state, as it is now, and hand it back with `checkpointed`, now or later."""

    position: Position


class Restore(msgspec.Struct, frozen=True):
    """The application's state is now this; what is delivered afterwards comes on top of it."""

    state: bytes
    position: Position


class Settled(msgspec.Struct, frozen=True):
    """What this process submitted as operation `number` and before is executed: it need not be sent again."""

    session: str
    number: int


class ReadReady(msgspec.Struct, frozen=True):
    """A read may be answered from the application's state as it is now."""

    token: int


class ReadFailed(msgspec.Struct, frozen=True):
    token: int


class Leave(msgspec.Struct, frozen=True):
    """This process is no member any more, as it wished."""

    epoch: int


class LeaveRefused(msgspec.Struct, frozen=True):
    """The last member cannot leave: it can only close the group."""

    epoch: int


class Close(msgspec.Struct, frozen=True):
    """The group has ended: everything that its members submitted is delivered at all of them."""

    epoch: int


class Connect(msgspec.Struct, frozen=True):
    """Make a connection to this address, and say with `connected` or `not_connected` what came of it."""

    address: str


class Write(msgspec.Struct, frozen=True, gc=False):
    """Write one frame to a connection: its head and, where it has one apart from that, its body."""

    connection: int
    parts: tuple[bytes, ...]


class Disconnect(msgspec.Struct, frozen=True):
    """Close a connection, of which nothing more is wanted, and tell the other end why."""

    connection: int
    why: str


class Report(msgspec.Struct, frozen=True):
    """Something that an operator may want to know of another process."""

    kind: ReportKind
    name: str
    why: str = ""
    others: tuple[str, ...] = ()
    """Further processes: those that a message waits for."""
    for_s: float = 0.0
    """For how long it has been so."""


ReportKind = Literal[
    "connected", "disconnected", "replaced", "suspected", "trusted", "refused", "stalled", "recovered", "gap",
    "no-quorum", "quorum",
]  # fmt: skip
"""`gap` is of a message that is held back. The last two are of this process itself: whether it hears of enough others to go
on."""

LocalEffect = (
    Save
    | Sync
    | Deliver
    | Install
    | Block
    | Exclude
    | Checkpoint
    | Restore
    | Settled
    | ReadReady
    | ReadFailed
    | Leave
    | LeaveRefused
    | Close
)
"""What concerns only the journal and the application."""

Effect = Send | LocalEffect

ProcessEffect = Connect | Write | Disconnect | Report | LocalEffect
"""What a whole process asks to be done: it puts what its member sends on connections."""
