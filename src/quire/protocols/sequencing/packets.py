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
    """Found the group, if there is none of that name."""

    name: ClassVar[str] = "CREATE"
    group: str


class Lookup(Packet, frozen=True, tag=2):
    name: ClassVar[str] = "LOOKUP"
    group: str


class Located(Packet, frozen=True, tag=3):
    """Who numbers the group: also the answer to CREATE. -1: there is no such group; NO_ROOM: and there can be no more;
    LOST: there was one, of which nothing is left."""

    name: ClassVar[str] = "LOCATED"
    group: str
    sequencer: int


class Prepare(Packet, frozen=True, tag=4):
    """A client wants to join: bring together at one sequencer what must be there."""

    name: ClassVar[str] = "PREP"
    group: str
    req: int


class Ready(Packet, frozen=True, tag=5):
    name: ClassVar[str] = "READY"
    group: str
    req: int
    sequencer: int


class Move(Packet, frozen=True, tag=6):
    """An operator wants the group, and the groups that must be with it, at that sequencer."""

    name: ClassVar[str] = "MOVE"
    group: str
    sequencer: int


# Between clients and sequencers.


class DoMulticast(Packet, frozen=True, tag=11):
    """Number these messages. `acked`: the client knows the numbers of all before. `ids` are own messages to other groups
    whose numbers it does not know yet. `view`: the members as of this number keep the bodies; -1: the bodies are here."""

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
    """The number of the first of the messages from this counter on; to who is no member with whom they went to."""

    name: ClassVar[str] = "ACK"
    group: str
    counter: int
    seq: int
    members: tuple[int, ...] | None
    stable: int


class Join(Packet, frozen=True, tag=13):
    """`at`: where other clients reach this one, if anywhere."""

    name: ClassVar[str] = "JOIN"
    group: str
    client: int
    req: int
    at: str = ""


class Nak(Packet, frozen=True, tag=14):
    """Not so: PREP first. The request is dead."""

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
    """How far a client has delivered its groups, and that it wants what comes after; `ask`: how far these are stable."""

    name: ClassVar[str] = "FETCH"
    client: int
    have: dict[str, int]
    ask: tuple[str, ...] = ()


class NewLocation(Packet, frozen=True, tag=18):
    name: ClassVar[str] = "NEWLOC"
    group: str
    sequencer: int


class Stable(Packet, frozen=True, tag=19):
    """How far groups are stable; between sequencers too."""

    name: ClassVar[str] = "STABLE"
    numbers: dict[str, int]


class Poll(Packet, frozen=True, tag=20):
    """A sequencer waits for reports."""

    name: ClassVar[str] = "POLL"


class Overloaded(Packet, frozen=True, tag=21):
    """The sequencer keeps as much of the group as it may; repeat it later."""

    name: ClassVar[str] = "OVERLOAD"
    group: str
    counter: int


# Between clients, where bodies go directly.


class Bodies(Packet, frozen=True, tag=30):
    """To the members as of number `view` of the group."""

    name: ClassVar[str] = "BODY"
    group: str
    view: int
    run: Run

    def carried(self) -> Run:
        return self.run


class Kept(Packet, frozen=True, tag=31):
    """The bodies from this number of their sender on, that came with this `view`, are kept until they are delivered."""

    name: ClassVar[str] = "KEPT"
    group: str
    view: int
    first: int


# Between sequencers and the directory.


class Host(Packet, frozen=True, tag=40):
    """A new group is yours."""

    name: ClassVar[str] = "HOST"
    group: str


class Hosted(Packet, frozen=True, tag=41):
    name: ClassVar[str] = "HOSTED"
    group: str


class JoinRequest(Packet, frozen=True, tag=42):
    """May this client join here and now?"""

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
    """Hand these groups, as far as they are yours, to that sequencer."""

    name: ClassVar[str] = "OPEN"
    op: int
    groups: tuple[str, ...]
    to: int


class Transfer(Packet, frozen=True, tag=47):
    """A group on its way, as one of those that move together."""

    name: ClassVar[str] = "XFER"
    op: int
    groups: tuple[str, ...]
    state: GroupState


class Done(Packet, frozen=True, tag=48):
    """All groups of the move have come."""

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
    """Nothing comes from this client any more."""

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
    """To a client that was evicted and speaks."""

    name: ClassVar[str] = "EVICTED"
