"""A sequencer process with copies of units: dispatches packets to them, and sends what they send.

It announces itself to the register, learns which process runs which unit, and is primary of some units and backup of others. A
packet for a unit that it does not run is answered with what it knows of which process does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from quire.model.errors import ProtocolViolation
from quire.model.packets import Packet
from quire.protocols.node import NOTHING, Effects, Node, Send
from quire.protocols.sequencing.failover import packets as wire
from quire.protocols.sequencing.failover.configurations import CLIENT, REGISTER, Name, Routes
from quire.protocols.sequencing.failover.options import SurvivingOptions
from quire.protocols.sequencing.failover.replica import Replica
from quire.protocols.sequencing.permissions import OF_CLIENTS
from quire.protocols.sequencing.sequencer import Sequencer

INPUTS = frozenset(Sequencer.packets)


class SequencerProcess(Node):
    packets: ClassVar[tuple[type[Packet], ...]] = (
        wire.Letter, wire.Snapshot, wire.Taken, wire.Record, wire.Recorded, wire.Live, wire.Configured, wire.Witnesses,
        wire.Testimony,
    )  # fmt: skip

    def __init__(
        self,
        me: Name,
        processes: Sequence[int],
        units: Sequence[int],
        register: int,
        options: SurvivingOptions,
        registers: Sequence[int] = (),
    ) -> None:
        """`processes` and `units`: all addresses. `register`: where this process reaches the register, whose packets come
        from there or from one of `registers`."""
        super().__init__(me.address)
        self.me = me
        self.options = options
        self.units = tuple(units)
        self.processes = frozenset(processes)
        self.register = register
        self._registers = frozenset((register, *registers))
        self.routes = Routes()
        self.waiting: tuple[int, ...] = ()
        """Units that nobody can run now, as the register said."""
        self.replicas = {unit: Replica(unit, me, register, self.routes, self.units, options) for unit in self.units}
        self._tick_at = 0

    # Inputs.

    def receive(self, now: int, source: int, packet: Packet) -> Effects:
        match packet:
            case wire.Letter():
                return self._letter(now, source, packet)
            case wire.Snapshot() | wire.Taken() | wire.Record() | wire.Recorded():
                return self._of_a_copy(now, source, packet)
            case wire.Live() if source in self._registers and packet.unit in self.replicas:
                return self.replicas[packet.unit].goes_live(now, packet.epoch)
            case wire.Configured() if source in self._registers:
                return self._configured(now, packet)
            case wire.Witnesses() if source in self._registers and packet.unit in self.replicas:
                return self.replicas[packet.unit].rebuild(packet, source)
            case wire.Testimony() if source not in self.processes and packet.unit in self.replicas:
                return self.replicas[packet.unit].rebuild(packet, source)
        raise ProtocolViolation(source, f"{packet.name} is not for a sequencer, or may not be sent by it")

    def _configured(self, now: int, packet: wire.Configured) -> Effects:
        effects: list[Send] = []
        for found in packet.configurations:
            if found.unit in self.replicas and self.replicas[found.unit].cannot_run(found):
                raise ProtocolViolation(self.register, f"it gave unit {found.unit} to a process that knows nothing of it")
        if packet.version >= self.routes.version:
            self.waiting = packet.waiting
        for found in self.routes.learn(packet.version, packet.configurations):
            if found.unit in self.replicas:
                effects += self.replicas[found.unit].configure(now, found)
        return effects

    def _of_a_copy(self, now: int, source: int, packet: wire.Snapshot | wire.Taken | wire.Record | wire.Recorded) -> Effects:
        replica = self.replicas.get(packet.unit)
        if replica is None or source not in self.processes:
            raise ProtocolViolation(source, f"{packet.name} may not be sent by it")
        match packet:
            case wire.Snapshot():
                return replica.install(packet, source)
            case wire.Taken():
                return replica.taken(packet, Name(source, packet.life))
            case wire.Record():
                return replica.apply(now, packet, source)
            case wire.Recorded():
                return replica.acknowledged(packet, Name(source, packet.life))

    def _letter(self, now: int, source: int, letter: wire.Letter) -> Effects:
        self._check(source, letter)
        replica = self.replicas[letter.to]
        if letter.by >= 0 and letter.epoch < self.routes.epochs.get(letter.by, -1):
            return NOTHING
        fenced = self.options.remembered and not self._is_of_this_epoch(letter, replica.epoch)
        if not replica.primary or fenced:
            tell = letter.by == CLIENT and letter.epoch <= replica.epoch and self.routes.configurations
            return (Send(wire.Configured(self.routes.version, self.routes.known()), (source,)),) if tell else NOTHING
        assert isinstance(letter.packet, Sequencer.packets)
        return replica.take(now, source if letter.by == CLIENT else letter.by, letter.packet)

    def _is_of_this_epoch(self, letter: wire.Letter, epoch: int) -> bool:
        """For units without backups: whether the sender has promised to ignore earlier epochs, and knows of no later one. A
        packet that another unit forwards for a client does not say so; the client will send it itself."""
        if letter.by >= 0:
            return type(letter.packet) not in OF_CLIENTS
        return letter.epoch == epoch

    def _check(self, source: int, letter: wire.Letter) -> None:
        """Raise ProtocolViolation unless this sender may send the letter, and may send it here."""
        allowed = source in self._registers if letter.by == REGISTER else source in self.processes
        if letter.by == CLIENT:
            allowed = source not in self.processes
        if not allowed or (letter.by >= 0 and letter.by not in self.replicas):
            raise ProtocolViolation(source, f"it sent a letter in the name of {letter.by}")
        if letter.to not in self.replicas or type(letter.packet) not in INPUTS:
            raise ProtocolViolation(source, f"{letter.packet.name} is not for a sequencer")

    # What its driver notices.

    def holding_up(self) -> dict[int, tuple[str, int]]:
        """The clients that delay others, in any unit that is primary here."""
        return {client: why for sequencer in self._working() for client, why in sequencer.holding_up().items()}

    def clients(self) -> frozenset[int]:
        """All clients that are in a group of a unit that is primary here, or are leaving one."""
        groups = (state for sequencer in self._working() for state in sequencer.groups.values())
        return frozenset(client for state in groups for client in state.reached)

    def _working(self) -> list[Sequencer]:
        return [each.sequencer for each in self.replicas.values() if each.live and each.sequencer is not None]

    def suspect(self, client: int) -> Effects:
        """The client is lost; the register decides for all."""
        return [effect for replica in self.replicas.values() for effect in replica.suspect(client)]

    def miss(self, process: Name) -> Effects:
        """Another process seems to be lost; the register decides."""
        return (Send(wire.Missing(process), (self.register,)),)

    # Time.

    def wake(self, now: int) -> Effects:
        effects: list[Send] = []
        if now >= self._tick_at:
            self._tick_at = now + self.options.tick_ns
            effects.append(Send(wire.Here(self.me.life, self.routes.version), (self.register,)))
            for replica in self.replicas.values():
                effects += replica.repeat()
        for replica in self.replicas.values():
            effects += replica.wake(now)
        return effects

    def due(self) -> int | None:
        dues = [at for replica in self.replicas.values() if (at := replica.due()) is not None]
        return min([self._tick_at, *dues])

    def idle(self) -> bool:
        return all(replica.idle() for replica in self.replicas.values())
