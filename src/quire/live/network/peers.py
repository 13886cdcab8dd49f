"""The other members as one member sees them: links, connections, state and metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from quire.live import clock
from quire.live.metrics import Sample
from quire.live.network.connection import Connection
from quire.live.observing.status import LinkStatus
from quire.model.packets import Packet
from quire.wire.links import Incoming, Outgoing


class Peer:
    """Another member: both directions of the link to it, and its present connection."""

    def __init__(self, member: int, address: str, now: float = 0.0) -> None:
        self.member = member
        self.address = address
        self.outgoing = Outgoing()
        self.incoming = Incoming()
        self.connection: Connection | None = None
        self.incarnation: int | None = None
        self.heard_at = now
        self.why_down = "it has not connected yet"
        self.blocked: tuple[Packet, int] | None = None
        """A packet for which the protocol has no room yet; nothing more is read until it has."""
        self.progress_at = now
        self.stalled = False
        self.unread = False
        """Whether it says that its application does not take what is delivered there."""
        self.unreadable = 0
        """How often in a row its next frame could not be read, on whichever connection."""
        self.delivered: tuple[int, ...] = ()
        """How far it says it has delivered: for each member, the number after that of its last message."""
        self.sent_delivered: tuple[Connection | None, tuple[int, ...]] = (None, ())
        """What it was told about deliveries here, and on which connection."""
        self.closing_after: int | None = None
        """How many messages it sent in all, once it sends no more."""
        self.drained = self.sent_drained = False
        """Whether DRAINED came from it, and was sent to it."""
        self.done = self.sent_done = False
        self.lost = False
        """Whether it was silent for so long that it counts as lost, and was not heard since."""
        self.ended = False
        """Whether its process is known to have ended, so that it never comes back."""
        self.away = False
        """Whether the group goes on without it, and sends it nothing, until it is heard again."""
        self.gone = False
        """Whether it was given up for good."""
        self._took_part = False
        """Whether an earlier process of this member communicated with this one."""

    def begin_anew(self) -> None:
        """Start the link afresh; what was on its way is lost."""
        self.outgoing, self.incoming = Outgoing(), Incoming()
        self.incarnation = self.closing_after = self.blocked = None
        self.unreadable = 0

    def restarted(self) -> None:
        """A new process has replaced this member's, and was told nothing yet."""
        self._took_part = self.took_part()
        self.begin_anew()
        self.drained = self.sent_drained = self.done = self.sent_done = False
        self.ended = self.gone = False

    def is_unused(self) -> bool:
        """Whether nothing has ever been sent over the link."""
        return not self.incoming.received and not self.outgoing.sent

    def took_part(self) -> bool:
        """Whether any process of this member has ever been sent anything, or has sent anything."""
        return self._took_part or not self.is_unused()

    def moved(self) -> int:
        """How many frames were received, and acknowledged by the peer: it grows while the link makes progress."""
        return self.incoming.received + self.outgoing.arrived

    def has_room(self, limit: int) -> bool:
        """Whether there is a link, with fewer than so many unacknowledged bytes."""
        return not (self.gone or self.away) and self.outgoing.bytes < limit

    def has_use_for(self, packet: Packet, limit: int, reserve: int) -> bool:
        """Whether it makes sense to send a packet that will be repeated anyway: not while `limit` bytes are on the link, nor
        while the same long payload is. Packets without payload are short, and may use the `reserve` beyond the limit."""
        carried = packet.carried()
        if carried is None or not carried.body.payload:
            return self.has_room(limit + reserve)
        return self.has_room(limit) and not self.outgoing.is_on_its_way(carried.body.payload)

    def has_left(self) -> bool:
        """Whether it sends nothing more of its own: it is closing, has ended, or was given up for good."""
        return self.gone or self.ended or self.closing_after is not None

    def away_s(self) -> float:
        """How long it has been silent, if it is away; otherwise 0."""
        return clock.now() - self.heard_at if self.away else 0.0

    def give_up(self, incarnation: int | None = None) -> None:
        """Send this process nothing more, and do not wait for it, for good. Another may take its place."""
        self.incarnation = incarnation if self.incarnation is None else self.incarnation
        self.gone = self.done = self.sent_done = self.drained = self.sent_drained = True
        self.closing_after = 0
        self.outgoing = Outgoing()


def who_is_missing(peers: Iterable[Peer]) -> str:
    """What a member that could not close in time still waits for."""
    waited_for = [peer for peer in peers if not peer.done and not peer.away]
    for peer in waited_for:
        if peer.connection is None:
            return f"member {peer.member} ({peer.address}) is not connected: {peer.why_down}"
    behind = ", ".join(str(peer.member) for peer in waited_for)
    return f"member {behind} has not reported that it delivered everything" if behind else "the group failed"


def links(peers: Iterable[Peer]) -> tuple[LinkStatus, ...]:
    """The status of the links to these peers."""
    now = clock.now()
    return tuple(
        LinkStatus(
            peer=str(peer.member),
            connected=peer.connection is not None,
            suspected=peer.lost or peer.ended,
            unread=peer.unread,
            sent=peer.outgoing.sent,
            received=peer.incoming.received,
            unacknowledged_bytes=peer.outgoing.bytes,
            silent_s=round(max(0.0, now - peer.heard_at), 3),
        )
        for peer in sorted(peers, key=lambda peer: peer.member)
    )


def samples(peers: Iterable[Peer], base: Mapping[str, str]) -> Iterator[Sample]:
    """One sample of each metric for each peer."""
    now, peers = clock.now(), tuple(peers)
    measures: tuple[tuple[str, str, str, Callable[[Peer], float]], ...] = (
        ("quire_link_up", "Whether the peer is connected.", "gauge", lambda peer: peer.connection is not None),
        ("quire_link_frames_sent_total", "Frames sent to the peer.", "counter", lambda peer: peer.outgoing.sent),
        ("quire_link_frames_received_total", "Frames received from it.", "counter", lambda peer: peer.incoming.received),
        ("quire_link_bytes_unacknowledged", "Bytes sent and not yet acknowledged.", "gauge", lambda peer: peer.outgoing.bytes),
        (
            "quire_link_silent_seconds",
            "Seconds since anything was received from the peer.",
            "gauge",
            lambda peer: now - peer.heard_at,
        ),
        ("quire_link_stalled", "Whether the peer acknowledges nothing.", "gauge", lambda peer: peer.stalled),
    )
    for name, help_, kind, measure in measures:
        for peer in peers:
            yield Sample(name, help_, kind, float(measure(peer)), {**base, "peer": str(peer.member)})
