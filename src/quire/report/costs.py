"""What messages took and cost: latencies, packets, and how many were on their way."""

from __future__ import annotations

import numpy as np

from quire.report import words
from quire.report.charts import Point, Series, bar_chart, line_chart
from quire.report.columns import Integers
from quire.report.html import Html, join, table, tag
from quire.report.scan import BINS, Distribution, Scan

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
        _tile(f"{found.messages:,}", "messages", f"{words.number(found.payload_bytes / each)} bytes each"),
        _tile(f"{found.deliveries:,}", "deliveries"),
    ]
    if found.packets:
        with_copies = f"{words.number(copies / each)} with every copy"
        tiles.append(_tile(words.number(packets / each), "packets per message", with_copies))
        with_copies = f"{words.number(header_copied / each)} with every copy"
        tiles.append(_tile(words.number(header / each), "header bytes per message", with_copies))
    for place, distribution in (("at the sender", found.origin), ("elsewhere", found.remote)):
        if distribution:
            note = f"99 %: {words.duration(distribution.quantile(0.99))}"
            tiles.append(_tile(words.duration(distribution.quantile(0.5)), f"median latency {place}", note))
    return tag("ul", *tiles, class_="tiles")


def _packets(found: Scan) -> Html:
    if not found.packets:
        return tag("p", "The trace records no packets.", class_="lead")
    each = max(found.messages, 1)
    rows: list[tuple[object, ...]] = [
        (
            name, f"{cost.packets:,}", words.number(cost.packets / each), words.number(cost.copies / each),
            words.number(cost.header_bytes / each), words.number(cost.header_bytes / max(cost.packets, 1)),
        )
        for name, cost in sorted(found.packets.items())
    ]  # fmt: skip
    head = ("packet", "sent", "per message", "copies per message", "header bytes per message", "header bytes each")
    return table(head, rows, numeric=frozenset(range(1, 6)))


def _latencies(found: Scan) -> Html:
    if found.axis != "time_ns":
        return tag("p", "The trace has no times, so nothing is known of latencies.", class_="lead")
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


def _histogram(distribution: Distribution, title: str) -> Html:
    """Evenly cut where the longest are not much longer than most, else by magnitude."""
    longest, usual = distribution.quantile(1.0), max(distribution.quantile(0.5), 1)
    if not longest:
        said = f"All {distribution.total():,} deliveries happened at the moment of the sending."
        return tag("div", tag("h3", title), tag("p", said, class_="facts-line"))
    log = longest > 40 * usual and distribution.quantile(0.01) > 0
    scale, unit = words.unit_for(longest)
    values = distribution.values / scale
    if log:
        edges = np.geomspace(values[0], values[-1] * 1.0001, _BARS + 1)
    else:
        edges = np.linspace(0, max(values[-1], 1e-9) * 1.0001, _BARS + 1)
    heights, _ = np.histogram(values, bins=edges, weights=distribution.counts)
    total = distribution.total()
    bars = [
        (float(low), float(high), float(height) / total * 100, f"{_round(low)} to {_round(high)} {unit}: {int(height):,}")
        for low, high, height in zip(edges[:-1], edges[1:], heights, strict=True)
        if height
    ]
    ends = (0.0, float(edges[-1])) if not log else (float(edges[0]), float(edges[-1]))
    bars = [(ends[0], ends[0], 0.0, ""), *bars, (ends[1], ends[1], 0.0, "")]
    facts = " · ".join(
        f"{name} {words.duration(distribution.quantile(share))}"
        for name, share in (("median", 0.5), ("90 %", 0.9), ("99 %", 0.99), ("most", 1.0))
    )
    chart = bar_chart(bars, title=title, x_label=unit, y_label="% of deliveries", log_x=log)
    return tag(
        "div", tag("h3", title), tag("p", f"{facts} · mean {words.duration(distribution.mean())}", class_="facts-line"), chart
    )


def _round(value: float) -> str:
    return words.number(float(f"{value:.3g}"))


def _over_time(found: Scan) -> Html:
    parts = []
    if found.held_back is not None:
        parts.append(_levels(found, found.held_back, "Held back: received, not yet delivered"))
    parts.append(_levels(found, found.on_the_way, "On the way: sent, not yet delivered"))
    return tag("div", *parts, class_="charts")


def _levels(found: Scan, levels: Integers, title: str) -> Html:
    """A line for each member of a small group; the most and the mean of a large one."""
    span = max(found.end - found.start, 1)
    scale, unit = words.unit_for(span) if found.axis == "time_ns" else (1.0, "logical time")
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
    note = f"At most {most:,}, at member {worst}." if most else "Never any at the end of a part of the time."
    return tag("div", tag("h3", title), tag("p", note, class_="facts-line"), chart)
