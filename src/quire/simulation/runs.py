"""The common base of all simulated runs: settings, statistics, description and result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import ClassVar, Literal

import msgspec

from quire.model.moments import Happened
from quire.model.orders import Guarantee, implied_by, in_order
from quire.simulation.config import SimulationConfig, check
from quire.simulation.delays import parse_delays, to_ns
from quire.simulation.network import Network, Split
from quire.simulation.randomness import stream
from quire.trace.log import EventLog
from quire.trace.schema import Outcome, RunInfo
from quire.trace.statistics import Arrivals, Statistics, Summary, per_message
from quire.trace.store import RunWriter
from quire.trace.tables import as_records

_KEEP_RECORDS = 1 << 18

Progress = Callable[[int, int], None]
"""Called from time to time with the number of messages sent so far and in total."""


class SimulationResult(Summary, frozen=True, kw_only=True):
    """The result of a simulation. Latency is in simulated time; at other members than the origin, for groups, it is measured
    from the receipt of the packet that carried the message. `details` are specific to the protocol or service."""

    seed: int
    link_packets: dict[str, int]
    simulated_ms: float
    details: dict[str, object]
    happened: tuple[Happened, ...] = ()
    """The faults of members of a group with changing membership, and the views that resulted."""


def make_network(config: SimulationConfig, processes: int | None = None) -> Network:
    """The network that the settings and the seed describe, between the members or more processes than they are."""
    network, processes = config.network, config.members if processes is None else processes
    splits = [
        Split(
            each.sides, to_ns(each.at_ms, "the time of a partition"), to_ns(each.at_ms + each.for_ms, "the end of a partition")
        )
        for each in config.faults.partitions
    ]
    return Network(
        processes,
        parse_delays(network.delay, processes),
        stream(config.seed, "network"),
        reorder=network.reorder,
        loss=network.loss,
        duplicate=network.duplicate,
        splits=splits,
    )


class Run(ABC):
    """One run from its settings to its result."""

    def __init__(self, config: SimulationConfig, options: msgspec.Struct, processes: int) -> None:
        check(config, processes)
        delays = parse_delays(config.network.delay, processes).text()
        # From here on the settings are self-contained: defaults are filled in, and no file is referred to.
        self.config = msgspec.structs.replace(
            config,
            options=msgspec.to_builtins(options),
            network=msgspec.structs.replace(config.network, delay=delays),
        )
        settings = msgspec.json.encode(self.config, order="sorted")
        self.name = f"{config.protocol}-{config.seed}-{sha256(settings).hexdigest()[:8]}"
        self.statistics = Statistics(processes)

    @abstractmethod
    def go(self, writer: RunWriter | None, progress: Progress | None) -> None:
        """Run to the end, handing on what is recorded as it grows."""

    @abstractmethod
    def outcome(self) -> Outcome: ...

    @abstractmethod
    def promises(self) -> Iterable[Guarantee]: ...

    @abstractmethod
    def groups(self) -> Mapping[str, tuple[int, ...]]: ...

    remote_since: ClassVar[Literal["sending", "receipt"]] = "sending"
    """From when latency at other members than the origin is measured."""

    def header_entries(self) -> int | None:
        """The number of message counters in the headers of all copies; None if not counted."""
        return None

    def arrivals(self) -> Arrivals | None:
        """Packets that were sent to each member; None if not counted."""
        return None

    def link_packets(self) -> dict[str, int]:
        return {}

    def settings(self) -> dict[str, object]:
        """Settings that are specific to this kind of run."""
        return {}

    def details(self) -> dict[str, object]:
        return {}

    def happened(self) -> tuple[Happened, ...]:
        return ()

    def take(self, log: EventLog, writer: RunWriter | None, *, everything: bool) -> None:
        """Add the recorded events to the statistics and write them, once there are many, or if `everything` is set."""
        if everything or log.pending() >= _KEEP_RECORDS:
            records = as_records(log.take())
            self.statistics.absorb(log.process, log.names, records)
            if writer is not None:
                writer.write(log.process, log.names, records)
                if everything:
                    writer.close(log.process)

    def info(self) -> RunInfo:
        config = self.config
        return RunInfo(
            run=self.name,
            source="simulation",
            protocol=config.protocol,
            options=config.options,
            members=self.statistics.members,  # All processes that have a trace, of which a service has more than members.
            groups=dict(self.groups()),
            promises=in_order(implied_by(self.promises())),
            seed=config.seed,
            settings={name: msgspec.to_builtins(getattr(config, name)) for name in ("network", "workload", "faults")}
            | self.settings(),
            versions={"quire": version("quire")},
            outcome=msgspec.structs.replace(self.outcome(), happened=self.happened()),
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
            link_packets=self.link_packets(),
            latency=statistics.latency(self.remote_since),
            header_bytes=statistics.header_bytes,
            header_bytes_point_to_point=statistics.header_bytes_point_to_point,
            header_bytes_per_message=statistics.header_bytes_point_to_point / max(outcome.messages, 1),
            header_entries_per_message=per_message(self.header_entries(), outcome.messages),
            arrivals=self.arrivals(),
            details=self.details(),
            happened=self.happened(),
            simulated_ms=statistics.end_ns / 1_000_000,
            wall_s=wall_s,
            digest=statistics.digest(),
            trace=str(out) if out is not None else None,
        )
