"""`quire bench`: how fast live groups are on this machine, beside rivals in the same run."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from quire.model.errors import BadInput

if TYPE_CHECKING:
    from quire.bench.measure import Results, Say
    from quire.bench.soak import Soak
    from quire.bench.targets import Target

EXIT_FAILED = 1
_SOAK_ROWS = 10

Result = TypeVar("Result")


def bench(
    members: Annotated[int, typer.Option(help="How many members each group has.")] = 3,
    size: Annotated[list[int] | None, typer.Option(help="Bytes of each message; repeatable. 64 and 1024 if not given.")] = None,
    seconds: Annotated[float, typer.Option(help="How long members send in each round.")] = 2.0,
    messages: Annotated[int | None, typer.Option(help="How many messages each member sends, instead of --seconds.")] = None,
    rounds: Annotated[int, typer.Option(help="Number of rounds; the median is reported.")] = 5,
    round_trips: Annotated[int, typer.Option(help="Over how many round trips latency is measured in each round.")] = 2000,
    rivals: Annotated[str, typer.Option(help="all, or none to measure Quire alone.")] = "all",
    soak_s: Annotated[
        float | None,
        typer.Option("--soak", metavar="SECONDS", help="Instead, run at full load for this many seconds and watch memory."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Measure throughput, latency and processor time of live groups, and compare them with bare sockets and ZeroMQ.

    Everything runs on loopback, in processes that the command starts and stops. Exit code 1: something was lost or out
    of order or, with --soak, memory grew. A missed target is shown, but is no failure: the machine may have been busy.
    """
    from quire.bench.measure import Config, measure
    from quire.bench.processes import BenchFailed
    from quire.bench.targets import judge

    if rivals not in ("all", "none"):
        raise BadInput(f"--rivals must be all or none, not {rivals!r}")
    sizes = tuple(size or (64, 1024))
    try:
        if soak_s is not None:
            _soak(soak_s, members, sizes[0], json)
            return
        config = Config(
            members=members, sizes=sizes, seconds=seconds, messages=messages, rounds=rounds,
            round_trips=round_trips, rivals=rivals == "all",
        )  # fmt: skip
        results = _watched(lambda say: asyncio.run(measure(config, say)))
    except BenchFailed as error:
        print(f"quire: {error}", file=sys.stderr)
        raise typer.Exit(EXIT_FAILED) from None
    targets = judge(results)
    if json:
        print(msgspec.json.encode({"results": results, "targets": targets}).decode())
    else:
        _show(results, targets)


def _show(results: Results, targets: tuple[Target, ...]) -> None:
    console = Console(highlight=False)
    config = results.config
    console.print(
        f"{config.members} members, median of {config.rounds} rounds; {results.cores} cores, "
        f"load average {results.load_before:.1f} before and {results.load_after:.1f} after",
        soft_wrap=True,
    )
    for size in config.sizes:
        table = _table(
            f"{size} B", "contender", "deliveries/s per member",
            "to runs", "to fixed", "to zmq", "to ceiling", "to disk", "CPU s per million",
        )  # fmt: skip
        for row in results.throughput:
            if row.size == size:
                ratios = map(_ratio, (row.to_runs, row.to_fixed, row.to_zeromq, row.to_ceiling, row.to_disk))
                table.add_row(row.contender, f"{row.deliveries_per_s:,.0f}", *ratios, f"{row.cpu_s_per_million:.3f}")
        console.print(table)
    title = f"latency, {config.round_trips:,} round trips"
    table = _table(title, "who", "mean µs", "p50 µs", "p99 µs", "mean to raw", "p50 to raw", "p99 to raw", "p50 to one sync")
    for latency in results.latency:
        figures = (f"{figure:,.1f}" for figure in (latency.mean_us, latency.p50_us, latency.p99_us))
        ratios = map(_ratio, (latency.mean_to_raw, latency.to_raw, latency.p99_to_raw, latency.to_sync))
        table.add_row(latency.contender, *figures, *ratios)
    console.print(table)
    table = _table("targets", "target", "wanted", "measured", "")
    for target in targets:
        verdict = "[green]met[/]" if target.met else "[red]missed[/]"
        measured = f"{target.measured:,.0f}" if target.measured >= 1000 else f"{target.measured:.2f}"
        table.add_row(target.name, target.wanted, measured, verdict)
    console.print(table)
    if results.left_out:
        print(f"quire: {results.left_out}", file=sys.stderr)


def _soak(seconds: float, members: int, size: int, json: bool) -> None:
    from quire.bench.soak import soak

    result = _watched(lambda say: asyncio.run(soak(seconds, members, size, say)))
    if json:
        print(msgspec.json.encode(result).decode())
    else:
        _show_soak(result)
    if not result.flat:
        print(f"quire: memory grew by {result.growth_bytes >> 20} MiB", file=sys.stderr)
        raise typer.Exit(EXIT_FAILED)


def _show_soak(result: Soak) -> None:
    console = Console(highlight=False)
    members = range(result.members)
    table = _table(
        f"{result.members} members, {result.size} B, {result.seconds:g} s of full load",
        "at s", "deliveries of member 0", *(f"MiB of member {member}" for member in members),
    )  # fmt: skip
    by_member = [[sample for sample in result.samples if sample.member == member] for member in members]
    length = min(map(len, by_member))
    for index in range(0, length, max(1, length // _SOAK_ROWS)):
        row = [samples[index] for samples in by_member]
        resident = (f"{sample.resident_bytes / (1 << 20):,.1f}" for sample in row)
        table.add_row(f"{row[0].at_s:,.1f}", f"{row[0].delivered:,}", *resident)
    console.print(table)
    console.print(
        f"{result.sent:,} messages sent, {result.deliveries:,} deliveries, none lost, all in the same order; "
        f"{result.deliveries_per_s:,.0f} deliveries/s per member; memory {'is flat' if result.flat else 'grew'} "
        f"({result.growth_bytes / (1 << 20):+.1f} MiB)",
        soft_wrap=True,
    )


def _table(title: str, first: str, *rest: str) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    table.add_column(first, no_wrap=True)
    for name in rest:
        table.add_column(name, justify="right")
    return table


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _watched(work: Callable[[Say], Result]) -> Result:
    """Show what is being done to a person who watches; nothing to a file or another program."""
    console = Console(stderr=True)
    if not console.is_terminal:
        return work(lambda _: None)
    with console.status("starting") as status:
        return work(status.update)
