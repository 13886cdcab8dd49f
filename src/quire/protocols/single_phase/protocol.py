"""One member's half of the single-phase protocol."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from itertools import repeat
from typing import Annotated, Literal

from msgspec import Meta, Struct

from quire.model.errors import BadInput, HoldBackFull, ProtocolViolation, WindowFull
from quire.model.messages import NUMBER_MAX, Run
from quire.model.orders import RELIABLE, Guarantee, implied_by
from quire.model.packets import Packet
from quire.protocols.contract import NOTHING, Deliver, Effect, Effects, Links, Protocol, Send, Waiting
from quire.protocols.single_phase.packets import Acknowledgement, Operations, Relay, Vector
from quire.protocols.single_phase.positions import frontier, need, rank
from quire.protocols.single_phase.relaying import Relaying
from quire.protocols.single_phase.remainder import remainder


class SinglePhaseOptions(Struct, frozen=True, kw_only=True):
    acks: Literal["basic", "economical", "point-to-point"] = "economical"
    ids: Literal["static", "rotating"] = "static"
    batches: Literal["unit", "run-length"] = "unit"
    lookahead: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    """How many times a silent member gives away with each acknowledgement, so that it need not acknowledge again soon."""
    outstanding: Annotated[int, Meta(ge=1, le=1 << 24)] = 1 << 16
    """How many of its own messages a member may have undelivered."""
    pending: Annotated[int, Meta(ge=0, le=1 << 32)] = 0
    """How many messages a member may hold back; 0 is all members' outstanding ones, and fewer could block the group."""
    lead: Annotated[int, Meta(ge=1, le=1 << 48)] = 1 << 32
    """How far ahead of its own clock a member believes another's."""


