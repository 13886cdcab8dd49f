"""The other members as one member sees them, and what it counts of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping

from quire.live.metrics import Sample
from quire.live.network.connection import Connection
from quire.live.network.links import Incoming, Outgoing
from quire.model.packets import Packet


class Peer:
    """Another member: both directions of the link to it, and the connection that it has at the moment."""

    def __init__(self, member: int, address: str) -> None:
        self.member = member
        self.address = address
        self.outgoing = Outgoing()
        self.incoming = Incoming()
        self.connection: Connection | None = None
        self.incarnation: int | None = None
        self.heard_at = time.monotonic()
        self.why_down = "it was never there"
        self.blocked: tuple[Packet, int] | None = None
        """A packet for which the protocol has no room yet; nothing more is read until it has."""
        self.progress_at = time.monotonic()
        self.stalled = False
        self.unreadable = 0
        """How often in a row its next frame could not be read."""
        self.closing_after: int | None = None
        """How many messages it sent in all, once it sends no more."""
        self.drained = self.told_drained = False
        """Whether it said, and was told, that nothing more comes through the other."""
        self.done = self.told_done = False
        self.gone = False
        """Whether it was given up."""

    def begin_anew(self) -> None:
        """What was on its way is lost; the link starts from nothing."""
        self.outgoing, self.incoming = Outgoing(), Incoming()
        self.incarnation = self.closing_after = self.blocked = None
        self.unreadable = 0

    def give_up(self) -> None:
        """Nothing more is sent to it, and nobody waits for it."""
        self.gone = self.done = self.told_done = self.drained = self.told_drained = True
        self.closing_after = 0
        self.outgoing = Outgoing()


def samples(peers: Iterable[Peer], base: Mapping[str, str]) -> Iterator[Sample]:
    """One sample of each measure for each peer."""
    now, peers = time.monotonic(), tuple(peers)
    measures: tuple[tuple[str, str, str, Callable[[Peer], float]], ...] = (
        ("quire_link_up", "Whether the peer is connected.", "gauge", lambda peer: peer.connection is not None),
        ("quire_link_frames_sent_total", "Frames sent to the peer.", "counter", lambda peer: peer.outgoing.sent),
        ("quire_link_frames_received_total", "Frames received from it.", "counter", lambda peer: peer.incoming.received),
        ("quire_link_bytes_unacknowledged", "Bytes kept until they arrive.", "gauge", lambda peer: peer.outgoing.bytes),
        ("quire_link_silent_seconds", "Since when nothing came.", "gauge", lambda peer: now - peer.heard_at),
        ("quire_link_stalled", "Whether nothing arrives there.", "gauge", lambda peer: peer.stalled),
    )
    for name, help_, kind, measure in measures:
        for peer in peers:
            yield Sample(name, help_, kind, float(measure(peer)), {**base, "peer": str(peer.member)})
