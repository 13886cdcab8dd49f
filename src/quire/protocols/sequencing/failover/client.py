"""A client of a service that survives: the same client, that finds its units wherever they are run.

It keeps the highest epoch that it heard of each unit, believes nothing of an earlier one, and asks whoever may know while an
answer is missing. When a unit is run by another process, everything that has no answer is repeated there at once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from quire.model.errors import ProtocolViolation
from quire.model.messages import Body
from quire.model.packets import Packet
from quire.protocols.node import NOTHING, Effect, Effects, Send
from quire.protocols.sequencing import packets as inner
from quire.protocols.sequencing.client import Client
from quire.protocols.sequencing.failover import packets as wire
from quire.protocols.sequencing.failover.configurations import CLIENT, REGISTER, Routes
from quire.protocols.sequencing.failover.notices import Unavailable
from quire.protocols.sequencing.failover.options import SurvivingOptions


class SurvivingClient(Client):
    packets = (wire.Letter, wire.Configured, inner.Bodies, inner.Kept)

    def __init__(
        self,
        address: int,
        processes: Sequence[int],
        units: Sequence[int],
        registers: Sequence[int],
        options: SurvivingOptions,
    ) -> None:
        """`registers`: where the register can be reached, each as well as any other."""
        super().__init__(address, units, REGISTER, options)
        self.routes = Routes()
        self.routes.primaries.update({unit: unit for unit in units})
        self.waiting: frozenset[int] = frozenset()
        """Units that nobody can run, as far as is known here."""
        self._units = frozenset(units)
        self._processes = frozenset((*processes, *registers))
        self._registers = tuple(registers)
        self._asks = 0
        """How often it had to ask again: each time somebody else."""

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
            return self._configured(now, packet)
        if not isinstance(packet, wire.Letter) or packet.to != CLIENT:
            raise ProtocolViolation(source, f"{packet.name} is not for a client")
        if packet.by == REGISTER:
            effects = super().receive(now, REGISTER, packet.packet)
            match packet.packet:
                case inner.Located(sequencer=inner.LOST):
                    effects = [*effects, *self._lose(now, packet.packet.group)]
            return self._addressed(effects)
        known = self.routes.epochs.get(packet.by, -1)
        if packet.epoch < known:
            return NOTHING
        effects, newer = super().receive(now, packet.by, packet.packet), packet.epoch > known
        self.routes.heard(packet.by, packet.epoch, source)
        return self._addressed([*effects, *(self._repeat(now, {packet.by}) if newer else ())])

    def _configured(self, now: int, packet: wire.Configured) -> Effects:
        before = dict(self.routes.primaries)
        news = self.routes.learn(packet.version, packet.configurations)
        waiting = frozenset(packet.waiting)
        effects: list[Effect] = []
        if packet.version >= self.routes.version and waiting != self.waiting:
            self.waiting = waiting
            effects.append(Unavailable(tuple(sorted(waiting))))
        live = {each.unit for each in news if each.live or self.routes.primaries[each.unit] != before.get(each.unit)}
        return [*effects, *self._addressed(self._repeat(now, live) if live and not self.evicted else ())]

    def _repeat(self, now: int, units: Collection[int]) -> list[Effect]:
        """Say again to these units what has no answer: whoever runs them now may know nothing of it."""
        effects: list[Effect] = []
        for one in self.outbox.sent():
            if self.locations[one.group] in units:
                one.wait = 0
                effects += self._transmit(now, one)
        request = self.request
        if request is not None and not isinstance(request.packet, inner.Prepare) and self.locations[request.group] in units:
            effects.append(self._transmit_request(request))
        return [*effects, *self._report(now)]

    def _lose(self, now: int, group: str) -> list[Effect]:
        """Nothing is left of a group: forget it, and go on with the others."""
        self.locations.pop(group, None)
        self.views.pop(group, None)
        self.viewed.pop(group, None)
        self.unstable.pop(group, None)
        self.context.pop(group, None)
        self.outbox.lose(group)
        if self.request is not None and self.request.group == group:
            self.request = None
        return [*self._deliver(now, self.hold.lose(group)), *self._send_ready(now)]

    def wake(self, now: int) -> Effects:
        waits = not self._quiet()
        effects = super().wake(now)
        self._asks += waits
        ask = [Send(wire.Where(self.routes.version), (self._register(),))] if waits or self.hold.delivered else []
        return [*ask, *self._addressed(effects)]

    def _register(self) -> int:
        return self._registers[self._asks % len(self._registers)]

    def _addressed(self, effects: Effects) -> Effects:
        """From logical addresses to those of processes."""
        found: list[Effect] = []
        for effect in effects:
            if not isinstance(effect, Send) or isinstance(effect.packet, inner.Bodies | inner.Kept):
                found.append(effect)
                continue
            [to] = effect.to
            address = self._register() if to == REGISTER else self.routes.primaries[to]
            found.append(Send(wire.Letter(to, CLIENT, 0, effect.packet), (address,)))  # type: ignore[arg-type]
        return found
