"""Table rows for the summary of a run, common to all kinds of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor, log10

from rich.markup import escape
from rich.table import Table

from quire.model.moments import Happened
from quire.trace.latency import Latency
from quire.trace.statistics import MULTICASTS, Summary


def add_counts(table: Table, summary: Summary, options: Mapping[str, object]) -> None:
    """What ran, and how much of it."""
    if options:
        table.add_row("options", ", ".join(f"{name}={value}" for name, value in options.items()))
    table.add_row("messages", f"{summary.messages:,}")
    table.add_row("deliveries", f"{summary.deliveries:,}" + ("" if summary.complete else "  (incomplete)"))
    if summary.crashed:
        table.add_row("crashed", ", ".join(map(str, summary.crashed)))


def add_costs(table: Table, summary: Summary) -> None:
    """What a message cost, if packets were counted, and how long it took."""
    if summary.packets[MULTICASTS]:
        _add_packets(table, summary)
    table.add_row("latency at the origin", _latency_text(summary.latency.origin))
    since = "" if summary.latency.remote_since == "sending" else ", since receipt"
    table.add_row(f"latency elsewhere{since}", _latency_text(summary.latency.remote))


def _add_packets(table: Table, summary: Summary) -> None:
    each = max(summary.messages, 1)
    types = [f"{_ratio(count / each)} {name}" for name, count in summary.packets.items() if name != MULTICASTS]
    multicasts = f"{_ratio(summary.packets[MULTICASTS] / each)} multicasts"
    table.add_row("packets per message", f"{multicasts} ({', '.join(types)})")
    table.add_row("", f"{_ratio(sum(summary.packets_point_to_point.values()) / each)} point to point")
    table.add_row("header bytes per message", _ratio(summary.header_bytes / each, 1))
    if summary.header_entries_per_message is not None:
        table.add_row("", f"{_ratio(summary.header_bytes_per_message, 1)} point to point")
        table.add_row("header entries per message", _ratio(summary.header_entries_per_message, 1))
    for role, share in (summary.arrivals.per_role if summary.arrivals is not None else {}).items():
        table.add_row(f"arrivals at {role}", f"{share.mean:,.1f} on average, {share.max:,} at most, of {share.members:,}")


def _ratio(value: float, digits: int = 2) -> str:
    """With so many digits after the point, or as many as a small number needs to show two that are not zero."""
    if 0 < value < 10**-digits:
        digits = 1 - floor(log10(value))
    return f"{value:.{digits}f}"


def _latency_text(latency: Latency | None) -> str:
    if latency is None:
        return "nothing delivered"
    return f"p50 {latency.p50:.4g}, p99 {latency.p99:.4g}, max {latency.max:.4g}, mean {latency.mean:.4g} ms"


def add_details(table: Table, details: Mapping[str, object]) -> None:
    """What only a service can say of a run."""
    for name, value in details.items():
        table.add_row(name.replace("_", " "), _detail(value))


def _detail(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_detail(each)}" for name, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_detail, value))
    return f"{value:,.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def happened_table(happened: Sequence[Happened]) -> Table:
    """What was done to members, and which views came of that."""
    table = Table(title="what happened", title_justify="left")
    table.add_column("second", justify="right")
    table.add_column("what", style="bold")
    table.add_column("members", overflow="fold")
    for each in happened:
        table.add_row(f"{each.at_s:.3f}", each.what, escape(each.about))
    return table
