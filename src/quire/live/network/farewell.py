"""How a group ends: nobody goes before everything that anybody sent is delivered everywhere.

Three words go from neighbour to neighbour. CLOSING, at once: I send nothing more of my own; whoever hears it closes too.
DRAINED, where members pass on what is for others: nothing more comes to you through me. It is said to a neighbour when all
those have said it from whom this member passes on to it; neighbours form a tree of clusters, so that it runs from its
ends to its middle and back. DONE: I have delivered everything, and so has everybody behind me, which runs the same way.

A member has everything when all neighbours are drained; where all members are neighbours and nobody passes anything on,
when it has delivered as many messages of each as that one said it had sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from quire.live.network.frames import CLOSING, DONE, DRAINED, count_body
from quire.live.network.peers import Peer
from quire.protocols.contract import Protocol

EMPTY = b"\x00"

Say = Callable[[Peer, int, bytes], None]
"""Put a word of this kind, with this body, on the link to a peer."""


class Ways(NamedTuple):
    """With whom a member has links, and between which of them it passes messages on."""

    neighbours: tuple[int, ...]
    onward: Mapping[int, tuple[int, ...]]
    """Per neighbour, to whom what comes from it may go on."""
    addressed: bool = False

    @classmethod
    def of(cls, protocol: Protocol) -> Ways:
        neighbours = protocol.neighbours()
        return cls(neighbours, {member: protocol.passes_on(member) for member in neighbours}, protocol.addressed)

    @classmethod
    def to_all(cls, me: int, members: int) -> Ways:
        others = tuple(member for member in range(members) if member != me)
        return cls(others, dict.fromkeys(others, ()))


class Farewell:
    """One member's part in it."""

    def __init__(self, peers: Mapping[int, Peer], ways: Ways, say: Say) -> None:
        self._peers = peers
        self._say = say
        self._addressed = ways.addressed
        self._before = {member: [one for one, onward in ways.onward.items() if member in onward] for member in peers}
        """Per neighbour, from whom something may go on to it."""
        self._said_closing = False
        self._complete = False

    def close(self, sent: int) -> None:
        """This member has sent so many messages and sends no more."""
        if not self._said_closing:
            self._said_closing = True
            for peer in self._peers.values():
                self._say(peer, CLOSING, count_body(sent))

    def advance(self, delivered: list[int]) -> None:
        """Say what can be said, having delivered so many messages of each member."""
        if not self._said_closing:
            return
        peers = self._peers.values()
        if self._addressed:
            for peer in peers:
                if not peer.told_drained and all(self._peers[one].drained for one in self._before[peer.member]):
                    peer.told_drained = True
                    self._say(peer, DRAINED, EMPTY)
        self._complete = self._complete or all(self._has_all_of(peer, delivered) for peer in peers)
        if self._complete:
            for peer in peers:
                if not peer.told_done and all(self._peers[one].done for one in self._before[peer.member]):
                    peer.told_done = True
                    self._say(peer, DONE, EMPTY)

    def _has_all_of(self, peer: Peer, delivered: list[int]) -> bool:
        return (peer.drained and peer.told_drained) if self._addressed else peer.closing_after == delivered[peer.member]

    def is_over(self) -> bool:
        """Whether everybody is known to have delivered everything."""
        return self._complete and all(peer.done and peer.told_done for peer in self._peers.values())
