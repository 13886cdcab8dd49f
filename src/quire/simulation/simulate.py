"""One simulated run from its settings to its result and its trace."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path

import msgspec
import numpy as np

from quire.model.orders import Guarantee
from quire.protocols import registry
from quire.simulation.config import SimulationConfig, fill_shares
from quire.simulation.delays import parse_delays, to_ns
from quire.simulation.dynamic_run import DynamicRun
from quire.simulation.engine import GROUP_NAME, Engine
from quire.simulation.randomness import stream
from quire.simulation.runs import Progress, Run, SimulationResult, make_network
from quire.simulation.service_run import ServiceRun
from quire.simulation.services import SERVICES
from quire.simulation.workload import Senders
from quire.trace.schema import Outcome
from quire.trace.statistics import Arrivals, arrivals_of
from quire.trace.store import RunWriter

__all__ = ["Progress", "SimulationResult", "simulate"]

_KEEP_WAITS = 1 << 20


def simulate(
    config: SimulationConfig, out: Path | None = None, *, force: bool = False, progress: Progress | None = None
) -> SimulationResult:
    """Run the simulation to its end, and write its trace to the directory `out` if one is given.

    Raises BadInput, and leaves nothing behind, if it cannot be run or `out` exists and is not to be replaced.
    """
    started = time.perf_counter()
    service = SERVICES.get(config.protocol)
    run: Run = (
        DynamicRun(config) if config.faults.words else _GroupRun(config) if service is None else ServiceRun(config, service)
    )
    with ExitStack() as stack:
        writer = stack.enter_context(RunWriter(out, run.name, force=force)) if out is not None else None
        run.go(writer, progress)
        if writer is not None:
            writer.finish(run.info())
    return run.result(time.perf_counter() - started, out)


def detect_ns(config: SimulationConfig) -> int:
    """How long after a crash the survivors know of it."""
    if config.faults.detect_ms is not None:
        return to_ns(config.faults.detect_ms, "the time to detect a crash")
    return 3 * parse_delays(config.network.delay, config.members).usual_ns_max()


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
            crashes=bool(config.faults.crashes),
            receipts=config.receipts,
        )
        self.senders = Senders(self.config, self.engine)
        self._schedule_faults()

    def _schedule_faults(self) -> None:
        faults, engine = self.config.faults, self.engine
        for pause in faults.pauses:
            engine.at(to_ns(pause.at_ms, "the time of a pause"), engine.pause, pause.member)
            engine.at(to_ns(pause.at_ms + pause.for_ms, "the end of a pause"), engine.resume, pause.member)
        draw = stream(self.config.seed, "crashes").random
        known_after_ns = detect_ns(self.config)

        def crash(member: int) -> None:
            engine.crash(member, known_after_ns, lambda copies: int(draw() * (copies + 1)))

        for each in faults.crashes:
            engine.at(to_ns(each.at_ms, "the time of a crash"), crash, each.member)

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
        alive = [site.member for site in sites if not site.crashed]
        crashed = tuple(site.member for site in sites if site.crashed)
        delivered = statistics.delivered[alive]
        # What survivors sent all must have for whom it is; of what a crashed member sent, survivors must have the same.
        everything = bool((delivered[:, alive] == statistics.due[np.ix_(alive, alive)]).all())
        same = all((delivered[:, origin] == delivered[0, origin]).all() for origin in crashed)
        unsent = sum(self.senders.unsent(member) + len(sites[member].inbox.local) for member in alive)
        held = sum(sites[member].protocol.held_back() for member in alive)
        return Outcome(
            complete=everything and same and not unsent and not held,
            messages=int(statistics.sent.sum()),
            deliveries=int(statistics.delivered.sum()),
            crashed=crashed,
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
        return dict(self.engine.links.counts) if self.engine.links is not None else {}
