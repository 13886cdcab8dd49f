"""Validation of packets to a replica where majorities decide: those that no correct peer can send are refused."""

from __future__ import annotations

from quire.model.packets import Packet
from quire.protocols.transactions.placement import Placement
from quire.protocols.transactions.quorum_packets import (
    Accepted,
    Claim,
    Compared,
    Decide,
    Ended,
    Fetch,
    Have,
    Outdated,
    Prepare,
    Prewrite,
    Promised,
    Propose,
    Reach,
    Recover,
    Rejected,
)
from quire.protocols.transactions.timestamps import BALLOTS_MAX, OPERATIONS_MAX, is_possible
from quire.protocols.transactions.votes import FIRST


def is_sound(packet: Packet, source: int, me: int, placement: Placement) -> bool:
    """Whether a correct peer can have sent this packet to replica `me`. A replica sends itself what it sends the others."""
    from_replica = source in placement.replicas
    from_other = from_replica and source != me
    match packet:
        case Prewrite(t=t, key=key, version=version):
            return t.pno == source and is_possible(version) and version.writer == t and me in placement.of(key)
        case Fetch(t=t, key=key, number=number):
            return t.pno == source and is_possible(t) and 0 <= number <= OPERATIONS_MAX and me in placement.of(key)
        case Claim(t=t, instead_of=before):
            return t.pno == source and is_possible(t) and (before is None or before.pno == source)
        case Propose(t=t, ballot=ballot, decision=decision):
            proposes = t.pno == source if ballot == FIRST else from_replica and ballot.replica == source
            return proposes and ballot.round < BALLOTS_MAX and decision.is_possible(t)
        case Prepare(t=t, ballot=ballot):
            return (
                from_replica and ballot.replica == source and ballot > FIRST and ballot.round < BALLOTS_MAX and is_possible(t)
            )
        case Decide(t=t, decision=decision):
            return (t.pno == source or from_replica) and decision.is_possible(t)
        case Ended(t=t, decision=decision):
            return from_other and decision.is_possible(t)
        case Promised() | Accepted() | Rejected():
            return from_replica
        case Reach(closed=closed, settled=settled):
            return from_other and is_possible(closed) and is_possible(settled)
        case Have() | Compared() | Outdated():
            return from_other
        case Recover(incarnation=incarnation, place=place):
            return from_other and incarnation > 0 and is_possible(place.t)
    return False
