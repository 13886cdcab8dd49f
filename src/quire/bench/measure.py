"""Measures all contenders in several rounds, and computes the results.

Machines are never quite idle. So all contenders take part in every round, one after the other; a ratio compares two
measurements of the same round; and the median over the rounds is reported.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean, median

import msgspec

from quire.bench.assignment import EVERYBODY, Assignment, Report
from quire.bench.load import SIZE_MIN
from quire.bench.processes import BenchFailed, Processes
from quire.files.scratch import Scratch
from quire.live.runs.fleet import free_addresses
from quire.model.errors import BadInput

MEMBERS_MAX = 16
ROUNDS_MAX = 100
SECONDS_MAX = 600.0
SIZE_MAX = 1 << 16
QUIRE_LATENCY = "quire"
DURABLE_LATENCY = "quire, journal"
ALL_SEND = "quire, all send"
RAW, RAW_ALL_SEND = "raw round trip", "raw round trip, all send"

OURS = (
    "quire runs", "quire fast", "quire trace", "quire secret", "quire messages", "quire sequencer", "quire sequencer direct"
)  # fmt: skip
ONE_A_CALL = "quire calls"
"""Every message is sent with its own call, and received as an object."""
IN_ONE_SIZE = ("quire fixed", "quire journal", ONE_A_CALL)
"""Contenders that are measured only with the first of the sizes."""
CEILINGS = ("ceiling objects", "ceiling opaque")
ZEROMQ = ("zmq 1", "zmq 64")
SEQUENCERS = {
    **dict.fromkeys(("zmq 1", "zmq 64", "zmq latency"), "zmq sequencer"),
    "quire sequencer": "quire combined sequencer",
    "quire sequencer direct": "quire combined sequencer direct",
}
"""The additional process that a contender needs."""
ON_DISK = frozenset({"quire trace", "quire journal", "quire durable latency"})
"""The contenders that write files."""
OF_OBJECTS = frozenset({"quire messages", ONE_A_CALL, "zmq 1"})
"""The contenders that make an object of every message, and are compared with the ceiling that does, too."""

Say = Callable[[str], None]


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """What to measure. The load of each member is a number of messages or, if that is None, of seconds."""

    members: int = 3
    sizes: tuple[int, ...] = (64, 1024)
    messages: int | None = None
    seconds: float = 2.0
    rounds: int = 5
    round_trips: int = 2000
    rivals: bool = True

    def check(self) -> None:
        """Raises BadInput in one sentence."""
        limits: tuple[tuple[str, float, float, float], ...] = (
            ("members", self.members, 2, MEMBERS_MAX),
            ("rounds", self.rounds, 1, ROUNDS_MAX),
            ("seconds", self.seconds, 0.05, SECONDS_MAX),
            ("round trips", self.round_trips, 1, 1 << 20),
            ("messages", 1 if self.messages is None else self.messages, 1, 1 << 30),
            *(("size", size, SIZE_MIN, SIZE_MAX) for size in self.sizes),
        )
        for name, value, least, most in limits:
            if not least <= value <= most:
                raise BadInput(f"{name} must be from {least:g} to {most:g}, not {value:g}")


class Throughput(msgspec.Struct, frozen=True, kw_only=True):
    """Medians over the rounds. Ratios are of deliveries a second."""

    contender: str
    size: int
    deliveries_per_s: float
    """Of each member, until the slowest has everything."""
    cpu_s_per_million: float
    """Processor time of all processes together for a million deliveries."""
    to_runs: float | None = None
    to_fixed: float | None = None
    to_zeromq: float | None = None
    """With 64 messages in a frame; of what is sent by a call each, with one."""
    to_ceiling: float | None = None
    to_disk: float | None = None
    """Of a journal: to plain appends of the same bytes."""


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    contender: str
    mean_us: float
    p50_us: float
    p99_us: float
    to_raw: float | None = None
    """The median, to that of raw round trips with as many senders; and likewise:"""
    mean_to_raw: float | None = None
    p99_to_raw: float | None = None
    to_sync: float | None = None
    """Where a journal is kept: to one sync of the disk."""


class Results(msgspec.Struct, frozen=True, kw_only=True):
    config: Config
    cores: int
    load_before: float
    load_after: float
    throughput: tuple[Throughput, ...]
    latency: tuple[Latency, ...]
    left_out: str
    """A sentence on rivals that could not take part."""


class _Round(msgspec.Struct, frozen=True):
    deliveries_per_s: float
    cpu_s_per_million: float
    to_disk: float | None = None


async def measure(config: Config, say: Say) -> Results:
    """Measure everything; `say` is told what is being done. Raises BadInput, or BenchFailed where a contender is not
    what it claims to be."""
    config.check()
    rivals, left_out = rivals_for(config)
    load_before = _load_average()
    throughput: list[Throughput] = []
    for size in config.sizes:
        contenders = (*OURS, *(IN_ONE_SIZE if size == config.sizes[0] else ()), *rivals)
        rounds: dict[str, list[_Round]] = {contender: [] for contender in contenders}
        for number in range(config.rounds):
            for contender in contenders:
                say(f"{size} B, round {number + 1} of {config.rounds}: {contender}")
                rounds[contender].append(await move_load(contender, size, config))
        throughput += [_throughput(contender, size, rounds) for contender in contenders]
    return Results(
        config=config,
        cores=os.cpu_count() or 1,
        load_before=load_before,
        load_after=_load_average(),
        throughput=tuple(throughput),
        latency=await _latencies(config, rivals, say),
        left_out=left_out,
    )


def rivals_for(config: Config) -> tuple[tuple[str, ...], str]:
    """Whom Quire is measured beside, and a sentence on those who cannot take part."""
    if not config.rivals:
        return (), ""
    if find_spec("zmq") is None:
        return CEILINGS, "ZeroMQ is not installed, so it is left out; install quire[bench] to compare with it"
    return (*CEILINGS, *ZEROMQ), ""


async def move_load(contender: str, size: int, config: Config) -> _Round:
    """One round of one contender."""
    with Scratch.temporary("bench") as scratch:
        load = {"size": size, "messages": config.messages, "seconds": config.seconds}
        assignments = _assignments(contender, config, scratch.path, **load)
        reports = await Processes(assignments, config.seconds).run()
    members = reports[: config.members]
    check(contender, members)
    delivered, elapsed_s = members[0].delivered, max(report.elapsed_s for report in members)
    plain = [report.plain_s for report in members if report.plain_s is not None]
    return _Round(
        delivered / elapsed_s,
        sum(report.cpu_s for report in reports) / (delivered * len(members) / 1e6),
        max(plain) / elapsed_s if plain else None,
    )


def check(contender: str, members: Sequence[Report]) -> None:
    """Raise BenchFailed unless all members delivered everything that was sent, in the order that is promised."""
    sent = sum(report.sent for report in members)
    for report in members:
        if report.delivered != sent:
            raise BenchFailed(f"{contender!r} lost messages: member {report.me} delivered {report.delivered} of {sent}")
        if report.digests != members[0].digests:
            raise BenchFailed(f"{contender!r} is out of order: members {members[0].me} and {report.me} delivered differently")


def _assignments(contender: str, config: Config, scratch: Path | None = None, **load: object) -> list[Assignment]:
    """One assignment a process: the members, and the sequencer where there is one."""
    sequencer = SEQUENCERS.get(contender)
    addresses = free_addresses(2 if contender.startswith("zmq") else config.members + (sequencer is not None))
    each = msgspec.convert(
        {"contender": contender, "me": 0, "members": config.members, "addresses": addresses, **load}, type=Assignment
    )
    directory = str(scratch) if contender in ON_DISK else None
    assignments = [msgspec.structs.replace(each, me=me, directory=directory) for me in range(config.members)]
    if sequencer is not None:
        assignments.append(msgspec.structs.replace(each, contender=sequencer, me=config.members))
    return assignments


def _throughput(contender: str, size: int, rounds: dict[str, list[_Round]]) -> Throughput:
    def ratio_to(other: str) -> float | None:
        if other not in rounds:
            return None
        pairs = zip(rounds[contender], rounds[other], strict=True)
        return median(mine.deliveries_per_s / theirs.deliveries_per_s for mine, theirs in pairs)

    return Throughput(
        contender=contender,
        size=size,
        deliveries_per_s=median(each.deliveries_per_s for each in rounds[contender]),
        cpu_s_per_million=median(each.cpu_s_per_million for each in rounds[contender]),
        to_runs=ratio_to("quire runs"),
        to_fixed=ratio_to("quire fixed"),
        to_zeromq=ratio_to("zmq 1" if contender == ONE_A_CALL else "zmq 64"),
        to_ceiling=ratio_to("ceiling objects" if contender in OF_OBJECTS or "objects" in contender else "ceiling opaque"),
        to_disk=_median(each.to_disk for each in rounds[contender]),
    )


def _median(figures: Iterable[float | None]) -> float | None:
    known = [figure for figure in figures if figure is not None]
    return median(known) if known else None


class _Trips(msgspec.Struct, frozen=True):
    mean_us: float
    p50_us: float
    p99_us: float
    to_sync: float | None

    @classmethod
    def of(cls, reports: Sequence[Report]) -> _Trips:
        """Of whoever has sent any."""
        took = sorted(trip for report in reports for trip in report.round_trips_us)
        syncs = [sync for report in reports for sync in report.syncs_us]
        p50_us = took[len(took) // 2]
        return cls(fmean(took), p50_us, took[len(took) * 99 // 100], p50_us / median(syncs) if syncs else None)


async def _latencies(config: Config, rivals: Sequence[str], say: Say) -> tuple[Latency, ...]:
    """A group as an application gets it, which delivers what most members have; one that delivers fast; both without
    lookahead, where the last among equals waits for fresh acknowledgements of all with every message, and the first with every
    other; and a group whose members all send at once, each waiting for its own messages."""
    last = config.members - 1
    contenders: list[tuple[str, str, int, int | None]] = []
    contenders += [(RAW, "raw latency", 0, None), (RAW_ALL_SEND, "raw latency", EVERYBODY, None)] if rivals else []
    contenders += [
        (ALL_SEND, "quire latency", EVERYBODY, None),
        (QUIRE_LATENCY, "quire latency", last, None),
        ("quire, fast", "quire fast latency", last, None),
        ("quire, fast, lookahead=0", "quire fast latency", last, 0),
        ("quire, lookahead=0", "quire latency", last, 0),
        ("quire, lookahead=0, first member", "quire latency", 0, 0),
        (DURABLE_LATENCY, "quire durable latency", 0, None),
    ]
    contenders += [("zmq 1", "zmq latency", 0, None)] if "zmq 1" in rivals else []
    rounds: dict[str, list[_Trips]] = {name: [] for name, *_ in contenders}
    for number in range(config.rounds):
        for name, contender, sender, lookahead in contenders:
            say(f"latency, round {number + 1} of {config.rounds}: {name}")
            load = {"round_trips": config.round_trips, "sender": sender, "lookahead": lookahead}
            with Scratch.temporary("bench") as scratch:
                reports = await Processes(_assignments(contender, config, scratch.path, **load), 0.0).run()
            rounds[name].append(_Trips.of(reports))
    return tuple(_latency(name, rounds) for name in rounds)


def _latency(name: str, rounds: dict[str, list[_Trips]]) -> Latency:
    each, raw = rounds[name], rounds.get(RAW_ALL_SEND if name in (ALL_SEND, RAW_ALL_SEND) else RAW)

    def to_raw(figure: Callable[[_Trips], float]) -> float | None:
        return None if raw is None else median(figure(mine) / figure(base) for mine, base in zip(each, raw, strict=True))

    return Latency(
        contender=name,
        mean_us=median(trips.mean_us for trips in each),
        p50_us=median(trips.p50_us for trips in each),
        p99_us=median(trips.p99_us for trips in each),
        to_raw=to_raw(lambda trips: trips.p50_us),
        mean_to_raw=to_raw(lambda trips: trips.mean_us),
        p99_to_raw=to_raw(lambda trips: trips.p99_us),
        to_sync=_median(trips.to_sync for trips in each),
    )


def _load_average() -> float:
    try:
        return os.getloadavg()[0]
    except OSError:
        return -1.0
