"""A client of a service with failover: the ordinary client, which also finds the process that runs each unit.

It keeps the highest epoch that it has heard of for each unit, ignores earlier ones, and asks processes that may know while an
answer is missing. When another process takes over a unit, everything without an answer is retransmitted there at once. Where
units have no backups, it remembers what a rebuilt unit must be told, and tells it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from quire.model.errors import ProtocolViolation
from quire.model.messages import Body
from quire.model.packets import Packet
from quire.protocols.node import NOTHING, Effect, Effects, Send
from quire.protocols.sequencing import packets as inner
from quire.protocols.sequencing.client import Client
from quire.protocols.sequencing.contexts import merge
from quire.protocols.sequencing.errors import GroupLost
from quire.protocols.sequencing.events import LEAVE, Event
from quire.protocols.sequencing.failover import packets as wire
from quire.protocols.sequencing.failover.configurations import CLIENT, REGISTER, Configuration, Routes
from quire.protocols.sequencing.failover.memory import Memory
from quire.protocols.sequencing.failover.notices import Unavailable
from quire.protocols.sequencing.failover.options import SurvivingOptions
from quire.protocols.sequencing.notices import Failed


class SurvivingClient(Client):
    packets = (wire.Letter, wire.Configured, wire.Rebuild, inner.Bodies, inner.Kept)

    def __init__(
        self,
        address: int,
        processes: Sequence[int],
        units: Sequence[int],
        registers: Sequence[int],
        options: SurvivingOptions,
    ) -> None:
        """`registers`: the addresses at which the register can be reached, in no particular order."""
        super().__init__(address, units, REGISTER, options)
        self.routes = Routes()
        self.routes.primaries.update({unit: unit for unit in units})
        self.waiting: frozenset[int] = frozenset()
        """Units that nobody can run, as far as is known here."""
        self._units = frozenset(units)
        self._processes = frozenset((*processes, *registers))
        self._registers = tuple(registers)
        self._spoke: dict[int, int] = {}
        """In which epoch each unit has spoken for itself, which it does only when it works."""
        self._memory = Memory(address) if options.remembered else None
        self._asks = 0
        """How often it had to ask again, each time another process."""

    # What an application may ask for.

    def find(self, now: int, group: str) -> Effects:
        return self._addressed(super().find(now, group))

    def create(self, now: int, group: str) -> Effects:
        return self._addressed(super().create(now, group))

    def join(self, now: int, group: str) -> Effects:
        return self._addressed(super().join(now, group))

    def leave(self, now: int, group: str) -> Effects:
        return self._addressed(super().leave(now, group))

    def multicast(self, now: int, group: str, body: Body, count: int) -> Effects:
        return self._addressed(super().multicast(now, group, body, count))

    def move(self, now: int, group: str, sequencer: int) -> Effects:
        return self._addressed(super().move(now, group, sequencer))

    # The driver's inputs.

    def receive(self, now: int, source: int, packet: Packet) -> Effects:
        if isinstance(packet, inner.Bodies | inner.Kept):
            return self._addressed(super().receive(now, source, packet))
        if source not in self._processes:
            raise ProtocolViolation(source, f"{packet.name} may not be sent by it")
        if isinstance(packet, wire.Configured):
            return self._configured(now, source, packet)
        if isinstance(packet, wire.Rebuild):
            return self._rebuild(source, packet)
        if not isinstance(packet, wire.Letter) or packet.to != CLIENT:
            raise ProtocolViolation(source, f"{packet.name} is not for a client")
        if packet.by == REGISTER:
            effects = super().receive(now, REGISTER, packet.packet)
            match packet.packet:
                case inner.Located(group=group, sequencer=inner.LOST):
                    effects = [*effects, *self._lose(now, group, told=bool(effects))]
            return self._addressed(effects)
        known = self.routes.epochs.get(packet.by, -1)
        if packet.epoch < known or self._is_outdated(packet):
            return NOTHING
        effects = super().receive(now, packet.by, packet.packet)
        self.routes.heard(packet.by, packet.epoch, source)
        return self._addressed([*effects, *(self._repeat(now, {packet.by}) if self._speaks(packet.by, packet.epoch) else ())])

    def _speaks(self, unit: int, epoch: int) -> bool:
        """Whether a unit speaks for the first time in this epoch: what it was asked before, it may have ignored."""
        first = epoch > self._spoke.get(unit, -1)
        if first:
            self._spoke[unit] = epoch
        return first

    def _configured(self, now: int, source: int, packet: wire.Configured) -> Effects:
        before = dict(self.routes.primaries)
        news = self.routes.learn(packet.version, packet.configurations)
        waiting = frozenset(packet.waiting)
        effects: list[Effect] = []
        if packet.version >= self.routes.version and waiting != self.waiting:
            self.waiting = waiting
            effects.append(Unavailable(tuple(sorted(waiting))))
        live = {each.unit for each in news if each.live or self.routes.primaries[each.unit] != before.get(each.unit)}
        own = (each for each in packet.configurations if self._is_run_by(source, each))
        live |= {each.unit for each in own if self._speaks(each.unit, each.epoch)}
        return [*effects, *self._addressed(self._repeat(now, live) if live and not self.evicted else ())]

    def _is_run_by(self, process: int, found: Configuration) -> bool:
        """Whether this process runs a unit in its present epoch, and it works."""
        return found.live and found.primary.address == process and found.epoch >= self.routes.epochs[found.unit]

    def _repeat(self, now: int, units: Collection[int]) -> list[Effect]:
        """Retransmit unanswered requests to these units: the processes that run them now may not know them."""
        effects: list[Effect] = []
        for one in self.outbox.sent():
            if self.locations[one.group] in units:
                one.wait = 0
                effects += self._transmit(now, one)
        request = self.request
        if request is not None and not isinstance(request.packet, inner.Prepare) and self.locations[request.group] in units:
            effects.append(self._transmit_request(request))
        return [*effects, *self._report(now)]

    def _is_outdated(self, letter: wire.Letter) -> bool:
        """Whether a refusal comes from a unit that is no longer asked: if it was rebuilt, another may have granted the same
        request."""
        packet = letter.packet
        return self._memory is not None and isinstance(packet, inner.Nak) and self.locations.get(packet.group) != letter.by

    def _lose(self, now: int, group: str, *, told: bool) -> list[Effect]:
        """The group is lost: forget it, and continue with the others. `told`: the application already knows."""
        known = self.locations.pop(group, None) is not None
        if self._memory is not None:
            self._memory.lose(group)
        self.views.pop(group, None)
        self.viewed.pop(group, None)
        self.unstable.pop(group, None)
        self.context.pop(group, None)
        self.outbox.lose(group)
        if self.request is not None and self.request.group == group:
            self.request = None
        news = [Failed(group, GroupLost(group))] if known and not told else []
        return [*news, *self._deliver(now, self.hold.lose(group)), *self._send_ready(now)]

    # What it remembers.

    def _event(self, now: int, source: int, event: Event) -> Effects:
        memory = self._memory
        # What cannot be kept counts as lost, lest its sender take it for safe.
        if memory is not None and not (memory.believes(event) and self.hold.has_room(event)):
            return NOTHING
        return super()._event(now, source, event)

    def _deliver(self, now: int, events: list[Event]) -> list[Effect]:
        memory, effects = self._memory, list[Effect]()
        if memory is None:
            return super()._deliver(now, events)
        for event in events:
            memory.delivered(event, self.views.get(event.group, ()))
            if event.kind == LEAVE and event.who == self.address:
                # Ask until everybody has delivered it.
                self.unstable = merge(self.unstable, {event.group: event.seq})
            effects += super()._deliver(now, [event])
        return effects

    def _learn(self, numbers: Mapping[str, int]) -> list[Effect]:
        if self._memory is not None:
            self._memory.prune(numbers)
        return super()._learn(numbers)

    def _rebuild(self, source: int, packet: wire.Rebuild) -> Effects:
        """Report what is known of the groups, and promise to ignore everything earlier."""
        memory = self._memory
        if self.evicted or memory is None or packet.unit not in self._units:
            return NOTHING
        if packet.epoch < self.routes.epochs.get(packet.unit, -1):
            return NOTHING
        self.routes.heard(packet.unit, packet.epoch, source)
        for group in packet.groups:
            memory.promise(group, packet.life)
        return [Send(self._testimony(memory, packet, group), (source,)) for group in packet.groups]

    def _testimony(self, memory: Memory, asked: wire.Rebuild, group: str) -> wire.Testimony:
        hold, request = self.hold, self.request
        everything = [event for held in hold.held.values() for event in held.values()]
        mentioned = merge(merge(memory.mentioned(everything), self.context), self.unstable)
        return wire.Testimony(
            asked.unit, asked.epoch, group, hold.delivered.get(group, -1), self.views.get(group, ()), mentioned,
            memory.kept(group, hold.held.get(group, {}).values()), *memory.senders(group), self._requests,
            request.packet.req if request is not None and request.group == group else -1, self.at,
        )  # fmt: skip

    def wake(self, now: int) -> Effects:
        waits = not self._quiet()
        effects = super().wake(now)
        asks = waits or bool(self.hold.delivered)
        # The process that was asked last may be gone.
        self._asks += asks
        ask = [Send(wire.Where(self.routes.version), (self._register(),))] if asks else []
        return [*ask, *self._addressed(effects)]

    def _register(self) -> int:
        return self._registers[self._asks % len(self._registers)]

    def _addressed(self, effects: Effects) -> Effects:
        """Replace logical addresses by those of processes."""
        found: list[Effect] = []
        for effect in effects:
            if not isinstance(effect, Send) or isinstance(effect.packet, inner.Bodies | inner.Kept):
                found.append(effect)
                continue
            [to] = effect.to
            address = self._register() if to == REGISTER else self.routes.primaries[to]
            epoch = self.routes.epochs.get(to, -1)
            found.append(Send(wire.Letter(to, CLIENT, epoch, effect.packet), (address,)))  # type: ignore[arg-type]
        return found
