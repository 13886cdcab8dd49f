"""A member's links to all others: heartbeats, the stability of requests, and which messages are delivered everywhere.

A request is *stable* when nothing with an older stamp can still come from any member. Idle members must announce their clocks
for that: a member whose clock another waits for sends it at once (but not more often than `announce_ms`), and every member
sends it when a link was quiet for `heartbeat_ms`. Heartbeats do not advance the clock, so they cease when there is nothing new.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec

from quire.model.errors import ProtocolViolation
from quire.model.messages import NUMBER_MAX
from quire.protocols.node import Effect, Send
from quire.protocols.objects.links import CLOCK_MAX, Link
from quire.protocols.objects.notices import Suspected
from quire.protocols.objects.packets import AnyContent, Between, Data, Heartbeat, Nack, Stamp
from quire.protocols.objects.vectors import delivered_floor

NANOSECONDS_PER_MS = 1_000_000
REPEAT_HEARTBEATS = 2
"""What is not acknowledged is sent again after so many intervals of heartbeats."""
QUIET_HEARTBEATS = 20
"""A member to whom there is nothing new to say hears of this one after so many."""


class ObjectOptions(msgspec.Struct, frozen=True, kw_only=True):
    vectors: Literal["exact", "dense"] = "exact"
    """exact: order what is significant and nothing else. dense: one entry for each object, and more is ordered."""
    collect: bool = True
    """Forget in vectors what is delivered everywhere."""
    heartbeat_ms: Annotated[int, msgspec.Meta(ge=1, le=60_000)] = 20
    announce_ms: Annotated[int, msgspec.Meta(ge=0, le=60_000)] = 0
    suspect_ms: Annotated[int, msgspec.Meta(ge=1, le=3_600_000)] = 5_000
    window: Annotated[int, msgspec.Meta(ge=1, le=1 << 20)] = 4096
    """How much may come on one link before what is missing there."""
    roots: Annotated[int, msgspec.Meta(ge=1, le=1 << 20)] = 1024
    """How many trees of calls a member may have open."""
    history: Annotated[int, msgspec.Meta(ge=0, le=1 << 20)] = 1024
    """Of how many messages a member remembers the heads, to explain their order."""


class Exchange:
    def __init__(self, me: int, members: int, options: ObjectOptions) -> None:
        self.me = me
        self.clock = 0
        self.links = {peer: Link(peer, options.window) for peer in range(members) if peer != me}
        self.out: list[Effect] = []
        """What is to be done after this input."""
        self.rows: dict[int, dict[int, int]] = {member: dict.fromkeys(range(members), 0) for member in range(members)}
        self.life = 0
        """The number of this process among those that were this member."""
        self._lives: dict[int, int] = {}
        """The same of others, where it is not 0."""
        self._window = options.window
        self._heartbeat_ns = options.heartbeat_ms * NANOSECONDS_PER_MS
        self._announce_ns = options.announce_ms * NANOSECONDS_PER_MS
        self._suspect_ns = options.suspect_ms * NANOSECONDS_PER_MS
        self._wanted = 0
        self._suspected: set[int] = set()
        self._floor: dict[int, int] | None = None
        # Per source, what it sent here that is not delivered, oldest first: its clock and how many targets still wait.
        self._undelivered: list[dict[int, list[int]]] = [{} for _ in range(members)]

    def tick(self) -> Stamp:
        """The stamp of a new message."""
        if self.clock >= NUMBER_MAX:
            raise OverflowError("the logical clock is used up")
        self.clock += 1
        return Stamp(self.clock, self.me)

    def want(self, clock: int) -> None:
        """Something here waits until all clocks have reached this value."""
        self._wanted = max(self._wanted, clock)

    def is_stable(self, stamp: Stamp) -> bool:
        """Whether everything with an older stamp has arrived. A member's next message has a clock above the latest one
        known, so its stamp is at least (known + 1, member)."""
        return all((link.known + 1, peer) > stamp for peer, link in self.links.items() if peer != stamp.member)

    # What is delivered where.

    def arrived(self, source: int, number: int, clock: int, targets: int) -> None:
        # What was told of a member that is gone did not come over a link, and may be ahead of this clock.
        self.clock = max(self.clock, clock)
        self._undelivered[source][number] = [clock, targets]

    def delivered(self, source: int, number: int) -> None:
        entry = self._undelivered[source][number]
        entry[1] -= 1
        if not entry[1]:
            del self._undelivered[source][number]

    def row(self) -> tuple[int, ...]:
        """For each member, the clock up to which everything that it sent to this member is delivered."""
        # Nothing more comes from members that are gone.
        clocks = {member: link.known for member, link in self.links.items()} | {self.me: self.clock}
        known = (clocks.get(member, NUMBER_MAX) for member in range(len(self.rows)))
        oldest = (next(iter(waiting.values()))[0] - 1 if waiting else NUMBER_MAX for waiting in self._undelivered)
        return tuple(map(min, known, oldest))

    def floor(self) -> dict[int, int]:
        """For each member, the clock up to which everything that it sent is delivered at all destinations."""
        own = dict(enumerate(self.row()))
        if own != self.rows[self.me] or self._floor is None:
            self.rows[self.me] = own
            view = (self.me, *self.links)
            self._floor = {source: delivered_floor(self.rows, view, source) for source in range(len(self.rows))}
        return self._floor

    def is_between(self, source: int, packet: Between) -> bool:
        """Whether a packet comes from the current process of its member, and is for the current process of this one."""
        return packet.life == self._lives.get(source, 0) and packet.to_life == self.life

    def admit(self, member: int, life: int) -> None:
        """Another process has taken the place of a lost member: wait for its clock from now on."""
        self._floor = None
        self._lives[member] = life
        self.links[member] = Link(member, self._window)
        self.rows[member] = dict.fromkeys(self.rows, 0)
        for row in self.rows.values():
            row[member] = 0

    def leave(self, member: int) -> None:
        """The member is gone: nothing waits for its clock any more."""
        self._floor = None
        self._suspected.discard(member)
        del self.links[member]

    # Inputs.

    def send(self, now: int, peer: int, content: AnyContent) -> None:
        link = self.links[peer]
        self._emit(link.push(now, content), peer)
        link.announced = max(link.announced, content.clock)

    def receive(self, now: int, source: int, packet: Data | Heartbeat | Nack) -> Iterator[AnyContent]:
        """Process a packet; yields the contents with no gap before them. All must be consumed before the next input."""
        link = self.links[source]
        if isinstance(packet, Data):
            link.check(packet)
        elif isinstance(packet, Heartbeat):
            self._check_heartbeat(source, packet)
        link.acknowledged(packet.received)
        link.heard_at = now
        self._suspected.discard(source)
        if isinstance(packet, Data):
            self.clock = max(self.clock, packet.content.clock)
            yield from link.take(now, packet)
        elif isinstance(packet, Heartbeat):
            self._take_heartbeat(now, link, packet)
        else:
            for data in link.resend(now, packet.missing):
                self._emit(data, source)

    def _check_heartbeat(self, source: int, packet: Heartbeat) -> None:
        if len(packet.row) != len(self.rows) or not 0 <= packet.clock <= CLOCK_MAX or packet.last < 0:
            raise ProtocolViolation(source, "its heartbeat is for another group")

    def _take_heartbeat(self, now: int, link: Link, packet: Heartbeat) -> None:
        self.clock = max(self.clock, packet.clock)
        self.want(min(packet.wanted, self.clock))
        link.expect(now, packet.last)
        # A clock that overtook messages does not say that nothing older can come.
        if packet.last <= link.received:
            link.known = max(link.known, packet.clock)
        row = self.rows[link.peer]
        for member, clock in enumerate(packet.row):
            # Its sender may take a member for gone that has come back, and then waits for nothing of it.
            if clock <= CLOCK_MAX or not self._is_there(member):
                row[member] = max(row[member], clock)
        self._floor = None

    def _is_there(self, member: int) -> bool:
        return member == self.me or member in self.links

    def wake(self, now: int, waits: bool) -> None:
        """Send what is due. `waits`: whether something here is not stable yet."""
        for peer, link in self.links.items():
            for data in link.repeat(now, REPEAT_HEARTBEATS * self._heartbeat_ns):
                self._emit(data, peer)
            if link.gap_since is not None and link.gap_since + self._heartbeat_ns // 2 <= now:
                link.gap_since = now
                link.acknowledges(now)
                self._emit(Nack(link.received, link.missing()), peer)
            if self._heartbeat_at(link) <= now:
                link.acknowledges(now)
                link.announced = self.clock
                self._emit(Heartbeat(link.received, link.sent, self.clock, self._wanted, self.row()), peer)
            # Who was never heard is waited for from the first time that this member looks.
            link.heard_at = now if link.heard_at is None else link.heard_at
            if waits and peer not in self._suspected and link.heard_at + self._suspect_ns <= now:
                self._suspected.add(peer)
                self.out.append(Suspected(peer))

    def _heartbeat_at(self, link: Link) -> int:
        at = link.last_sent_at + self._heartbeat_ns * (QUIET_HEARTBEATS if self._knows_all(link) else 1)
        if link.owes_since is not None:
            at = min(at, link.owes_since + self._heartbeat_ns // 2)
        if link.announced < self._wanted:
            at = min(at, link.last_sent_at + self._announce_ns)
        return at

    def _knows_all(self, link: Link) -> bool:
        """Whether the peer has said that it knows this member's clock and has delivered everything."""
        return self.rows[link.peer][self.me] >= self.clock and not link.has_unacknowledged()

    def due(self, waits: bool) -> int | None:
        times: list[int] = []
        for peer, link in self.links.items():
            times.append(self._heartbeat_at(link))
            repeat = link.repeat_at(REPEAT_HEARTBEATS * self._heartbeat_ns)
            if repeat is not None:
                times.append(repeat)
            if link.gap_since is not None:
                times.append(link.gap_since + self._heartbeat_ns // 2)
            if waits and peer not in self._suspected:
                times.append(0 if link.heard_at is None else link.heard_at + self._suspect_ns)
        return min(times, default=None)

    def is_quiet(self) -> bool:
        """Whether every member has everything that was sent from here."""
        return not any(link.has_unacknowledged() for link in self.links.values())

    def _emit(self, packet: Data | Heartbeat | Nack, peer: int) -> None:
        if self.life or peer in self._lives:
            packet = msgspec.structs.replace(packet, life=self.life, to_life=self._lives.get(peer, 0))
        self.out.append(Send(packet, (peer,)))
