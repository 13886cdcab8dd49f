"""Links of a service with permanent members and clients that come and go, called visitors.

The members of a hub have addresses and connect to each other, as in any group. Visitors have numbers after theirs and connect
to all members, and to each other only where they ask for it (`peer_links`). A visitor that is silent for longer than the
timeout, or sends what no correct one sends, is dropped without affecting anybody else; one that announces that it closes is
forgotten when it has gone. Nothing is kept for a visitor before it is authenticated, and the number of visitors is limited.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Protocol as Interface

import msgspec

from quire.live import clock
from quire.live.errors import GroupFailed
from quire.live.network.peers import Peer
from quire.live.network.rosters import FixedRoster, Roster
from quire.live.network.topology import Topology
from quire.live.settings import Introduction, Misfit, Settings

VISITORS = 1 << 30
"""How many numbers there are for visitors: enough that two that are drawn at random differ."""
VISITORS_AT_ONCE_MAX = 1024


class OpenRoster(Roster, Interface):
    """A roster that includes visitors."""

    def is_visitor(self, number: int) -> bool: ...

    def dismiss(self, visitor: int, why: str = "") -> None:
        """Drop a visitor; `why`: the reason, if it did not leave by itself."""

    def unheard(self) -> bool:
        """Whether anything sent to the relevant peers is still unacknowledged."""


class Visitors:
    """The peers that come and go."""

    def __init__(self, settings: Settings, members: FixedRoster) -> None:
        self._first = len(settings.members)
        self._peers = members.peers
        self._recipients = members.recipients

    def includes(self, number: int) -> bool:
        return number >= self._first

    def receive(self, number: int) -> Peer:
        """The visitor with this number, which may be new; raises Misfit where there is no room for it."""
        peer = self._peers.get(number)
        if peer is None:
            if sum(map(self.includes, self._peers)) >= VISITORS_AT_ONCE_MAX:
                raise Misfit("too many clients are connected; try again later")
            peer = self._peers[number] = Peer(number, "a client", clock.now())
            self._recipients.append(peer)
        return peer

    def dismiss(self, peer: Peer, why: str) -> None:
        peer.give_up()
        if peer.connection is not None:
            peer.connection.refuse(why)
        # A caller may be iterating over the peers, so none may be removed now.
        asyncio.get_running_loop().call_soon(self.forget, peer)

    def forget(self, peer: Peer) -> None:
        if self._peers.get(peer.member) is peer:
            del self._peers[peer.member]
            self._recipients.remove(peer)


def topology_of_hub(settings: Settings) -> Topology:
    """Links to all other members; visitors come on top."""
    others = tuple(member for member in range(len(settings.members)) if member != settings.me)
    return Topology(others, defaultdict(tuple))


class HubRoster:
    """The roster of a permanent member."""

    def __init__(self, settings: Settings) -> None:
        self._members = FixedRoster(settings, topology_of_hub(settings))
        self.topology, self.peers, self.recipients = self._members.topology, self._members.peers, self._members.recipients
        self._visitors = Visitors(settings, self._members)
        self._dismissed: dict[int, str] = {}
        """Why the latest visitors were dropped, for when they reconnect: what they are told at the time may not reach them."""

    def is_visitor(self, number: int) -> bool:
        return self._visitors.includes(number)

    def visitors(self) -> list[Peer]:
        """The visitors that are here, or were and may come back."""
        return [peer for number, peer in self.peers.items() if self.is_visitor(number) and not peer.gone]

    def receive(self, number: int) -> Peer:
        return self._visitors.receive(number) if self.is_visitor(number) else self._members.receive(number)

    def amend(self, peer: Peer, introduction: Introduction) -> Introduction:
        return msgspec.structs.replace(introduction, dismissed=self._dismissed.get(peer.member, ""))

    def objection(self, peer: Peer, theirs: Introduction, incarnation: int) -> GroupFailed | None:
        return self._members.objection(peer, theirs, incarnation)

    def starts_anew(self, peer: Peer) -> bool:  # noqa: ARG002
        return False

    def admit(self, number: int) -> Peer:
        return self.peers[number]

    def connection_ended(self, number: int) -> None:
        peer = self.peers.get(number)
        if peer is not None and self.is_visitor(number) and (peer.closing_after is not None or peer.incarnation is None):
            self.dismiss(number)

    def is_missed(self, peer: Peer) -> bool:
        # In a hub, a peer that has said that it closes goes at once.
        return peer.closing_after is None

    def reaches(self, member: int) -> bool:
        return member in self.peers

    def dismiss(self, visitor: int, why: str = "") -> None:
        if why:
            self._dismissed[visitor] = why
        if len(self._dismissed) > VISITORS_AT_ONCE_MAX:
            del self._dismissed[next(iter(self._dismissed))]
        if visitor in self.peers:
            self._visitors.dismiss(self.peers[visitor], why)

    def unheard(self) -> bool:
        return any(peer.outgoing.bytes for peer in self.peers.values())
