"""Reliable FIFO link to another member over an unreliable network: numbering, gap detection, retransmission, clocks.

Contents are taken in the order of their numbers and without gaps. So the clock of the last one taken, or of a heartbeat before
which nothing is missing, tells that nothing older can still come.
"""

from __future__ import annotations

from collections.abc import Iterator

from quire.model.errors import ProtocolViolation
from quire.model.messages import NUMBER_MAX
from quire.protocols.objects.packets import AnyContent, Data

CLOCK_MAX = NUMBER_MAX >> 16
"""A peer whose clock is beyond this is wrong: no group runs so long, and this one would have no numbers left."""


class Link:
    def __init__(self, peer: int, window: int) -> None:
        self.peer = peer
        self.sent = 0
        self.received = 0
        self.known = 0
        """No content with this clock or an older one can still come."""
        self.last_clock = 0
        self.announced = 0
        """The last clock that the peer was told."""
        self.last_sent_at = 0
        self.heard_at: int | None = None
        self.gap_since: int | None = None
        self.owes_since: int | None = None
        """Since when something that came is not acknowledged."""
        self._expected = 0
        """The peer has sent at least so much."""
        self._window = window
        self._held: dict[int, AnyContent] = {}
        # Not acknowledged, each with the time of its last copy, the oldest time first.
        self._unacknowledged: dict[int, tuple[AnyContent, int]] = {}

    def push(self, now: int, content: AnyContent) -> Data:
        """Number a content, and keep it until it is acknowledged."""
        self.sent += 1
        self._unacknowledged[self.sent] = (content, now)
        return self._packet(now, self.sent, content)

    def _packet(self, now: int, sequence: int, content: AnyContent) -> Data:
        self.acknowledges(now)
        return Data(sequence, self.received, content)

    def acknowledges(self, now: int) -> None:
        """A packet leaves: every packet acknowledges what has arrived."""
        self.owes_since = None
        self.last_sent_at = now

    def acknowledged(self, received: int) -> None:
        if received > self.sent or received < 0:
            raise ProtocolViolation(self.peer, f"it acknowledged {received} of {self.sent} messages")
        for sequence in [each for each in self._unacknowledged if each <= received]:
            del self._unacknowledged[sequence]

    def has_unacknowledged(self) -> bool:
        return bool(self._unacknowledged)

    def repeat_at(self, after: int) -> int | None:
        """When the oldest unacknowledged content must be retransmitted."""
        for _, at in self._unacknowledged.values():
            return at + after
        return None

    def repeat(self, now: int, after: int) -> Iterator[Data]:
        """Everything that has been unacknowledged for too long."""
        for sequence, (content, at) in list(self._unacknowledged.items()):
            if at + after > now:
                return
            yield self._again(now, sequence, content)

    def resend(self, now: int, missing: tuple[int, ...]) -> Iterator[Data]:
        """What the peer lacks, except what it has acknowledged since, which is no longer here."""
        for sequence in missing:
            if sequence in self._unacknowledged:
                yield self._again(now, sequence, self._unacknowledged[sequence][0])

    def _again(self, now: int, sequence: int, content: AnyContent) -> Data:
        del self._unacknowledged[sequence]
        self._unacknowledged[sequence] = (content, now)
        return self._packet(now, sequence, content)

    def check(self, packet: Data) -> None:
        """Raise ProtocolViolation if no correct peer can have sent this after what came before."""
        sequence, content = packet.sequence, packet.content
        if not (1 <= sequence <= CLOCK_MAX and 1 <= content.clock <= CLOCK_MAX):
            raise ProtocolViolation(self.peer, f"numbers and clocks are from 1 to {CLOCK_MAX}")
        held = self._held.get(sequence)
        if held is not None and held.number != content.number:
            raise ProtocolViolation(self.peer, f"two messages have the number {sequence}")
        if sequence > self.received:
            older = [self.last_clock, *(each.clock for number, each in self._held.items() if number < sequence)]
            newer = [each.clock for number, each in self._held.items() if number > sequence]
            if max(older) >= content.clock or (newer and min(newer) <= content.clock):
                raise ProtocolViolation(self.peer, "its clock does not grow from message to message")

    def take(self, now: int, packet: Data) -> Iterator[AnyContent]:
        """Accept a content; returns those that no longer have a gap before them."""
        self.owes_since = now if self.owes_since is None else self.owes_since
        sequence = packet.sequence
        # What is too far ahead is dropped; the peer repeats it.
        if self.received < sequence <= self.received + self._window:
            self._held[sequence] = packet.content
            self.expect(now, sequence)
        while (content := self._held.pop(self.received + 1, None)) is not None:
            self.received += 1
            self.last_clock = content.clock
            self.known = max(self.known, content.clock)
            yield content
        self._check_gap(now)

    def expect(self, now: int, last: int) -> None:
        """The peer has sent this many contents."""
        self._expected = max(self._expected, last)
        self._check_gap(now)

    def _check_gap(self, now: int) -> None:
        if self.received >= self._expected:
            self.gap_since = None
        elif self.gap_since is None:
            self.gap_since = now

    def held(self) -> tuple[AnyContent, ...]:
        """Contents that have arrived and wait for one before them."""
        return tuple(self._held.values())

    def missing(self) -> tuple[int, ...]:
        last = min(self._expected, self.received + self._window)
        return tuple(sequence for sequence in range(self.received + 1, last + 1) if sequence not in self._held)
