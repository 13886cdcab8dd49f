"""The packets that members of a changing group send each other. Every packet carries its epoch.

Some carry packets of the ordering protocol. They are generic in its type, so that they can be decoded from bytes.
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
    """An acknowledgement: how many messages of each member the sender holds, and has delivered; with a journal, durably."""

    held: Counts
    delivered: Counts


class Data(GroupPacket, Generic[P], frozen=True, tag="data"):
    """A run of a member's messages, in a packet of the ordering protocol. It comes from that member, its origin, unless the
    protocol has other members relay it."""

    packet: P
    session: str
    number: int
    """The operation of the session that is the first message of the run."""
    causes: Counts
    """How many messages of each member the origin had delivered when it sent the run."""
    floor: int
    """How many of the origin's own messages are stable (delivered by every member), as far as it knew."""
    known: Known | None
    """What the sender of this packet, which may be a relay, holds and has delivered."""

    @property
    def run(self) -> Run:
        run = self.packet.carried()
        assert run is not None
        return run

    def without_messages(self) -> Self:
        """The same without the payload, for where the messages themselves are known."""
        return self.with_messages(b"")

    def with_messages(self, payload: bytes) -> Self:
        """The same with this payload again."""
        run = msgspec.structs.replace(self.run, body=msgspec.structs.replace(self.run.body, payload=payload))
        return msgspec.structs.replace(self, packet=self.packet.carrying(run))


class Control(GroupPacket, Generic[P], frozen=True, tag="control"):
    """A packet of the ordering protocol without messages."""

    packet: P
    known: Known | None


class Have(GroupPacket, frozen=True, tag="have"):
    known: Known


class Status(GroupPacket, frozen=True, tag="status"):
    """A heartbeat. A process that is not in normal operation does not say what it holds."""

    known: Known | None


class Prepare(GroupPacket, frozen=True, tag="prepare"):
    ballot: Ballot
    closing: bool


class Accepted(msgspec.Struct, frozen=True, array_like=True):
    """The last value that a member has voted for in this epoch."""

    ballot: Ballot
    value: Value


class Report(msgspec.Struct, frozen=True, array_like=True):
    """What a member reports of itself when it promises."""

    incarnation: int
    held: Counts
    leaving: bool
    joiners: tuple[Joiner, ...]
    closing: bool
    drained: bool
    """Whether it knows that the group is closing, and has nothing left to send."""
    cluster: str = ""
    """The cluster that it wants to be in."""


class Promise(GroupPacket, frozen=True, tag="promise"):
    ballot: Ballot
    accepted: Accepted | None
    report: Report


class Refuse(GroupPacket, frozen=True, tag="refuse"):
    """A ballot is refused: a ballot of this round, which is not lower, has been promised already."""

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


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A delivery: a run of a member, or a part of one, and which operations of which session it was."""

    epoch: int
    members: int
    """How many members the view of that epoch had."""
    origin: str
    rank: int
    run: Run
    session: str
    number: int


class Previous(msgspec.Struct, Generic[P], frozen=True, array_like=True):
    """How the previous view ended, for processes that have not learned it."""

    view: View
    value: Value
    runs: tuple[Data[P], ...]


class Welcome(GroupPacket, Generic[P], frozen=True, tag="welcome"):
    """To a joiner: the view that it is in, and what was delivered before that view since the state that the joiner had."""

    view: View
    since: Position
    entries: tuple[Entry, ...] | None
    """None: that is more than is kept, and the joiner has to begin again."""
    previous: Previous[P] | None


class AskState(GroupPacket, frozen=True, tag="ask-state"):
    """Ask for a part of a checkpoint; if it is None, of any."""

    checkpoint: Position | None
    index: int


class StatePart(GroupPacket, frozen=True, tag="state-part"):
    checkpoint: Position
    index: int
    total: int
    """How many parts there are; 0 while the checkpoint is still being made."""
    data: bytes
    table: dict[str, int]


class AskHistory(GroupPacket, frozen=True, tag="ask-history"):
    since: Position


class History(GroupPacket, frozen=True, tag="history"):
    """What was delivered after a position, and how many further messages the sender has delivered."""

    since: Position
    entries: tuple[Entry, ...]
    behind: int
    members: tuple[str, ...]
    """The members of the sender's view."""


class Gone(GroupPacket, frozen=True, tag="gone"):
    """The checkpoint or history that was asked for is no longer kept."""


class Closed(GroupPacket, frozen=True, tag="closed"):
    """The group has ended. The table has, for each session, the number of its last operation that was executed."""

    table: dict[str, int]


class AskHeld(GroupPacket, frozen=True, tag="ask-held"):
    """For a read: ask a member how many messages it holds."""

    token: int


class Held(GroupPacket, frozen=True, tag="held"):
    token: int
    held: Counts


ORDERED = (Data, Control, Have)
"""Packets of normal operation, which never begin a view change, so that the timer need not run sooner."""
REPEATED = frozenset({Status, Decide, Welcome, Stale, Join, AskState, StatePart, AskHistory, History, Gone, Closed})
"""Packets that are sent again until they have had their effect, so that dropping one costs only time."""
IN_ORDER = (Data, Control, Have, Status, AskHeld, Held)
"""Packets that are taken only from a member of the view."""
IN_VIEW = (Data, Control, Have, Prepare, Promise, Refuse, Accept, Vote, Decide, Fetch, Fill, AskHeld, Held)
"""Packets that mean something only in the view of their epoch."""
ASKING_HOW_IT_ENDED = (Status, Prepare, Fetch)
"""Packets by which a process shows that it is still in an earlier view."""
