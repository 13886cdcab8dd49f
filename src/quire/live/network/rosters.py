"""Rosters: with whom a member has links, and on what terms. A mesh asks its roster wherever groups differ in that.

In a fixed group everybody is known from the beginning, and whoever is lost is missed. Where clients come and go, see `hub` for
the processes that are always there, and `peer_links` for the clients.
"""

from __future__ import annotations

from typing import Protocol as Interface

from quire.live.errors import GroupFailed
from quire.live.network.peers import Peer
from quire.live.network.topology import Topology
from quire.live.settings import Introduction, Misfit, Settings


class Roster(Interface):
    topology: Topology
    peers: dict[int, Peer]
    """With whom there is a link at the moment, connected or not."""
    recipients: list[Peer]
    """The same in the order in which they are sent to: whoever was heard last comes first, because if anybody waits for an
    answer, it does."""

    def receive(self, number: int) -> Peer:
        """Whoever introduces itself by this number; raises Misfit where it is not a process of this store."""

    def amend(self, peer: Peer, introduction: Introduction) -> Introduction:
        """What this member says of itself to this peer, made of what it says to everybody."""

    def objection(self, peer: Peer, theirs: Introduction, incarnation: int) -> GroupFailed | None:
        """What ends the group for this member, of this incarnation, now that the peer has introduced itself so."""

    def starts_anew(self, peer: Peer) -> bool:
        """Whether each connection to this peer starts from nothing, whichever process is there."""

    def admit(self, number: int) -> Peer:
        """This one has a connection now."""

    def connection_ended(self, number: int) -> None:
        """A connection with whoever has this number is over, whether it had been admitted or not."""

    def is_missed(self, peer: Peer) -> bool:
        """Whether a peer whose connection has ended should still be there."""

    def reaches(self, member: int) -> bool:
        """Whether there is a link to this member."""


class FixedRoster:
    """A group whose members are known from the beginning; `topology`: with whom there are links, if not with everybody."""

    def __init__(self, settings: Settings, topology: Topology | None = None) -> None:
        self.topology = topology or Topology.to_all(settings.me, len(settings.members))
        self.peers = {member: Peer(member, str(settings.members[member])) for member in self.topology.neighbours}
        self.recipients = list(self.peers.values())
        self._me = settings.me

    def receive(self, number: int) -> Peer:
        if number not in self.peers:
            raise Misfit(f"member {number} is not a neighbour of member {self._me} in this group")
        return self.peers[number]

    def amend(self, peer: Peer, introduction: Introduction) -> Introduction:  # noqa: ARG002
        return introduction

    def objection(self, peer: Peer, theirs: Introduction, incarnation: int) -> GroupFailed | None:  # noqa: ARG002
        return None

    def starts_anew(self, peer: Peer) -> bool:  # noqa: ARG002
        return False

    def admit(self, number: int) -> Peer:
        return self.peers[number]

    def connection_ended(self, number: int) -> None:
        """It will come back, or it is missed."""

    def is_missed(self, peer: Peer) -> bool:
        return not peer.done

    def reaches(self, member: int) -> bool:
        return member in self.peers
