"""Reliable FIFO channels to the peers of a node: whatever the network does, packets arrive once and in order.

Packets are numbered per destination from 1. A receiver takes the contiguous prefix and holds back what came too early; every
packet acknowledges how many have come; what is not acknowledged in time is retransmitted. A node that receives something and
has nothing to send acknowledges it a little later.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import msgspec

from quire.model.errors import ProtocolViolation
from quire.model.messages import NUMBER_MAX
from quire.protocols.node import Send
from quire.protocols.transactions.packets import Beat, Numbered

HELD_MAX = 1 << 16
CLOCK_MAX = NUMBER_MAX >> 16
"""A peer whose clock is beyond this is wrong: no store runs so long, and this one would have no times left."""


class Clock:
    """The Lamport clock that all nodes at one address share."""

    def __init__(self) -> None:
        self.lc = 0

    def tick(self) -> int:
        self.lc += 1
        return self.lc

    def heard(self, lc: int) -> None:
        self.lc = max(self.lc, lc)


class _Channel:
    """The channel to one peer."""

    def __init__(self) -> None:
        self.sent = 0
        self.unconfirmed: deque[tuple[int, Numbered]] = deque()
        self.repeat_at: int | None = None
        self.taken = 0
        self.early: dict[int, Numbered] = {}
        self.confirm_at: int | None = None


class Channels:
    def __init__(self, clock: Clock, peers: Iterable[int], repeat_ns: int) -> None:
        self.clock = clock
        self._repeat_ns = repeat_ns
        self._channels = {peer: _Channel() for peer in peers}

    def _channel(self, peer: int) -> _Channel:
        channel = self._channels.get(peer)
        if channel is None:
            raise ProtocolViolation(peer, "it is not a process of this store")
        return channel

    def post(self, now: int, peer: int, content: Numbered) -> Send:
        """Send this packet next. Its numbers are filled in here; its `lc` is kept, so that all copies of a multicast have
        the same one."""
        channel = self._channel(peer)
        channel.sent += 1
        packet = msgspec.structs.replace(content, sq=channel.sent, ack=channel.taken)
        channel.unconfirmed.append((channel.sent, packet))
        channel.confirm_at = None
        if channel.repeat_at is None:
            channel.repeat_at = now + self._repeat_ns
        return Send(packet, (peer,))

    def take(self, now: int, peer: int, packet: Numbered) -> list[Numbered]:
        """A packet has arrived: returns those that can be processed now, in order."""
        channel = self._channel(peer)
        if not 1 <= packet.sq <= channel.taken + HELD_MAX:
            raise ProtocolViolation(peer, f"packet {packet.sq} is too far ahead of {channel.taken}")
        self._confirmed(now, peer, packet.sq, packet.ack, packet.lc)
        if channel.confirm_at is None:
            channel.confirm_at = now + self._repeat_ns // 4
        if packet.sq <= channel.taken:
            return []
        channel.early[packet.sq] = packet
        ready = []
        while (following := channel.early.pop(channel.taken + 1, None)) is not None:
            channel.taken += 1
            ready.append(following)
        return ready

    def hear(self, now: int, peer: int, beat: Beat) -> bool:
        """A heartbeat has arrived; returns whether everything that it covers has arrived."""
        channel = self._confirmed(now, peer, beat.sq, beat.ack, beat.lc)
        return beat.sq <= channel.taken

    def _confirmed(self, now: int, peer: int, sq: int, ack: int, lc: int) -> _Channel:
        channel = self._channel(peer)
        if ack > channel.sent or min(sq, ack, lc) < 0 or lc > CLOCK_MAX:
            raise ProtocolViolation(peer, f"it confirms {ack} packets of {channel.sent}, at time {lc}")
        self.clock.heard(lc)
        if channel.unconfirmed and channel.unconfirmed[0][0] <= ack:
            while channel.unconfirmed and channel.unconfirmed[0][0] <= ack:
                channel.unconfirmed.popleft()
            channel.repeat_at = now + self._repeat_ns if channel.unconfirmed else None
        return channel

    def beat(self, peer: int) -> Send:
        channel = self._channel(peer)
        channel.confirm_at = None
        return Send(Beat(channel.sent, channel.taken, self.clock.lc), (peer,))

    def beats(self, peers: Iterable[int]) -> list[Send]:
        """Heartbeats for these peers."""
        self.clock.tick()
        return [self.beat(peer) for peer in peers]

    def wake(self, now: int) -> list[Send]:
        """Retransmit and acknowledge what is due."""
        sends = []
        for peer, channel in self._channels.items():
            if channel.repeat_at is not None and channel.repeat_at <= now:
                channel.repeat_at = now + self._repeat_ns
                channel.confirm_at = None
                sends += [
                    Send(msgspec.structs.replace(packet, ack=channel.taken), (peer,)) for _, packet in channel.unconfirmed
                ]
            elif channel.confirm_at is not None and channel.confirm_at <= now:
                sends.append(self.beat(peer))
        return sends

    def due(self) -> int | None:
        times = (time for channel in self._channels.values() for time in (channel.repeat_at, channel.confirm_at))
        return min((time for time in times if time is not None), default=None)

    def idle(self) -> bool:
        """Whether every peer has acknowledged everything."""
        return not any(channel.unconfirmed for channel in self._channels.values())
