"""What members of a group that changes send each other. Every packet says of which epoch it is.

Some carry packets of the ordering protocol. They are generic in its type, so that they can be read from bytes.
"""

from __future__ import annotations

from typing import Generic, Self

import msgspec
from typing_extensions import TypeVar

from quire.model.messages import Run
from quire.model.packets import Packet
from quire.views.view import Ballot, Joiner, Position, Value, View

P = TypeVar("P", bound=Packet, default=Packet)
"""The packets of the ordering protocol."""

Counts = tuple[int, ...]
"""One number for each member of a view, in its order."""


class GroupPacket(msgspec.Struct, frozen=True, array_like=True, gc=False):
    epoch: int


class Known(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How many messages of each member the sender holds, and has delivered; where it has a journal, durably."""

    held: Counts
    delivered: Counts


class Data(GroupPacket, Generic[P], frozen=True, tag="data"):
    """A run of a member's messages, in the packet of the ordering protocol. It comes from that member, its origin, unless the
    protocol has others pass it on."""

    packet: P
    session: str
    number: int
    """The operation of the session that is the first message of the run."""
    causes: Counts
    """How many messages of each member the origin had delivered when it sent the run."""
    floor: int
    """How many of the origin's own messages everybody has delivered, as far as it knew."""
    known: Known | None
    """What whoever sent this packet has."""

    @property
    def run(self) -> Run:
        run = self.packet.carried()
        assert run is not None
        return run

    def without_messages(self) -> Self:
        """The same, if the messages themselves are known."""
        run = msgspec.structs.replace(self.run, body=msgspec.structs.replace(self.run.body, payload=b""))
        return msgspec.structs.replace(self, packet=self.packet.carrying(run))


class Control(GroupPacket, Generic[P], frozen=True, tag="control"):
    """A packet of the ordering protocol without messages."""

    packet: P
    known: Known | None


class Have(GroupPacket, frozen=True, tag="have"):
    known: Known


class Status(GroupPacket, frozen=True, tag="status"):
    """A sign of life. A member that is between two views says nothing of what it holds."""

    known: Known | None


class Prepare(GroupPacket, frozen=True, tag="prepare"):
    ballot: Ballot
    closing: bool


class Accepted(msgspec.Struct, frozen=True, array_like=True):
    """The last value that a member has voted for in this epoch."""

    ballot: Ballot
    value: Value


class Report(msgspec.Struct, frozen=True, array_like=True):
    """What a member says of itself when it promises."""

    incarnation: int
    held: Counts
    leaving: bool
    joiners: tuple[Joiner, ...]
    closing: bool
    drained: bool
    """Whether it knows that the group is closing, and has nothing left to send."""
    cluster: str = ""
    """In which cluster it wants to be."""


class Promise(GroupPacket, frozen=True, tag="promise"):
    ballot: Ballot
    accepted: Accepted | None
    report: Report


class Refuse(GroupPacket, frozen=True, tag="refuse"):
    """A ballot came too late: this round has been promised already."""

    round: int


class Accept(GroupPacket, Generic[P], frozen=True, tag="accept"):
    """A value to vote for, and the runs of its cut that the receiver lacks."""

    ballot: Ballot
    value: Value
    runs: tuple[Data[P], ...]


class Vote(GroupPacket, frozen=True, tag="vote"):
    ballot: Ballot


class Decide(GroupPacket, frozen=True, tag="decide"):
    value: Value


class Installed(GroupPacket, frozen=True, tag="installed"):
    pass


class Fetch(GroupPacket, frozen=True, tag="fetch"):
    """Ask for the runs of a member from message `first` to before `last`."""

    origin: int
    first: int
    last: int


class Fill(GroupPacket, Generic[P], frozen=True, tag="fill"):
    runs: tuple[Data[P], ...]


class Stale(GroupPacket, frozen=True, tag="stale"):
    """The receiver's epoch is over, and this view goes on without it."""

    view: View


class Join(GroupPacket, frozen=True, tag="join"):
    joiner: Joiner


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """What was delivered: a run of a member, or a part of one, and which operations it was."""

    epoch: int
    members: int
    """How many members the view of that epoch had."""
    origin: str
    rank: int
    run: Run
    session: str
    number: int


class Previous(msgspec.Struct, Generic[P], frozen=True, array_like=True):
    """How the view before this one ended, for those who have not heard."""

    view: View
    value: Value
    runs: tuple[Data[P], ...]


class Welcome(GroupPacket, Generic[P], frozen=True, tag="welcome"):
    """To a joiner: the view that it is in, and what was delivered before it since the state with which it asked."""

    view: View
    since: Position
    entries: tuple[Entry, ...] | None
    """None: more than is kept; the joiner has to begin again."""
    previous: Previous[P] | None


class AskState(GroupPacket, frozen=True, tag="ask-state"):
    """Ask for a part of a checkpoint; without a name, of any."""

    checkpoint: Position | None
    index: int


class StatePart(GroupPacket, frozen=True, tag="state-part"):
    checkpoint: Position
    index: int
    total: int
    """How many parts there are; 0 while the checkpoint is being made, for which it is worth waiting."""
    data: bytes
    table: dict[str, int]


class AskHistory(GroupPacket, frozen=True, tag="ask-history"):
    since: Position


class History(GroupPacket, frozen=True, tag="history"):
    """What was delivered after a position, and how many messages the sender is ahead of that."""

    since: Position
    entries: tuple[Entry, ...]
    behind: int
    members: tuple[str, ...]
    """Who is in the view of the sender."""


class Gone(GroupPacket, frozen=True, tag="gone"):
    """What was asked for is not kept any more."""


class Closed(GroupPacket, frozen=True, tag="closed"):
    """The group has ended, and these operations of each session were executed."""

    table: dict[str, int]


class AskHeld(GroupPacket, frozen=True, tag="ask-held"):
    """For a read: what do you hold?"""

    token: int


class Held(GroupPacket, frozen=True, tag="held"):
    token: int
    held: Counts


ORDERED = frozenset({Data, Control, Have})
"""Packets by which nothing but the order goes on: there is never a reason to hurry after them."""
REPEATED = frozenset({Status, Decide, Welcome, Stale, Join, AskState, StatePart, AskHistory, History, Gone, Closed})
"""Packets that are sent again until they have had their effect, so that it costs only time where one is dropped."""
IN_ORDER = (Data, Control, Have, Status, AskHeld, Held)
"""Packets that only a member of the view may send, and only while it is normal."""
IN_VIEW = (Data, Control, Have, Prepare, Promise, Refuse, Accept, Vote, Decide, Fetch, Fill, AskHeld, Held)
"""Packets that mean something only in the view of their epoch."""
ASKING_HOW_IT_ENDED = (Status, Prepare, Fetch)
"""Packets by which somebody shows that it is still in an earlier view."""
