"""A simulated run of a service: runs its nodes in a world until its scenario is done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from quire.model.errors import BadInput
from quire.model.moments import Happened
from quire.model.orders import Guarantee
from quire.protocols import registry
from quire.simulation.config import SimulationConfig
from quire.simulation.delays import to_ns
from quire.simulation.runs import Progress, Run, make_network
from quire.simulation.scenario import Service
from quire.simulation.world import World
from quire.trace.schema import Outcome
from quire.trace.store import RunWriter

_SLICE_NS = 1_000_000_000
_QUIET_NS_MAX = 3_600_000_000_000
"""How long a run goes on without a message being sent; if it is stuck, timers alone would go on forever."""


class ServiceRun(Run):
    """Runs a service, whose nodes cope with an unreliable network themselves."""

    def __init__(self, config: SimulationConfig, service: Service) -> None:
        options = registry.convert_options(config.protocol, service.options, config.options)
        scenario = service.scenario.suited_to(options)
        if config.faults.pauses or (config.faults.crashes and not scenario.survives_crashes):
            raise BadInput(f"{config.protocol} cannot be simulated with crashes or pauses; leave them out")
        if config.faults.words and scenario.instead_of_faults:
            raise BadInput(f"{config.protocol} cannot be simulated with --faults; {scenario.instead_of_faults}")
        if config.receipts:
            raise BadInput(f"receipts of {config.protocol} cannot be recorded; leave them out")
        super().__init__(config, options, scenario.processes(config, options))
        self.world = World(make_network(self.config, self.statistics.members))
        self.scenario = scenario(self.config, options, self.world)
        for crash in config.faults.crashes:
            self.world.at(to_ns(crash.at_ms, "the time of a crash"), self.world.crash, crash.member)

    def go(self, writer: RunWriter | None, progress: Progress | None) -> None:
        world, scenario = self.world, self.scenario
        scenario.start()
        until_ns, quiet_since_ns, sent = 0, 0, 0
        while world.busy() and until_ns - quiet_since_ns < _QUIET_NS_MAX:
            until_ns += _SLICE_NS
            ended = world.run(until_ns, scenario.done)
            self._absorb(writer, everything=ended)
            if scenario.sent() > sent:
                quiet_since_ns, sent = until_ns, scenario.sent()
            if progress is not None:
                progress(sent, scenario.total())
            if ended:
                return
        self._absorb(writer, everything=True)

    def _absorb(self, writer: RunWriter | None, *, everything: bool) -> None:
        for host in self.world.hosts:
            if everything:
                host.log.settle_rest()
            self.take(host.log, writer, everything=everything)
        self.statistics.origin.drain(self.scenario.origin_waits)
        self.statistics.remote.drain(self.scenario.remote_waits)

    def outcome(self) -> Outcome:
        return Outcome(
            complete=self.scenario.done() and self.scenario.complete(),
            messages=int(self.statistics.sent.sum()),
            deliveries=int(self.statistics.delivered.sum()),
            crashed=tuple(host.node.address for host in self.world.hosts if host.gone),
        )

    def promises(self) -> Iterable[Guarantee]:
        return self.scenario.promises()

    def groups(self) -> Mapping[str, tuple[int, ...]]:
        return self.scenario.groups()

    def settings(self) -> dict[str, object]:
        return self.scenario.settings()

    def details(self) -> dict[str, object]:
        return self.scenario.details()

    def happened(self) -> tuple[Happened, ...]:
        return self.scenario.happened()
