"""Sequencers with backups in the simulator: sequencers are killed and restarted while clients go on.

The processes are those of `sequencing`, except that the last one is the register. Here it is a single process without faults;
in live groups, every sequencer has a copy of it. It declares a sequencer missing after a time of silence, as live sequencers do
with each other. Clients are not killed. A run ends when a group is lost, because its members can no longer send.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from quire.model.errors import BadInput
from quire.model.faults import Kill, Restart, check_faults, parse_faults
from quire.model.moments import Happened, Moment, describe_moment, describe_running, moments
from quire.model.packets import Packet
from quire.protocols.node import Effects, Node, Notice
from quire.protocols.sequencing import Client, Sequencer
from quire.protocols.sequencing.errors import GroupLost
from quire.protocols.sequencing.failover import Register, SequencerProcess, SurvivingClient, SurvivingOptions
from quire.protocols.sequencing.failover import packets as wire
from quire.protocols.sequencing.failover.configurations import Configuration, Name
from quire.protocols.sequencing.notices import Failed
from quire.simulation.config import SimulationConfig
from quire.simulation.delays import to_ns
from quire.simulation.scenario import Scenario
from quire.simulation.sequencing import Ring
from quire.simulation.world import SimulatedHost, World

DETECT_MS = 1000.0
"""How long a sequencer may be silent, unless the settings say."""

_SECOND_NS = 1_000_000_000


class WatchfulRegister(Register):
    """A register that declares silent sequencers missing. `went_live` is called with each configuration that begins to
    work."""

    def __init__(
        self,
        address: int,
        units: Sequence[int],
        options: SurvivingOptions,
        patience_ns: int,
        went_live: Callable[[Configuration], None],
    ) -> None:
        super().__init__(address, units, units, options)
        self._patience_ns = patience_ns
        self._went_live = went_live
        self._heard: dict[int, int] = {}

    def receive(self, now: int, source: int, packet: Packet) -> Effects:
        self._heard[source] = now
        before = self.succession.live.copy()
        effects = super().receive(now, source, packet)
        for unit, names in self.succession.live.items():
            if names != before.get(unit):
                self._went_live(self.succession.configurations[unit])
        return effects

    def wake(self, now: int) -> Effects:
        own = super().due()
        effects = [*super().wake(now)] if own is not None and own <= now else []
        for name in sorted(self.succession.there):
            if self._missed_at(name) <= now:
                effects += super().receive(now, name.address, wire.Missing(name))
        return effects

    def due(self) -> int | None:
        own, silent = super().due(), [self._missed_at(name) for name in self.succession.there]
        return min([*silent, *(() if own is None else (own,))], default=None)

    def _missed_at(self, name: Name) -> int:
        return self._heard[name.address] + self._patience_ns


class SurvivingRing(Ring):
    instead_of_faults = ""

    def __init__(self, config: SimulationConfig, options: Any, world: World) -> None:
        self._happened: list[Happened] = []
        self._began_ns = 0
        self.lost: set[str] = set()
        self.failovers = 0
        super().__init__(config, options, world)
        self._faults = _faults_of(config, self.units)

    def _nodes(self) -> tuple[Sequence[Client], Sequence[Node]]:
        units, options, address = self.units, self.options.surviving(), self.units[-1] + 1
        detect_ms = self.config.faults.detect_ms
        patience_ns = to_ns(DETECT_MS if detect_ms is None else detect_ms, "the time to detect a crash")
        self.register = WatchfulRegister(address, units, options, patience_ns, self._went_live)
        self.directory = self.register.directory
        self.running = {unit: self._process(Name(unit, 0)) for unit in units}
        clients = [SurvivingClient(me, units, units, (address,), options) for me in range(self.config.members)]
        return clients, (*self.running.values(), self.register)

    def _process(self, name: Name) -> SequencerProcess:
        return SequencerProcess(name, self.units, self.units, self.register.address, self.options.surviving())

    @property
    def sequencers(self) -> Sequence[Sequencer]:
        replicas = [replica for process in self.running.values() for replica in process.replicas.values() if replica.live]
        return [replica.sequencer for replica in replicas if replica.sequencer is not None]

    def done(self) -> bool:
        return bool(self.lost) or super().done()

    def complete(self) -> bool:
        return not self.lost and super().complete()

    def details(self) -> dict[str, object]:
        details = super().details()
        # Whoever follows another counts anew.
        del details["load"]
        return {**details, "failovers": self.failovers, "groups_lost": len(self.lost)}

    def happened(self) -> tuple[Happened, ...]:
        return tuple(self._happened)

    def _on_notice(self, host: SimulatedHost, notice: Notice) -> None:
        if isinstance(notice, Failed) and isinstance(notice.error, GroupLost):
            self.lost.add(notice.group)
        else:
            super()._on_notice(host, notice)

    # What goes wrong.

    def _begin(self) -> None:
        super()._begin()
        self._began_ns = self.world.now
        for moment in moments(self._faults):
            self._pending += 1
            self.world.at(self._began_ns + moment.at_ms * _SECOND_NS // 1000, self._happen, moment)

    def _happen(self, moment: Moment) -> None:
        self._pending -= 1
        self._tell(*describe_moment(moment))
        match moment.fault:
            case Kill(member=address):
                self.world.crash(address)
            case Restart(member=address):
                self.running[address] = self._process(Name(address, self.running[address].me.life + 1))
                self.world.restart(address, self.running[address])

    def _went_live(self, found: Configuration) -> None:
        if self._began_ns:
            self.failovers += 1
            backups = [backup.address for backup in found.backups]
            self._tell(*describe_running(found.unit, found.primary.address, backups))

    def _tell(self, what: str, about: str) -> None:
        self._happened.append(Happened(round((self.world.now - self._began_ns) / _SECOND_NS, 6), what, about))


class SequencingRing(Ring):
    """With backups or without, as the options say."""

    @classmethod
    def suited_to(cls, options: Any) -> type[Scenario]:
        return Ring if options.backups is None else SurvivingRing


def _faults_of(config: SimulationConfig, sequencers: range) -> tuple[Kill | Restart, ...]:
    faults = parse_faults(config.faults.words) if config.faults.words else ()
    check_faults(faults, sequencers.stop)
    found = tuple(fault for fault in faults if isinstance(fault, Kill | Restart) and fault.member in sequencers)
    for fault in faults:
        if fault not in found:
            raise BadInput(
                f"'{fault}' cannot be simulated: sequencers, which are processes {sequencers[0]} to {sequencers[-1]}, "
                "are killed and restarted, and nothing else"
            )
    return found
