"""The experiment that runs a protocol in the seeded simulator: costs and latency of messages.

A protocol and its options are one text, `single-phase acks=basic`, which is also its name in figures. Load is the number of
messages per second that each sender submits. Latency is given in milliseconds and, so that runs over different networks can be
compared, in multiples of the network's mean delay. So that a numeric option can be an axis, too, `option` names one and `value`
is its value. Every message goes to everybody unless the shares say otherwise, so that all protocols do the same work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from quire.model.errors import BadInput
from quire.protocols import registry
from quire.simulation.config import (
    NetworkConfig,
    SimulationConfig,
    WorkloadConfig,
    check,
    fill_shares,
    parse_members,
    parse_options,
)
from quire.simulation.delays import NANOSECONDS_PER_MS, Between, Constant, Exponential, parse_delays
from quire.simulation.services import SERVICES
from quire.simulation.simulate import SimulationResult, simulate
from quire.sweep.experiments.contract import Experiment, Quantity
from quire.trace.latency import Latency
from quire.trace.statistics import MULTICASTS

MS_PER_S = 1000.0
EVERYBODY = "everybody"


class Cell(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The names and meanings are those of `quire simulate`, but for the two that the module explains."""

    protocol: str = "single-phase"
    members: int = 3
    load: float = 20.0
    delay: str = "constant:10"
    loss: float = 0.0
    seed: int = 0
    messages: int = 100
    senders: str = EVERYBODY
    spacing: str = "even"
    burst: int = 1
    batch: int = 1
    size: int = 64
    mode: str = "pipelined"
    reorder: bool = False
    duplicate: float = 0.0
    option: str = ""
    value: int = 0
    broadcast: float = 1.0
    multicast: float = 0.0


def configure(cell: Cell) -> SimulationConfig:
    """The simulation that a cell stands for; raises BadInput if its texts say nothing that can be simulated."""
    name, *options = cell.protocol.split()
    if cell.option:
        options.append(f"{cell.option}={cell.value}")
    if not 0 < cell.load < float("inf"):
        raise BadInput(f"load must be a number of messages a second above 0, not {cell.load}")
    if cell.delay.startswith("matrix"):
        raise BadInput("a sweep does not support delay matrices; use quire simulate")
    return SimulationConfig(
        protocol=name,
        options=parse_options(options),
        members=cell.members,
        seed=cell.seed,
        network=NetworkConfig(delay=cell.delay, reorder=cell.reorder, loss=cell.loss, duplicate=cell.duplicate),
        workload=WorkloadConfig(
            senders=None if cell.senders == EVERYBODY else parse_members(cell.senders),
            messages=cell.messages,
            interval_ms=MS_PER_S / cell.load,
            spacing=cell.spacing,
            burst=cell.burst,
            batch=cell.batch,
            size=cell.size,
            mode=cell.mode,
            broadcast=cell.broadcast,
            multicast=cell.multicast,
        ),
    )


def check_cell(cell: Cell) -> None:
    if not cell.protocol.split():
        raise BadInput("protocol must be a name, and its options after it")
    config = configure(cell)
    if service := SERVICES.get(config.protocol):
        options = registry.convert_options(config.protocol, service.options, config.options)
        check(config, service.scenario.processes(config, options))
        return
    check(config)
    # A protocol may refuse a group of this size, which it says when it is created.
    protocol = registry.create(config.protocol, 0, config.members, config.options)
    fill_shares(config.workload, addressed=protocol.addressed)


def mean_delay_ms(text: str) -> float:
    """How long a packet travels on average."""
    model = parse_delays(text, 1).between(0, 0)
    match model:
        case Constant():
            return model.delay_ns / NANOSECONDS_PER_MS
        case Between():
            return (model.low_ns + model.high_ns) / 2 / NANOSECONDS_PER_MS
        case Exponential():
            return model.mean_ns / NANOSECONDS_PER_MS


def _work(cell: Cell) -> float:
    """Deliveries and the packets around them grow with the square of the group; a bad network adds its repair."""
    senders = cell.members if cell.senders == EVERYBODY else cell.senders.count(",") + 1
    return cell.messages * senders * cell.members**2 * (2.0 if cell.loss or cell.reorder else 1.0)


def _choices(setting: str) -> Sequence[str] | None:
    return tuple(registry.PROTOCOLS) if setting == "protocol" else None


def _per_message(total: float, result: SimulationResult) -> float:
    return total / max(result.messages, 1)


