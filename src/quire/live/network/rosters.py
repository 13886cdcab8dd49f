"""Rosters: which peers a member has links with, and their terms. A mesh asks its roster wherever kinds of groups differ.

In a fixed group all members are known from the beginning, and the loss of any one matters. Where clients come and go, see `hub`
for the permanent processes, and `peer_links` for the clients.
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
    """The peers that there are links with at the moment, connected or not."""
    recipients: list[Peer]
    """The same peers in the order in which they are sent to: the one heard last comes first, because it is the most likely to
    wait for an answer."""

    def receive(self, number: int) -> Peer:
        """The peer that introduces itself with this number; raises Misfit where there is no such process."""

    def amend(self, peer: Peer, introduction: Introduction) -> Introduction:
        """This member's introduction to this peer, made from its general one."""

    def objection(self, peer: Peer, theirs: Introduction, incarnation: int) -> GroupFailed | None:
        """The error that ends the group for this member, of this incarnation, after the peer's introduction; None if it does
        not."""

    def starts_anew(self, peer: Peer) -> bool:
        """Whether the link to this peer starts afresh with each connection, whichever process is there."""

    def admit(self, number: int) -> Peer:
        """The peer with this number has an admitted connection now."""

    def connection_ended(self, number: int) -> None:
        """A connection with the peer of this number has ended, whether it had been admitted or not."""

    def is_missed(self, peer: Peer) -> bool:
        """Whether a peer whose connection has ended should still be there."""

    def reaches(self, member: int) -> bool:
        """Whether there is a link to this member."""


class FixedRoster:
    """The roster of a group whose members are known from the beginning; `topology`: the links, if not between all members."""

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
        """Nothing to do: the peer will reconnect, or its silence will be noticed."""

    def is_missed(self, peer: Peer) -> bool:
        return not peer.done

    def reaches(self, member: int) -> bool:
        return member in self.peers
