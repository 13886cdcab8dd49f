"""`quire simulate`: a group in the seeded simulator."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars
from rich.table import Table

from quire.cli.backups import Backups, with_backups
from quire.cli.calling import call
from quire.cli.grouping import grouped
from quire.cli.simulate_options import FaultOptions, NetworkOptions, WorkloadOptions
from quire.simulation.config import SimulationConfig, parse_options

if TYPE_CHECKING:
    from quire.simulation.simulate import Progress, SimulationResult


@grouped
def simulate(
    *,
    protocol: Annotated[str, typer.Option(help="Name of the protocol.")] = "single-phase",
    option: Annotated[list[str] | None, typer.Option(help="NAME=VALUE, an option of the protocol; repeatable.")] = None,
    members: Annotated[int, typer.Option(help="How many members the group has.")] = 3,
    backups: Backups = None,
    workload: WorkloadOptions,
    network: NetworkOptions,
    fault: FaultOptions,
    seed: Annotated[int, typer.Option(help="The same seed and options give the same bytes.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Directory for the run and its trace; no trace is kept if not given.")
    ] = None,
    receipts: Annotated[
        bool, typer.Option("--receipts", help="Record receipts too, so that a report shows what was held back.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing run.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Run a protocol in the seeded simulator, and write its trace."""
    from quire.simulation import simulate as simulation

    config = SimulationConfig(
        protocol=protocol,
        options=with_backups(parse_options(option or ()), backups),
        members=members,
        seed=seed,
        network=network.config(),
        workload=workload.config(),
        faults=fault.config(),
        receipts=receipts,
    )
    with _progress() as progress:
        result = simulation.simulate(config, out, force=force, progress=progress)
    if json:
        print(msgspec.json.encode(result).decode())
    else:
        _show(result, config.options)
    if not result.complete:
        print("quire: the run ended incomplete: some messages were not delivered everywhere", file=sys.stderr)


@contextmanager
def _progress() -> Iterator[Progress | None]:
    """A bar on stderr for a person who watches; nothing for a file or another program."""
    if not sys.stderr.isatty():
        yield None
        return
    columns = (TextColumn("simulating"), BarColumn(), TextColumn("{task.completed:,.0f} messages"), TimeRemainingColumn())
    with Bars(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _show(result: SimulationResult, options: dict[str, object]) -> None:
    from quire.cli.summary import add_costs, add_counts, add_details, happened_table

    table = Table(
        title=f"{result.protocol}, {result.members} members, seed {result.seed}", show_header=False, title_justify="left"
    )
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    add_counts(table, result, options)
    add_costs(table, result)
    if result.link_packets:
        table.add_row("link packets", ", ".join(f"{count:,} {name}" for name, count in result.link_packets.items()))
    add_details(table, result.details)
    table.add_row("simulated", f"{result.simulated_ms:,.1f} ms in {result.wall_s:.2f} s")
    table.add_row("digest", result.digest)
    if result.trace is not None:
        table.add_row("trace", result.trace)
    console = Console()
    if result.happened:
        console.print(happened_table(result.happened))
    console.print(table)
    if result.trace is not None:
        console.print(f"next: [bold]{escape(call('audit', result.trace))}[/bold]", highlight=False, soft_wrap=True)
