"""The closing protocol of a fixed group: no member leaves before every message is delivered everywhere.

Neighbours exchange three control messages. CLOSING, sent at once: I send no more messages of my own; a member that receives it
closes too. DRAINED, where members relay: nothing more comes to you through me. It is sent to a neighbour when all those from
which this member relays to that neighbour have sent it; neighbours form a tree of clusters, so it spreads from the leaves to
the centre and back. DONE: I have delivered everything, and so have all members behind me; it spreads in the same way.

A member has everything when all neighbours are drained; where all members are neighbours and none relays, when it has delivered
as many messages of each as that one said it had sent. Nobody waits for a member that is away.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from quire.live.network.peers import Peer
from quire.live.network.topology import Topology
from quire.wire.frames import CLOSING, DONE, DRAINED, FrameError, Numbered, count_body, read_count

EMPTY = b"\x00"

LINGER_S = 2.0
"""How long a member that is done stays for a peer whose connection has just broken. A connected peer gets its whole timeout: it
may be busy, and would take a member that leaves earlier for lost."""

Say = Callable[[Peer, int, bytes], None]
"""Put a control frame of this kind, with this body, on the link to a peer."""


class Closing:
    """One member's part in closing its group."""

    def __init__(self, peers: Mapping[int, Peer], topology: Topology, say: Say) -> None:
        self._peers = peers
        self._say = say
        self._addressed = topology.addressed
        self._before = {member: [one for one, onward in topology.onward.items() if member in onward] for member in peers}
        """For each neighbour, those from which this member relays to it."""
        self._sent: int | None = None
        self._complete = False

    @property
    def said_closing(self) -> bool:
        return self._sent is not None

    def close(self, sent: int) -> None:
        """This member has sent so many messages and sends no more."""
        if not self.said_closing:
            self._sent = sent
            for peer in self._peers.values():
                self._say(peer, CLOSING, count_body(sent))

    def repeat(self, peer: Peer) -> None:
        """Send a restarted peer what its previous process was sent."""
        if self._sent is not None:
            self._say(peer, CLOSING, count_body(self._sent))

    def advance(self, delivered: list[int]) -> None:
        """Send what is due, now that so many messages of each member are delivered."""
        if not self.said_closing:
            return
        peers = self._peers.values()
        if self._addressed:
            for peer in peers:
                if not peer.sent_drained and all(self._peers[one].drained for one in self._before[peer.member]):
                    peer.sent_drained = True
                    self._say(peer, DRAINED, EMPTY)
        self._complete = self._complete or all(peer.away or self._has_all_of(peer, delivered) for peer in peers)
        if self._complete:
            for peer in peers:
                if not peer.sent_done and all(self._peers[one].done for one in self._before[peer.member]):
                    peer.sent_done = True
                    self._say(peer, DONE, EMPTY)

    def hear(self, peer: Peer, frame: Numbered) -> None:
        """Handle one of the three messages from a peer; raises FrameError where it is not allowed now."""
        if frame.kind == CLOSING and peer.closing_after is None:
            peer.closing_after = read_count(frame)
        elif frame.kind == DRAINED and peer.closing_after is not None and not peer.drained:
            peer.drained = True
        elif frame.kind == DONE and peer.closing_after is not None and not peer.done:
            peer.done = True
        else:
            raise FrameError("it sent CLOSING or DONE twice, or DONE before CLOSING")

    def _has_all_of(self, peer: Peer, delivered: list[int]) -> bool:
        return (peer.drained and peer.sent_drained) if self._addressed else peer.closing_after == delivered[peer.member]

    def is_over(self) -> bool:
        """Whether all members are known to have delivered everything."""
        return self._complete and all(peer.away or (peer.done and peer.sent_done) for peer in self._peers.values())

    def is_unheard(self, stayed_s: float, timeout_s: float) -> bool:
        """Whether a peer may still need this member's last message; `stayed_s`: how long this member has stayed for that."""
        for peer in self._peers.values():
            patience_s = timeout_s if peer.connection is not None else LINGER_S
            if peer.outgoing.bytes and not peer.away and stayed_s < patience_s:
                return True
        return False
