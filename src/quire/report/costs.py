"""The cost section of a report: latencies, packets, and the number of messages in flight."""

from __future__ import annotations

import numpy as np

from quire.pipeline.columns import Integers
from quire.report import formatting
from quire.report.charts import Point, Series, bar_chart, line_chart
from quire.report.html import Html, join, table, tag
from quire.report.scan import BINS, Scan
from quire.trace.latency import Latencies

_BARS = 40
_SEPARATE_MEMBERS = 3


def section(found: Scan) -> Html:
    return join(
        tag("section", tag("h2", "What it cost"), _tiles(found), _packets(found), id="costs"),
        tag("section", tag("h2", "How long it took"), _latencies(found), _over_time(found), id="latency"),
    )


def _tile(value: str, name: str, note: str = "") -> Html:
    return tag("li", tag("b", value), tag("span", name), tag("small", note) if note else None)


def _tiles(found: Scan) -> Html:
    each = max(found.messages, 1)
    packets = sum(cost.packets for cost in found.packets.values())
    copies = sum(cost.copies for cost in found.packets.values())
    header = sum(cost.header_bytes for cost in found.packets.values())
    header_copied = sum(cost.header_bytes_copied for cost in found.packets.values())
    tiles = [
        _tile(f"{found.messages:,}", "messages", f"{formatting.number(found.payload_bytes / each)} bytes each"),
        _tile(f"{found.deliveries:,}", "deliveries"),
    ]
    if found.packets:
        with_copies = f"{formatting.number(copies / each)} with every copy"
        tiles.append(_tile(formatting.number(packets / each), "packets per message", with_copies))
        with_copies = f"{formatting.number(header_copied / each)} with every copy"
        tiles.append(_tile(formatting.number(header / each), "header bytes per message", with_copies))
    for where, distribution in (("at the sender", found.origin), ("elsewhere", found.remote)):
        if distribution:
            note = f"p99 {formatting.duration(distribution.quantile(99))}"
            tiles.append(_tile(formatting.duration(distribution.quantile(50)), f"median latency {where}", note))
    return tag("ul", *tiles, class_="tiles")


def _packets(found: Scan) -> Html:
    if not found.packets:
        return tag("p", "The trace records no packets.", class_="lead")
    each = max(found.messages, 1)
    rows: list[tuple[object, ...]] = [
        (
            name, f"{cost.packets:,}", formatting.number(cost.packets / each), formatting.number(cost.copies / each),
            formatting.number(cost.header_bytes / each), formatting.number(cost.header_bytes / max(cost.packets, 1)),
        )
        for name, cost in sorted(found.packets.items())
    ]  # fmt: skip
    head = ("packet", "sent", "per message", "copies per message", "header bytes per message", "header bytes each")
    return table(head, rows, numeric=frozenset(range(1, 6)))


def _latencies(found: Scan) -> Html:
    if found.axis != "time_ns":
        return tag("p", "The trace has no times, so latencies are unknown.", class_="lead")
    skewed = None
    if found.backwards:
        said = f"By the members' clocks {found.backwards:,} deliveries came before their sends, and count as zero"
        skewed = tag("p", f"{said}: the clocks differ.", class_="lead")
    charts = [
        _histogram(distribution, title)
        for distribution, title in (
            (found.origin, "From send to delivery at the sender"),
            (found.remote, "From send to delivery elsewhere"),
            (found.held, "From receipt to delivery elsewhere: held back"),
        )
        if distribution
    ]
    return join(skewed, tag("div", *charts, class_="charts"))


def _histogram(distribution: Latencies, title: str) -> Html:
    """A histogram with linear bins, or with logarithmic ones if the longest are much longer than most."""
    longest, usual = distribution.longest(), max(distribution.quantile(50), 1)
    if not longest:
        said = f"All {distribution.total():,} deliveries happened at the time of the send."
        return tag("div", tag("h3", title), tag("p", said, class_="facts-line"))
    log = longest > 40 * usual and distribution.quantile(1) > 0
    scale, unit = formatting.unit_for(longest)
    values = distribution.values / scale
    if log:
        # Zero has no logarithm: the few durations of zero are counted with the shortest.
        shortest = values[values > 0][0]
        edges = np.geomspace(shortest, values[-1] * 1.0001, _BARS + 1)
    else:
        edges = np.linspace(0, max(values[-1], 1e-9) * 1.0001, _BARS + 1)
    from_ = min(values[0], edges[0])
    heights, _ = np.histogram(np.maximum(values, edges[0]), bins=edges, weights=distribution.counts)
    total = distribution.total()
    bars = [
        (float(low), float(high), float(height) / total * 100, f"{_round(least)} to {_round(high)} {unit}: {int(height):,}")
        for low, least, high, height in zip(edges[:-1], [from_, *edges[1:-1]], edges[1:], heights, strict=True)
        if height
    ]
    ends = (0.0, float(edges[-1])) if not log else (float(edges[0]), float(edges[-1]))
    bars = [(ends[0], ends[0], 0.0, ""), *bars, (ends[1], ends[1], 0.0, "")]
    durations = [(name, distribution.quantile(hundredths)) for name, hundredths in (("median", 50), ("p90", 90), ("p99", 99))]
    facts = " · ".join(f"{name} {formatting.duration(duration)}" for name, duration in (*durations, ("max", longest)))
    chart = bar_chart(bars, title=title, x_label=unit, y_label="% of deliveries", log_x=log)
    return tag(
        "div",
        tag("h3", title),
        tag("p", f"{facts} · mean {formatting.duration(distribution.mean())}", class_="facts-line"),
        chart,
    )


def _round(value: float) -> str:
    return formatting.number(float(f"{value:.3g}"))


def _over_time(found: Scan) -> Html:
    parts = []
    if found.held_back is not None:
        parts.append(_levels(found, found.held_back, "Held back: received, not yet delivered"))
    parts.append(_levels(found, found.on_the_way, "In flight: sent, not yet delivered"))
    return tag("div", *parts, class_="charts")


def _levels(found: Scan, levels: Integers, title: str) -> Html:
    """A line for each member of a small group; the most and the mean of a large one."""
    span = max(found.end - found.start, 1)
    scale, unit = formatting.unit_for(span) if found.axis == "time_ns" else (1.0, "logical time")
    times = [(number + 1) * span / BINS / scale for number in range(BINS)]

    def series(name: str, values: Integers) -> Series:
        return Series(name=name, points=tuple(map(Point, times, map(float, values))), marks=False)

    if found.members <= _SEPARATE_MEMBERS:
        lines = [series(f"member {member}", levels[member]) for member in range(found.members)]
    else:
        lines = [series("the most of any member", levels.max(axis=0)), series("mean of all members", levels.mean(axis=0))]
    chart = line_chart(lines, title=title, x_label=unit, y_label="messages")
    worst = int(levels.max(axis=1).argmax()) if levels.size else 0
    most = int(levels[worst].max()) if levels.size else 0
    note = f"At most {most:,}, at member {worst}." if most else "None at the end of any interval."
    return tag("div", tag("h3", title), tag("p", note, class_="facts-line"), chart)
