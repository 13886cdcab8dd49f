"""A sequencer process on sockets: it passes messages for the register to its local copy, instead of sending them."""

from __future__ import annotations

from quire.model.packets import Packet
from quire.protocols.node import NOTHING, Effect, Effects, Notice, Send
from quire.protocols.sequencing.failover import SequencerProcess, SurvivingOptions
from quire.protocols.sequencing.failover import packets as wire
from quire.protocols.sequencing.failover.configurations import REGISTER, Name


class ForRegister(Notice, frozen=True):
    """A message for the register, on behalf of the process at this address."""

    source: int
    packet: Packet


class ServingProcess(SequencerProcess):
    packets = (*SequencerProcess.packets, wire.Where)

    def __init__(self, me: Name, processes: int, options: SurvivingOptions) -> None:
        everybody = range(processes)
        super().__init__(me, everybody, everybody, REGISTER, options, registers=everybody)

    def receive(self, now: int, source: int, packet: Packet) -> Effects:
        if isinstance(packet, wire.Letter) and packet.to == REGISTER:
            return (ForRegister(source, packet),)
        if isinstance(packet, wire.Where):
            news = wire.Configured(self.routes.version, self.routes.known(), self.waiting)
            return (Send(news, (source,)),) if packet.version < self.routes.version else NOTHING
        return self._apart(super().receive(now, source, packet))

    def wake(self, now: int) -> Effects:
        return self._apart(super().wake(now))

    def suspect(self, client: int) -> Effects:
        return self._apart(super().suspect(client))

    def _apart(self, effects: Effects) -> Effects:
        found: list[Effect] = []
        for effect in effects:
            if isinstance(effect, Send) and effect.to == (REGISTER,):
                found.append(ForRegister(self.address, effect.packet))
            else:
                found.append(effect)
        return found
