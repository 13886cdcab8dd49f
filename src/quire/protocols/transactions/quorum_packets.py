"""The packets between clients and replicas where majorities decide (`majority`)."""

from __future__ import annotations

from quire.model.messages import Run
from quire.model.packets import Packet
from quire.protocols.transactions.cells import Value
from quire.protocols.transactions.claims import Wanted
from quire.protocols.transactions.packets import carried_value
from quire.protocols.transactions.pieces import START, Place
from quire.protocols.transactions.records import Piece
from quire.protocols.transactions.timestamps import Timestamp, Version
from quire.protocols.transactions.votes import Ballot, Decision, Incarnations, Stage


class Prewrite(Packet, frozen=True, tag="prewrite"):
    name = "WRITE"
    t: Timestamp
    number: int
    key: str
    version: Version
    value: Value

    def carried(self) -> Run | None:
        return carried_value(self.version, self.value)


class Fetch(Packet, frozen=True, tag="fetch"):
    name = "READ"
    t: Timestamp
    number: int
    key: str


class Claim(Packet, frozen=True, tag="claim"):
    """Transaction t replaces one that was refused: delay younger transactions for it, until it is withdrawn."""

    name = "CLAIM"
    t: Timestamp
    instead_of: Timestamp | None
    wanted: Wanted


class Prepare(Packet, frozen=True, tag="prepare"):
    """Promise to accept no older ballot."""

    name = "PREPARE"
    t: Timestamp
    ballot: Ballot


class Propose(Packet, frozen=True, tag="propose"):
    """Accept this decision."""

    name = "PROPOSE"
    t: Timestamp
    ballot: Ballot
    decision: Decision


class Decide(Packet, frozen=True, tag="decide"):
    """The decision."""

    name = "DECIDE"
    t: Timestamp
    decision: Decision


class Answer(Packet, frozen=True):
    """Every answer of a replica carries its incarnation, and those of the others that it knows."""

    incarnation: int
    known: Incarnations


class Granted(Answer, frozen=True, tag="granted"):
    """A write was accepted (no version), or a read saw this version."""

    name = "OK"
    t: Timestamp
    number: int
    version: Version | None
    value: Value


class Denied(Answer, frozen=True, tag="denied"):
    """A younger transaction, `hint`, was first. `latest`: the youngest that the replica has heard of, for any key."""

    name = "OBSOLETE"
    t: Timestamp
    number: int
    hint: Timestamp
    latest: int


class Ended(Answer, frozen=True, tag="ended"):
    """The transaction is over; nothing more of it is accepted."""

    name = "ENDED"
    t: Timestamp
    decision: Decision


class Promised(Answer, frozen=True, tag="promised"):
    name = "PROMISE"
    t: Timestamp
    ballot: Ballot
    accepted: tuple[Ballot, Decision] | None


class Accepted(Answer, frozen=True, tag="accepted"):
    name = "ACCEPTED"
    t: Timestamp
    ballot: Ballot


class Rejected(Answer, frozen=True, tag="rejected"):
    """A later ballot was promised."""

    name = "REJECTED"
    t: Timestamp
    ballot: Ballot


class Have(Packet, frozen=True, tag="have"):
    """These decisions are known here; which of them do you have, and which do you lack?"""

    name = "HAVE"
    decided: tuple[Timestamp, ...]


class Compared(Packet, frozen=True, tag="compared"):
    name = "COMPARED"
    has: tuple[Timestamp, ...]
    lacks: tuple[Timestamp, ...]


class Reach(Packet, frozen=True, tag="reach"):
    """How far this replica has closed and settled, so that decisions below can be dropped. `answer`: this answers a request."""

    name = "REACH"
    closed: Timestamp
    settled: Timestamp
    answer: bool


class Recover(Packet, frozen=True, tag="recover"):
    """This replica has lost its disk, and has this incarnation: send what you know, from this position on."""

    name = "RECOVER"
    incarnation: int
    stage: Stage = Stage.BLANK
    place: Place = START


class Snapshot(Answer, frozen=True, tag="snapshot"):
    """How far a replica has got, some of its durable state, and where the rest begins. `asker`: the incarnation to which it
    is sent."""

    name = "SNAPSHOT"
    asker: int
    place: Place
    piece: Piece
    following: Place | None
    stage: Stage


class Outdated(Packet, frozen=True, tag="outdated"):
    """What the addressee missed is no longer kept. Ignored if it has lost its disk since this incarnation."""

    name = "OUTDATED"
    incarnation: int


QUORUM_PACKETS: tuple[type[Packet], ...] = (
    Prewrite, Fetch, Claim, Prepare, Propose, Decide, Granted, Denied, Ended, Promised, Accepted, Rejected, Have, Compared,
    Reach, Recover, Snapshot, Outdated,
)  # fmt: skip
