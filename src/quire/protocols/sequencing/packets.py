"""The packets between clients, sequencers and the directory.

A *number* is a message's position in its group; joins and leaves take one too. A *counter* is a message's position among those
that its client sent to its group: client, group and counter together identify it, so that duplicates are recognised. A *request
number* counts the joins and leaves of a client over all groups, so that a late copy of one is never mistaken for another.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from quire.model.messages import Run
from quire.model.packets import Packet
from quire.protocols.sequencing.state import GroupState

NO_ROOM = -2
LOST = -3

# From clients to the directory, and its answers.


class Create(Packet, frozen=True, tag=1):
    """Create the group, unless one of that name exists."""

    name: ClassVar[str] = "CREATE"
    group: str


class Lookup(Packet, frozen=True, tag=2):
    name: ClassVar[str] = "LOOKUP"
    group: str


class Located(Packet, frozen=True, tag=3):
    """Which sequencer numbers the group; also the answer to CREATE. -1: there is no such group; NO_ROOM: there is none, and
    no more can be created; LOST: there was one, and nothing of it is left."""

    name: ClassVar[str] = "LOCATED"
    group: str
    sequencer: int


class Prepare(Packet, frozen=True, tag=4):
    """A client wants to join: bring together at one sequencer the groups that must share one."""

    name: ClassVar[str] = "PREP"
    group: str
    req: int


class Ready(Packet, frozen=True, tag=5):
    name: ClassVar[str] = "READY"
    group: str
    req: int
    sequencer: int


class Move(Packet, frozen=True, tag=6):
    """An operator wants the group, and the groups that must be with it, to move to that sequencer."""

    name: ClassVar[str] = "MOVE"
    group: str
    sequencer: int


# Between clients and sequencers.


class DoMulticast(Packet, frozen=True, tag=11):
    """Number these messages. `acked`: the client knows the numbers of all messages before this one. `ids`: its messages to
    other groups whose numbers it does not know yet. `view`: the members as of this number keep the bodies; -1: the bodies
    are in this packet."""

    name: ClassVar[str] = "DO-MULTICAST"
    group: str
    client: int
    counter: int
    acked: int
    run: Run
    ctx: dict[str, int] = msgspec.field(default_factory=dict)
    ids: dict[str, int] = msgspec.field(default_factory=dict)
    view: int = -1

    def carried(self) -> Run:
        return self.run


class Ack(Packet, frozen=True, tag=12):
    """The numbers of the messages from this counter on, and, for a sender that is not a member, who must deliver them."""

    name: ClassVar[str] = "ACK"
    group: str
    counter: int
    seq: int
    members: tuple[int, ...] | None
    stable: int


class Join(Packet, frozen=True, tag=13):
    """Join a group. `at`: where other clients can reach this one, if anywhere."""

    name: ClassVar[str] = "JOIN"
    group: str
    client: int
    req: int
    at: str = ""


class Nak(Packet, frozen=True, tag=14):
    """The request is refused, and dead: send PREP first."""

    name: ClassVar[str] = "NAK"
    group: str
    req: int


class Leave(Packet, frozen=True, tag=15):
    name: ClassVar[str] = "LEAVE"
    group: str
    client: int
    req: int


class LeftAck(Packet, frozen=True, tag=16):
    """The client has delivered everything up to its leave."""

    name: ClassVar[str] = "LEFTACK"
    group: str
    client: int
    seq: int


class Fetch(Packet, frozen=True, tag=17):
    """How far a client has delivered its groups, and a request for what comes after. `ask`: it also wants to know how far
    these groups are stable."""

    name: ClassVar[str] = "FETCH"
    client: int
    have: dict[str, int]
    ask: tuple[str, ...] = ()


class NewLocation(Packet, frozen=True, tag=18):
    name: ClassVar[str] = "NEWLOC"
    group: str
    sequencer: int


class Stable(Packet, frozen=True, tag=19):
    """How far groups are stable; also sent between sequencers."""

    name: ClassVar[str] = "STABLE"
    numbers: dict[str, int]


class Poll(Packet, frozen=True, tag=20):
    """A sequencer asks a client for its report."""

    name: ClassVar[str] = "POLL"


class Overloaded(Packet, frozen=True, tag=21):
    """The sequencer keeps as much of the group as it may: send this again later."""

    name: ClassVar[str] = "OVERLOAD"
    group: str
    counter: int


# Between clients, where bodies go directly.


class Bodies(Packet, frozen=True, tag=30):
    """Message bodies, for the members as of number `view` of the group."""

    name: ClassVar[str] = "BODY"
    group: str
    view: int
    run: Run

    def carried(self) -> Run:
        return self.run


class Kept(Packet, frozen=True, tag=31):
    """A member keeps the bodies from this number of their sender on, which came with this `view`, until they are delivered."""

    name: ClassVar[str] = "KEPT"
    group: str
    view: int
    first: int


# Between sequencers and the directory.


class Host(Packet, frozen=True, tag=40):
    """Take over a new group."""

    name: ClassVar[str] = "HOST"
    group: str


class Hosted(Packet, frozen=True, tag=41):
    name: ClassVar[str] = "HOSTED"
    group: str


class JoinRequest(Packet, frozen=True, tag=42):
    """May this client join here, at once?"""

    name: ClassVar[str] = "JREQ"
    group: str
    client: int
    req: int


class JoinAnswer(Packet, frozen=True, tag=43):
    name: ClassVar[str] = "GRANT"
    group: str
    client: int
    req: int
    granted: bool


class Forget(Packet, frozen=True, tag=44):
    """The client has left for good; the requests before this one are dead."""

    name: ClassVar[str] = "DIRDEL"
    group: str
    client: int
    req: int


class Forgotten(Packet, frozen=True, tag=45):
    name: ClassVar[str] = "DIRACK"
    group: str
    client: int
    req: int


class Open(Packet, frozen=True, tag=46):
    """Hand over to that sequencer those of these groups that you have."""

    name: ClassVar[str] = "OPEN"
    op: int
    groups: tuple[str, ...]
    to: int


class Transfer(Packet, frozen=True, tag=47):
    """The state of one of the groups that move together."""

    name: ClassVar[str] = "XFER"
    op: int
    groups: tuple[str, ...]
    state: GroupState


class Done(Packet, frozen=True, tag=48):
    """All groups of the move have arrived."""

    name: ClassVar[str] = "DONE"
    op: int


class Query(Packet, frozen=True, tag=49):
    name: ClassVar[str] = "OPQ"
    op: int


class Outcome(Packet, frozen=True, tag=50):
    name: ClassVar[str] = "OUT"
    op: int
    committed: bool


class Load(Packet, frozen=True, tag=51):
    """How many messages of each group were numbered since the last report."""

    name: ClassVar[str] = "LOAD"
    numbered: dict[str, int]


# Clients that are gone.


class Suspect(Packet, frozen=True, tag=60):
    """Nothing has been heard from this client for too long."""

    name: ClassVar[str] = "SUSPECT"
    client: int


class Evict(Packet, frozen=True, tag=61):
    """These clients are members of nothing from now on, whether they are alive or not."""

    name: ClassVar[str] = "EVSET"
    clients: tuple[int, ...]
    entered: tuple[str, ...] = ()
    """Groups in which the directory has any of them."""


class EvictDone(Packet, frozen=True, tag=62):
    name: ClassVar[str] = "EVACK"
    clients: tuple[int, ...]


class Expelled(Packet, frozen=True, tag=63):
    """Tells a client that still sends that it was evicted."""

    name: ClassVar[str] = "EVICTED"
