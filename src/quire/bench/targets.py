"""The performance targets: for three members on two cores, or the closest configuration that was measured."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from quire.bench.measure import ALL_SEND, DURABLE_LATENCY, ONE_A_CALL, QUIRE_LATENCY, Results

_SEQUENCERS = (
    ("quire sequencer", 64, "64 B", 0.8),
    ("quire sequencer", 1024, "1 KiB", 1.3),
    ("quire sequencer direct", 1024, "1 KiB", 1.8),
)


class Target(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    wanted: str
    measured: float
    met: bool


def judge(results: Results) -> tuple[Target, ...]:
    """The targets for which there is a measurement."""
    return tuple(_judge(results))


def _judge(results: Results) -> Iterator[Target]:
    found = {(row.contender, row.size): row for row in results.throughput}
    if runs := found.get(("quire runs", 64)):
        yield _at_least("runs, 64 B: deliveries/s", runs.deliveries_per_s, 1e6)
        yield from _ratio("runs, 64 B: to zmq 64", runs.to_zeromq, 1.0)
        yield _at_most("runs, 64 B: CPU s per million", runs.cpu_s_per_million, 0.5)
    if messages := found.get(("quire messages", 64)):
        yield from _ratio("messages, 64 B: to the ceiling with objects", messages.to_ceiling, 0.6)
    if calls := found.get((ONE_A_CALL, 64)):
        yield from _ratio("one message a call, 64 B: to zmq 1", calls.to_zeromq, 1.5)
        yield _at_most("one message a call, 64 B: CPU s per million", calls.cpu_s_per_million, 1.0)
    if large := found.get(("quire runs", 1024)):
        yield from _ratio("runs, 1 KiB: to zmq 64", large.to_zeromq, 0.8)
    if trace := found.get(("quire trace", 64)):
        yield from _ratio("trace, 64 B: to runs without", trace.to_runs, 0.9)
    for size, shown, least in ((64, "64 B", 0.75), (1024, "1 KiB", 0.65)):
        if secret := found.get(("quire secret", size)):
            yield from _ratio(f"secret, {shown}: to runs without", secret.to_runs, least)
    for contender, size, shown, least in _SEQUENCERS:
        if sequencer := found.get((contender, size)):
            yield from _ratio(f"{contender.removeprefix('quire ')}, {shown}: to zmq 64", sequencer.to_zeromq, least)
    if runs is not None:
        yield from _ratio("runs, 64 B: to a fixed group", runs.to_fixed, 0.7)
    if fast := found.get(("quire fast", 64)):
        yield from _ratio("fast, 64 B: to a fixed group", fast.to_fixed, 0.9)
    if journal := found.get(("quire journal", 64)):
        yield from _ratio("journal, 64 B: to plain appends", journal.to_disk, 0.5)
    for latency in results.latency:
        if latency.contender == QUIRE_LATENCY and latency.to_raw is not None:
            yield _at_most("latency p50: to the raw round trip", latency.to_raw, 2.0)
        if latency.contender == ALL_SEND and latency.mean_to_raw is not None and latency.p99_to_raw is not None:
            yield _at_most("all send: mean latency to the raw round trip", latency.mean_to_raw, 2.5)
            yield _at_most("all send: p99 latency to the raw round trip", latency.p99_to_raw, 8.0)
        if latency.contender == DURABLE_LATENCY and latency.to_sync is not None:
            yield _at_most("durable latency p50: to one sync of the disk", latency.to_sync, 3.0)


def _ratio(name: str, measured: float | None, least: float) -> Iterator[Target]:
    if measured is not None:
        yield _at_least(name, measured, least)


def _at_least(name: str, measured: float, least: float) -> Target:
    return Target(name=name, wanted=f">= {least:,.7g}", measured=measured, met=measured >= least)


def _at_most(name: str, measured: float, most: float) -> Target:
    return Target(name=name, wanted=f"<= {most:,.7g}", measured=measured, met=measured <= most)