class SinglePhase(Protocol):
    promises = implied_by(RELIABLE | {Guarantee.CAUSAL, Guarantee.ACYCLIC})
    links = Links.FIFO
    packets = (Operations, Acknowledgement, Relay)
    changes_views = True

    def __init__(self, me: int, members: int, options: SinglePhaseOptions) -> None:
        super().__init__(me, members)
        if options.lookahead and options.acks == "basic":
            raise BadInput(
                "lookahead saves acknowledgements, which acks=basic always sends; use acks=economical or point-to-point"
            )
        if options.pending and options.pending < members * options.outstanding:
            raise BadInput(
                f"pending must be 0 or at least members × outstanding = {members * options.outstanding}, "
                "or members could deadlock"
            )
        self.options = options
        self.clocks = [0] * members
        self.announced = 0
        self._rotating = options.ids == "rotating"
        self._unit = options.batches == "unit"
        self._always = options.acks == "basic"
        self._pending_max = options.pending or members * options.outstanding
        # (time, rank, run) of what is not yet stable. (time, rank) is unique, so runs are never compared.
        self._pending: list[tuple[int, int, Run]] = []
        self._held = 0
        self._mine = 0
        self._owed = 0
        """The clock of this member that what was delivered here takes: the others need it, too."""
        self._next = [0] * members
        self._relay = Relaying(me, members, self._rotating) if options.acks == "point-to-point" else None

    @property
    def clock(self) -> int:
        return self.clocks[self.me]

    def held_back(self) -> int:
        return self._held

    def pending(self) -> list[tuple[int, int]]:
        """(time, origin) of every operation that waits to become stable, in total order."""
        steps = (range(1) if self._unit else range(run.count) for _, _, run in self._pending)
        operations = [
            (time + step, run.origin) for (time, _, run), rest in zip(self._pending, steps, strict=True) for step in rest
        ]
        return sorted(operations, key=lambda op: (op[0], rank(op[1], op[0], self.members, self._rotating)))

    def waiting(self) -> Sequence[Waiting]:
        return [self._why(time, run) for time, _, run in self._pending]

    def _why(self, time: int, run: Run) -> Waiting:
        late = tuple(
            other
            for other in range(self.members)
            if other != run.origin and self.clocks[other] < need(other, time, run.origin, self.members, self._rotating)
        )
        names = ", ".join(map(str, late))
        return Waiting(run, late, f"its time is {time}, and the clock of member {names} is not known to be that far")

    def positions(self, delivery: Deliver) -> Iterable[tuple[int, ...] | None]:
        if self._unit or delivery.position is None:
            return repeat(delivery.position)
        # Members may cut a run in different places, so where a message stands must not depend on where.
        start, origin = delivery.position[0], delivery.run.origin
        times = range(start, start + delivery.run.count)
        return ((time, rank(origin, time, self.members, self._rotating)) for time in times)

    def longest_run(self) -> int:
        return self.options.outstanding

    def submit(self, run: Run) -> Effects:
        count, me = run.count, self.me
        if count > self.options.outstanding:
            raise BadInput(f"a run of {count} messages exceeds outstanding={self.options.outstanding}")
        if self._mine + count > self.options.outstanding or self._held + count > self._pending_max:
            raise WindowFull(f"member {me} has {self._mine} of its own messages undelivered and holds back {self._held}")
        time = self.clocks[me] + 1
        last = time + count - 1
        if last >= NUMBER_MAX:
            raise BadInput("the logical clock is exhausted; create a new group")
        # Timing, announcing and handing over to the links is one step: were a time only reserved here and sent later,
        # an acknowledgement could overtake it and others would deliver past it.
        self.clocks[me] = self.announced = last
        self._mine += count
        vector = self._relay.submitted(self.clocks) if self._relay else ()
        packet = Operations(time, run, vector)
        self._keep(me, packet)
        return self._stable([Send(packet)])

    def receive(self, source: int, packet: Packet) -> Effects:
        self._check_peer(source)
        if type(packet) is Acknowledgement:
            known = self.clocks[source]
            self._check_clock(source, packet.clock)
            if packet.clock > known:
                self.clocks[source] = packet.clock
            # The frontier moves only with the slowest clock.
            return self._stable([]) if self._pending and known < self._pending[0][0] else NOTHING
        if type(packet) is Operations:
            self._check_operations(source, packet)
            return self._stable(self._take(source, packet))
        if type(packet) is Relay and self._relay is not None:
            self._check_clock(source, packet.clock)
            self._check_vector(source, packet.vector)
            self.clocks[source] = max(self.clocks[source], packet.clock)
            self._relay.learn(self.clocks, packet.vector)
            return self._stable([])
        raise ProtocolViolation(
            source, f"it sent a {packet.name or type(packet).__name__}, which is not a packet of this group"
        )

    def is_awaited(self, said: Packet | None) -> bool:
        """Not where what it acknowledges comes after a message that waits for others alone: they will be heard, and then it
        says more. The earliest message that anybody has not delivered is first, or delivered, at everybody, so that it is
        acknowledged."""
        if self._always:
            return True
        told = said.until if isinstance(said, (Operations, Acknowledgement)) else 0
        return told < self._owed or bool(self._pending and told < self._needed(*self._first_pending()))

    def _first_pending(self) -> tuple[int, Run]:
        time, _, run = self._pending[0]
        return time, run

    def _needed(self, time: int, run: Run) -> int:
        """The clock of this member without which others cannot deliver a run."""
        return 0 if run.origin == self.me else need(self.me, time + run.count - 1, run.origin, self.members, self._rotating)

    def remainder(self, packets: Iterable[Packet], delivered: Sequence[int]) -> Sequence[Deliver]:
        """In the order of their positions. What a member has delivered before is the beginning of that order."""
        return remainder(packets, delivered, self.members, rotating=self._rotating, unit=self._unit)

    def _check_clock(self, source: int, clock: int) -> None:
        # Under point-to-point a relay may have told a later clock before this packet came.
        if clock < self.clocks[source] and self._relay is None:
            raise ProtocolViolation(source, f"its clock went back from {self.clocks[source]} to {clock}")
        if clock > self.clocks[self.me] + self.options.lead:
            raise ProtocolViolation(
                source, f"its clock {clock} is more than {self.options.lead} ahead of {self.clocks[self.me]}"
            )

    def _check_operations(self, source: int, packet: Operations) -> None:
        run = packet.run
        if run.origin != source or run.count < 1 or run.first != self._next[source]:
            raise ProtocolViolation(
                source,
                f"it sent {run.count} messages of member {run.origin} from {run.first}, not its own from {self._next[source]}",
            )
        self._check_clock(source, packet.time + run.count - 1)
        if packet.time <= self.clocks[source]:
            raise ProtocolViolation(source, f"it timed an operation {packet.time} after its clock was {self.clocks[source]}")
        if self._relay is not None:
            self._check_vector(source, packet.vector)
        # What comes from the slowest member is always taken: everything held back waits for just that.
        if self._held + run.count > self._pending_max and self.clocks[source] > min(self.clocks):
            raise HoldBackFull(f"member {self.me} holds back {self._held} messages")

    def _check_vector(self, source: int, vector: Vector) -> None:
        if len(vector) != self.members:
            raise ProtocolViolation(source, f"it vouched for {len(vector)} clocks in a group of {self.members}")
        clock = self.clocks[self.me]
        if vector[self.me][0] > clock or max(vector)[0] > clock + self.options.lead:
            raise ProtocolViolation(source, f"it vouched for clocks that cannot be: {[known for known, _ in vector]}")

    def _take(self, source: int, packet: Operations) -> list[Effect]:
        """Record an operation packet, and acknowledge it where that is needed."""
        run, clocks, me = packet.run, self.clocks, self.me
        last = packet.time + run.count - 1
        clocks[source] = last
        if clocks[me] < last:
            clocks[me] = last
        self._keep(source, packet)
        relay = self._relay
        if relay is None:
            said, to = self.announced, None
        else:
            relay.received(source, packet.vector, clocks)
            said, to = relay.said[source], (source,)
        if self._always or said < need(me, last, source, self.members, self._rotating):
            return [self._acknowledge(to)]
        return []

    def _acknowledge(self, to: tuple[int, ...] | None) -> Send:
        self.clocks[self.me] += self.options.lookahead
        clock = self.clocks[self.me]
        if to is None:
            self.announced = clock
        elif self._relay is not None:
            self._relay.acknowledged(clock, to)
        return Send(Acknowledgement(clock), to)

    def _keep(self, source: int, packet: Operations) -> None:
        run = packet.run
        self._next[source] = run.first + run.count
        self._held += run.count
        place = rank(source, packet.time, self.members, self._rotating) if self._rotating else source
        heappush(self._pending, (packet.time, place, run))

    def _stable(self, effects: list[Effect]) -> Effects:
        """Deliver what lies before the frontier."""
        pending = self._pending
        if not pending:
            return effects
        limit = frontier(self.clocks, self._rotating)
        mine_until = -1
        while pending and pending[0] < limit:
            time, position, run = heappop(pending)
            if not self._unit and run.count > 1:
                run = self._cut(time, run, limit)
            effects.append(Deliver(run, (time, position)))
            self._held -= run.count
            if run.origin == self.me:
                self._mine -= run.count
                mine_until = time if self._unit else time + run.count - 1
            elif (owed := need(self.me, time + run.count - 1, run.origin, self.members, self._rotating)) > self._owed:
                self._owed = owed
        if mine_until >= 0 and self._relay is not None:
            effects += self._relay.stable(mine_until, self.clocks)
        return effects

    def _cut(self, time: int, run: Run, limit: tuple[int, int]) -> Run:
        """The operations at the front of a run that come before the frontier and before all others'; the rest waits on."""
        if self._pending and self._pending[0][:2] < limit:
            limit = self._pending[0][:2]
        limit_time, limit_rank = limit
        ready = limit_time - time + (rank(run.origin, limit_time, self.members, self._rotating) < limit_rank)
        if ready >= run.count:
            return run
        rest = time + ready
        heappush(self._pending, (rest, rank(run.origin, rest, self.members, self._rotating), run.part(ready, run.count)))
        return run.part(0, ready)
