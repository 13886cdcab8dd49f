"""The entry point `simulate`: performs one simulated run from its settings, and writes its trace."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path

import msgspec

from quire.model.orders import Guarantee
from quire.protocols import registry
from quire.simulation.config import SimulationConfig, fill_shares
from quire.simulation.delays import to_ns
from quire.simulation.dynamic_run import DynamicRun
from quire.simulation.engine import GROUP_NAME, Engine
from quire.simulation.runs import Progress, Run, SimulationResult, make_network
from quire.simulation.service_run import ServiceRun
from quire.simulation.services import SERVICES
from quire.simulation.workload import Senders
from quire.trace.schema import Outcome
from quire.trace.statistics import Arrivals, arrivals_of
from quire.trace.store import RunWriter
from quire.views.core import FIXED_UNLESS_ASKED, IN_VIEWS

__all__ = ["Progress", "SimulationResult", "simulate"]

_KEEP_WAITS = 1 << 20


def simulate(
    config: SimulationConfig, out: Path | None = None, *, force: bool = False, progress: Progress | None = None
) -> SimulationResult:
    """Run the simulation to its end, and write its trace to the directory `out` if one is given.

    Raises BadInput, and leaves nothing behind, if it cannot be run or `out` exists and is not to be replaced.
    """
    started = time.perf_counter()
    run = _make_run(config)
    with ExitStack() as stack:
        writer = stack.enter_context(RunWriter(out, run.name, force=force)) if out is not None else None
        run.go(writer, progress)
        if writer is not None:
            writer.finish(run.info())
    return run.result(time.perf_counter() - started, out)


def _make_run(config: SimulationConfig) -> Run:
    service, faults = SERVICES.get(config.protocol), config.faults
    if service is not None:
        return ServiceRun(config, service)
    changes = config.protocol in IN_VIEWS and config.protocol not in FIXED_UNLESS_ASKED
    if faults.words or faults.crashes or (changes and (faults.pauses or faults.partitions)):
        return DynamicRun(config)
    return _GroupRun(config)


class _GroupRun(Run):
    """A group protocol, driven by the engine."""

    remote_since = "receipt"

    def __init__(self, config: SimulationConfig) -> None:
        self.entry = registry.find(config.protocol, SERVICES)
        workload = fill_shares(config.workload, addressed=self.entry.protocol.addressed)
        config = msgspec.structs.replace(config, workload=workload)
        options = registry.read_options(config.protocol, config.options)
        super().__init__(config, options, config.members)
        members = range(config.members)
        self.engine = Engine(
            [registry.create(config.protocol, me, config.members, options) for me in members],
            make_network(self.config),
            raw=config.network.links == "raw",
            receipts=config.receipts,
        )
        self.senders = Senders(self.config, self.engine)
        self._schedule_faults()

    def _schedule_faults(self) -> None:
        faults, engine = self.config.faults, self.engine
        for pause in faults.pauses:
            engine.at(to_ns(pause.at_ms, "the time of a pause"), engine.pause, pause.member)
            engine.at(to_ns(pause.at_ms + pause.for_ms, "the end of a pause"), engine.resume, pause.member)

    def go(self, writer: RunWriter | None, progress: Progress | None) -> None:
        total = len(self.config.senders()) * self.config.workload.messages

        def between() -> None:
            self._absorb(writer, everything=False)
            if progress is not None:
                progress(total - sum(map(self.senders.unsent, self.config.senders())), total)

        self.engine.between = between
        self.senders.start()
        collecting = gc.isenabled()
        gc.disable()  # Nothing the loop makes is cyclic, and looking for cycles would take a third of the time.
        try:
            self.engine.run()
        finally:
            if collecting:
                gc.enable()
        self._absorb(writer, everything=True)

    def _absorb(self, writer: RunWriter | None, *, everything: bool) -> None:
        engine, statistics = self.engine, self.statistics
        for site in engine.sites:
            self.take(site.log, writer, everything=everything)
        if everything or len(engine.remote_waits) >= _KEEP_WAITS:
            statistics.origin.drain(engine.origin_waits)
            statistics.remote.drain(engine.remote_waits)

    def outcome(self) -> Outcome:
        statistics, sites = self.statistics, self.engine.sites
        everything = bool((statistics.delivered == statistics.due).all())
        unsent = sum(self.senders.unsent(site.member) + len(site.inbox.local) for site in sites)
        held = sum(site.protocol.held_back() for site in sites)
        return Outcome(
            complete=everything and not unsent and not held,
            messages=int(statistics.sent.sum()),
            deliveries=int(statistics.delivered.sum()),
        )

    def promises(self) -> Iterable[Guarantee]:
        return self.entry.protocol.promises

    def groups(self) -> Mapping[str, tuple[int, ...]]:
        return {GROUP_NAME: tuple(range(self.config.members))}

    def header_entries(self) -> int | None:
        return None if self.engine.tally is None else self.engine.tally.entries

    def arrivals(self) -> Arrivals | None:
        if self.engine.tally is None:
            return None
        return arrivals_of(self.engine.tally.arrivals, [site.protocol.role() for site in self.engine.sites])

    def link_packets(self) -> dict[str, int]:
        return dict(self.engine.connections.counts) if self.engine.connections is not None else {}