def _latency(end: str, which: str, *, in_delays: bool = False) -> Quantity:
    def of(cell: Cell, result: SimulationResult) -> float | None:
        latency: Latency | None = getattr(result.latency, end)
        if latency is None:
            return None
        value: float = getattr(latency, which)
        if not in_delays:
            return value
        delay = mean_delay_ms(cell.delay)
        return value / delay if delay else None

    where = "from submission to delivery at the origin" if end == "origin" else "from receipt to delivery elsewhere"
    suffix, unit = ("_delays", "delays") if in_delays else ("_ms", "ms")
    return Quantity(f"{end}_{which}{suffix}", unit, f"latency {where}: {which}", of)


def _detail(name: str) -> Callable[[Cell, SimulationResult], float | None]:
    """A number that only some services say of a run."""

    def of(_: Cell, result: SimulationResult) -> float | None:
        value = result.details.get(name)
        return float(value) if isinstance(value, int | float) else None

    return of


def _busiest_sequencer(_: Cell, result: SimulationResult) -> float | None:
    load = result.details.get("load")
    return max(load.values()) / max(sum(load.values()), 1) if isinstance(load, dict) and load else None


def _aborts(_: Cell, result: SimulationResult) -> float | None:
    committed, aborted = result.details.get("committed"), result.details.get("aborted")
    if not isinstance(committed, int) or not isinstance(aborted, int):
        return None
    return aborted / max(committed + aborted, 1)


def _hottest(_: Cell, result: SimulationResult) -> float | None:
    return None if result.arrivals is None else max(result.arrivals.per_site) / max(result.messages, 1)


_QUANTITIES = (
    Quantity("sent", "", "messages sent by all senders together", lambda _, r: r.messages),
    Quantity("deliveries", "", "deliveries at all members together", lambda _, r: r.deliveries),
    Quantity("complete", "", "1 if every message reached every member, otherwise 0", lambda _, r: float(r.complete)),
    Quantity(
        "multicasts", "per message", "packets, counting a multicast once",
        lambda _, r: _per_message(r.packets[MULTICASTS], r),
    ),
    Quantity(
        "packets", "per message", "packets, counting every copy",
        lambda _, r: _per_message(sum(r.packets_point_to_point.values()), r),
    ),
    Quantity("acks", "per message", "multicast acknowledgements", lambda _, r: _per_message(r.packets.get("ACK", 0), r)),
    Quantity(
        "ack_packets", "per message", "acknowledgements and relays of them, counting every copy",
        lambda _, r: _per_message(sum(r.packets_point_to_point.get(name, 0) for name in ("ACK", "REL")), r),
    ),
    Quantity(
        "repair_packets", "per message", "what reliable links added to them",
        lambda _, r: _per_message(sum(r.link_packets.values()), r),
    ),
    Quantity(
        "header_bytes", "bytes per message", "header bytes, counting a multicast once",
        lambda _, r: _per_message(r.header_bytes, r),
    ),
    Quantity(
        "header_bytes_point_to_point", "bytes per message", "header bytes, counting every copy",
        lambda _, r: _per_message(r.header_bytes_point_to_point, r),
    ),
    *(_latency(end, which) for end in ("origin", "remote") for which in ("mean", "p50", "p99", "max")),
    *(_latency(end, which, in_delays=True) for end in ("origin", "remote") for which in ("mean", "max")),
    Quantity("header_entries", "entries per message", "matrix entries in headers", lambda _, r: r.header_entries_per_message),
    Quantity("hottest", "packets per message", "what arrives over the network at the busiest member", _hottest),
    Quantity("sequencer_load", "of all messages", "what the busiest sequencer numbers", _busiest_sequencer),
    Quantity("longest_queue", "messages", "the most that waited at a sequencer", _detail("longest_queue")),
    Quantity("carried_out", "of all requests", "requests of transactions that were carried out, not omitted", _detail("ratio")),
    Quantity("queue_depth", "requests", "how many requests waited together, on average", _detail("queue_depth")),
    Quantity("abort_share", "of all tries", "tries of transactions that were aborted", _aborts),
    Quantity("simulated_ms", "ms", "virtual time of the last event", lambda _, r: r.simulated_ms),
)  # fmt: skip

SIMULATE = Experiment(
    name="simulate",
    summary="runs in the seeded simulator",
    cell=Cell,
    quantities=_QUANTITIES,
    check=check_cell,
    measure=lambda cell: simulate(configure(cell)),
    work=_work,
    choices=_choices,
)
