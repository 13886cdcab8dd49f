"""The register: the directory, which also decides which processes run which units.

It is one linearised state machine; where it must survive failures too, it is run as a replicated object. Its inputs may come
twice or late.
"""

from __future__ import annotations

from collections.abc import Sequence

from quire.model.errors import ProtocolViolation
from quire.model.packets import Packet
from quire.protocols.node import NOTHING, Effects, Node, Send
from quire.protocols.sequencing.directory import Directory
from quire.protocols.sequencing.failover import packets as wire
from quire.protocols.sequencing.failover.configurations import CLIENT, REGISTER, Name
from quire.protocols.sequencing.failover.options import SurvivingOptions
from quire.protocols.sequencing.failover.succession import Succession

TAKEN = frozenset(Directory.packets)


class Register(Node):
    packets = (wire.Letter, wire.Here, wire.Where, wire.Missing, wire.InSync, wire.AskWitnesses)

    def __init__(self, address: int, processes: Sequence[int], units: Sequence[int], options: SurvivingOptions) -> None:
        super().__init__(address)
        self.processes = frozenset(processes)
        self.directory = Directory(REGISTER, units, options)
        self.succession = Succession(units, options.backups, len(self.processes))

    def receive(self, now: int, source: int, packet: Packet) -> Effects:
        succession = self.succession
        if isinstance(packet, wire.Letter):
            return self._letter(now, source, packet)
        if isinstance(packet, wire.Where):
            return self._told(packet.version, source)
        if source not in self.processes:
            raise ProtocolViolation(source, f"{packet.name} may not be sent by it")
        match packet:
            case wire.Here():
                changed = succession.arrived(Name(source, packet.life))
                return self._changed(now) if changed else self._told(packet.version, source)
            case wire.Missing():
                return self._changed(now) if succession.missed(packet.who) else NOTHING
            case wire.InSync():
                if succession.in_sync(packet.unit, packet.epoch):
                    live = Send(wire.Live(packet.unit, packet.epoch), (source,))
                    return (live, *self._lose(now, packet.unit, packet.lost), *self._changed(now))
                return NOTHING
            case wire.AskWitnesses():
                return self._witnesses(packet, source)
        raise ProtocolViolation(source, f"{packet.name} is not for the register")

    def _letter(self, now: int, source: int, letter: wire.Letter) -> Effects:
        succession = self.succession
        if (letter.by == CLIENT) == (source in self.processes) or type(letter.packet) not in TAKEN:
            raise ProtocolViolation(source, f"it sent {letter.packet.name} in the name of {letter.by}")
        if letter.by != CLIENT:
            found = succession.configurations.get(letter.by)
            if found is None or letter.epoch != found.epoch:
                return NOTHING
        return self._addressed(self.directory.receive(now, source if letter.by == CLIENT else letter.by, letter.packet))

    def _witnesses(self, packet: wire.AskWitnesses, source: int) -> Effects:
        found, directory = self.succession.configurations.get(packet.unit), self.directory
        if found is None or found.epoch != packet.epoch:
            return NOTHING
        groups = {group: tuple(directory.entries[group]) for group in directory.at(packet.unit)}
        evicted, settled = tuple(sorted(directory.evicted)), len(directory.committed) - 1
        return (Send(wire.Witnesses(packet.unit, packet.epoch, groups, evicted, settled), (source,)),)

    def _addressed(self, effects: Effects) -> list[Send]:
        """Replace logical addresses by those of processes."""
        sends: list[Send] = []
        for effect in effects:
            assert isinstance(effect, Send)
            for each in effect.to:
                found = self.succession.configurations.get(each)
                if found is not None:
                    sends.append(Send(wire.Letter(each, REGISTER, found.epoch, effect.packet), (found.primary.address,)))  # type: ignore[arg-type]
                elif each not in self.succession.units:
                    sends.append(Send(wire.Letter(CLIENT, REGISTER, 0, effect.packet), (each,)))  # type: ignore[arg-type]
        return sends

    def _changed(self, now: int) -> list[Send]:
        """Tell all processes who runs what, and note which units are lost for good."""
        effects: list[Send] = []
        for unit in self.succession.gone():
            effects += self._addressed(self.directory.interrupt(now, unit))
            self.directory.lose(unit, self.directory.at(unit))
            self.succession.begin_anew(unit, len(self.directory.committed) - 1)
        for unit, found in self.succession.configurations.items():
            if found.rebuilt and not found.live:
                effects += self._addressed(self.directory.interrupt(now, unit))
        return [Send(self.configured(), tuple(sorted(self.processes))), *effects]

    def _lose(self, now: int, unit: int, groups: Sequence[str]) -> list[Send]:
        """Groups of the unit are lost. None of them may be moving."""
        if not groups:
            return []
        effects = self._addressed(self.directory.interrupt(now, unit))
        self.directory.lose(unit, groups)
        return effects

    def _told(self, version: int, source: int) -> Effects:
        return (Send(self.configured(), (source,)),) if version < self.succession.version else NOTHING

    def configured(self) -> wire.Configured:
        succession = self.succession
        return wire.Configured(succession.version, tuple(succession.configurations.values()), tuple(sorted(succession.waiting)))

    def wake(self, now: int) -> Effects:
        return self._addressed(self.directory.wake(now))

    def due(self) -> int | None:
        return self.directory.due()

    def idle(self) -> bool:
        return self.directory.idle()
