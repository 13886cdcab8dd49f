"""The effects that a member returns. Its driver carries them out in order, before it gives the member the next input."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Literal, NamedTuple

import msgspec

from quire.views.packets import Entry, GroupPacket
from quire.views.records import Record
from quire.views.view import Position, Value, View


class Send(msgspec.Struct, frozen=True, gc=False):
    """Put the packet on the links to these processes."""

    packet: GroupPacket
    to: tuple[str, ...]
    incarnations: tuple[int, ...] = ()
    """For each of them, the incarnation that the packet is for; empty: whichever is there now."""

    def addressees(self) -> Iterable[tuple[str, int]]:
        """Each of them, with the incarnation that the packet is for, or 0 for any."""
        return zip(self.to, self.incarnations or repeat(0), strict=False)


class PacketSent(NamedTuple):
    """A packet was sent: in so many copies, each of `size` bytes, at a logical time."""

    packet: GroupPacket
    copies: int
    size: int
    lamport: int


class Save(msgspec.Struct, frozen=True):
    """Append a record to the journal. Records count from 1."""

    number: int
    record: Record


class Sync(msgspec.Struct, frozen=True):
    """Make the records up to this one durable, and report it with `synced`: something waits for that."""

    number: int


class Deliver(msgspec.Struct, frozen=True, gc=False):
    """Hand the run of an entry to the application. `index` is the position of its first message among those delivered in its
    epoch; where the order is total, it is the same at every member."""

    entry: Entry
    index: int


class Install(msgspec.Struct, frozen=True):
    """A new view begins. Everything that was delivered so far belongs to earlier ones."""

    view: View
    joined: bool
    """Whether this process joins with this view, rather than coming from the previous one."""


class Block(msgspec.Struct, frozen=True):
    """A view change has begun: nothing is delivered until the next view."""

    epoch: int


class Exclude(msgspec.Struct, frozen=True):
    """The others go on without this process. It asks to join again, as a new incarnation."""

    epoch: int
    value: Value | None


class Checkpoint(msgspec.Struct, frozen=True):
    """Take a snapshot of the application's state as it is now, and return it with `checkpointed`, now or later."""

    position: Position


class Restore(msgspec.Struct, frozen=True):
    """Replace the application's state by this one; later deliveries apply to it."""

    state: bytes
    position: Position


class Settled(msgspec.Struct, frozen=True):
    """The operations of this process up to `number` are executed, and need not be sent again."""

    session: str
    number: int


class ReadReady(msgspec.Struct, frozen=True):
    """A read may be answered from the application's state as it is now."""

    token: int


class ReadFailed(msgspec.Struct, frozen=True):
    token: int


class Leave(msgspec.Struct, frozen=True):
    """This process has left the group, as it asked to."""

    epoch: int


class LeaveRefused(msgspec.Struct, frozen=True):
    """The last member cannot leave: it can only close the group."""

    epoch: int


class Close(msgspec.Struct, frozen=True):
    """The group has ended: everything that its members submitted is delivered at all members."""

    epoch: int


class Connect(msgspec.Struct, frozen=True):
    """Connect to this address, and report the result with `connected` or `not_connected`."""

    address: str


class Write(msgspec.Struct, frozen=True, gc=False):
    """Write frames to connections: of each its head and, if separate, its body, which several frames may share."""

    frames: Sequence[tuple[int, tuple[bytes, ...]]]


class Disconnect(msgspec.Struct, frozen=True):
    """Close a connection that is no longer needed, and tell the other end why."""

    connection: int
    why: str


class Report(msgspec.Struct, frozen=True):
    """Something that an operator may want to know, usually about another process."""

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
"""`gap` is about a message that is held back. The last two are about this process itself: whether it can reach a quorum."""

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
"""Effects that concern only the journal and the application."""

Effect = Send | LocalEffect

ProcessEffect = Connect | Write | Disconnect | Report | LocalEffect
"""The effects of a whole process, which has turned the packets that its member sends into writes to connections."""
