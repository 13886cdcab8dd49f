"""One simulated run from its settings to its result and its trace."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from contextlib import ExitStack
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

import msgspec

from quire.model.orders import implied_by, in_order
from quire.protocols import registry
from quire.simulation.config import SimulationConfig, check
from quire.simulation.delays import parse_delays, to_ns
from quire.simulation.engine import GROUP_NAME, Engine
from quire.simulation.network import Network, Split
from quire.simulation.randomness import stream
from quire.simulation.workload import Senders
from quire.trace.schema import Outcome, RunInfo
from quire.trace.statistics import Statistics, Summary
from quire.trace.store import RunWriter

_KEEP_RECORDS = 1 << 18
_KEEP_WAITS = 1 << 20

Progress = Callable[[int, int], None]
"""Is told, now and then, how many messages were sent and how many will be."""


class SimulationResult(Summary, frozen=True, kw_only=True):
    """Latency is simulated time: elsewhere than at the origin, from the receipt of the packet that carried the message."""

    seed: int
    link_packets: dict[str, int]
    simulated_ms: float


def simulate(
    config: SimulationConfig, out: Path | None = None, *, force: bool = False, progress: Progress | None = None
) -> SimulationResult:
    """Run the simulation to its end, and write its trace to the directory `out` if one is given.

    Raises BadInput, and leaves nothing behind, if it cannot be run or `out` exists and is not to be replaced.
    """
    started = time.perf_counter()
    run = _Run(config)
    with ExitStack() as stack:
        writer = stack.enter_context(RunWriter(out, run.name, force=force)) if out is not None else None
        run.go(writer, progress)
        if writer is not None:
            writer.finish(run.info())
    return run.result(time.perf_counter() - started, out)


def make_network(config: SimulationConfig) -> Network:
    """The network that the settings and the seed describe."""
    network = config.network
    splits = [
        Split(
            each.sides, to_ns(each.at_ms, "the time of a partition"), to_ns(each.at_ms + each.for_ms, "the end of a partition")
        )
        for each in config.faults.partitions
    ]
    return Network(
        config.members,
        parse_delays(network.delay, config.members),
        stream(config.seed, "network"),
        reorder=network.reorder,
        loss=network.loss,
        duplicate=network.duplicate,
        splits=splits,
    )


def detect_ns(config: SimulationConfig) -> int:
    """How long after a crash the survivors know of it."""
    if config.faults.detect_ms is not None:
        return to_ns(config.faults.detect_ms, "the time to detect a crash")
    return 3 * parse_delays(config.network.delay, config.members).usual_ns_max()


class _Run:
    def __init__(self, config: SimulationConfig) -> None:
        check(config)
        self.entry = registry.find(config.protocol)
        options = registry.read_options(config.protocol, config.options)
        delays = parse_delays(config.network.delay, config.members).text()
        # From here on the settings say everything themselves: defaults filled in, no file referred to.
        self.config = msgspec.structs.replace(
            config,
            options=msgspec.to_builtins(options),
            network=msgspec.structs.replace(config.network, delay=delays),
        )
        settings = msgspec.json.encode(self.config, order="sorted")
        self.name = f"{config.protocol}-{config.seed}-{sha256(settings).hexdigest()[:8]}"
        members = range(config.members)
        self.engine = Engine(
            [registry.create(config.protocol, me, config.members, options) for me in members],
            make_network(self.config),
            raw=config.network.links == "raw",
            crashes=bool(config.faults.crashes),
        )
        self.senders = Senders(self.config, self.engine)
        self.statistics = Statistics(config.members)
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
        """Run to the end, handing on what is recorded as it grows."""
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
            if everything or site.recorder.pending_records() >= _KEEP_RECORDS:
                statistics.absorb(site.recorder)
                if writer is not None:
                    writer.flush((site.recorder,), everything=True)
                else:
                    site.recorder.drop()
        if everything or len(engine.remote_waits) >= _KEEP_WAITS:
            statistics.origin.add(engine.origin_waits)
            statistics.remote.add(engine.remote_waits)

    def outcome(self) -> Outcome:
        statistics, sites = self.statistics, self.engine.sites
        alive = [site.member for site in sites if not site.crashed]
        crashed = tuple(site.member for site in sites if site.crashed)
        delivered = statistics.delivered[alive]
        # What survivors sent everybody must have; of what a crashed member sent, survivors must have the same.
        everything = all((delivered[:, origin] == sites[origin].next_number).all() for origin in alive)
        same = all((delivered[:, origin] == delivered[0, origin]).all() for origin in crashed)
        unsent = sum(map(self.senders.unsent, alive))
        held = sum(sites[member].protocol.held_back() for member in alive)
        return Outcome(
            complete=everything and same and not unsent and not held,
            messages=int(statistics.sent.sum()),
            deliveries=int(statistics.delivered.sum()),
            crashed=crashed,
        )

    def info(self) -> RunInfo:
        config = self.config
        return RunInfo(
            run=self.name,
            source="simulation",
            protocol=config.protocol,
            options=config.options,
            members=config.members,
            groups={GROUP_NAME: tuple(range(config.members))},
            promises=in_order(implied_by(self.entry.protocol.promises)),
            seed=config.seed,
            settings={name: msgspec.to_builtins(getattr(config, name)) for name in ("network", "workload", "faults")},
            versions={"quire": version("quire")},
            outcome=self.outcome(),
        )

    def result(self, wall_s: float, out: Path | None) -> SimulationResult:
        statistics, outcome = self.statistics, self.outcome()
        return SimulationResult(
            run=self.name,
            protocol=self.config.protocol,
            options=self.config.options,
            members=self.config.members,
            seed=self.config.seed,
            messages=outcome.messages,
            deliveries=outcome.deliveries,
            complete=outcome.complete,
            crashed=outcome.crashed,
            packets=statistics.packet_counts(),
            packets_point_to_point=statistics.copy_counts(),
            link_packets=dict(self.engine.links.counts) if self.engine.links is not None else {},
            latency=statistics.latency(),
            header_bytes=statistics.header_bytes,
            header_bytes_point_to_point=statistics.header_bytes_point_to_point,
            simulated_ms=statistics.end_ns / 1_000_000,
            wall_s=wall_s,
            digest=statistics.digest(),
            trace=str(out) if out is not None else None,
        )
