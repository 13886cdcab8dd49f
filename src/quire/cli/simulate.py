"""`quire simulate`: a group in the seeded simulator."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import msgspec
import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars
from rich.table import Table

from quire.cli.calling import call

if TYPE_CHECKING:
    from quire.simulation.simulate import Progress, SimulationResult

Fault = TypeVar("Fault")


def simulate(
    protocol: Annotated[str, typer.Option(help="Name of the protocol.")] = "single-phase",
    option: Annotated[list[str] | None, typer.Option(help="NAME=VALUE, an option of the protocol; repeatable.")] = None,
    members: Annotated[int, typer.Option(help="How many members the group has.")] = 3,
    messages: Annotated[int, typer.Option(help="How many messages each sender sends.")] = 100,
    senders: Annotated[str | None, typer.Option(help="Who sends, like 0,3; all members if not given.")] = None,
    interval: Annotated[float, typer.Option(help="Mean ms between two submissions of a sender.")] = 50.0,
    spacing: Annotated[str, typer.Option(help="even or poisson.")] = "even",
    burst: Annotated[int, typer.Option(help="Submissions in a burst.")] = 1,
    batch: Annotated[int, typer.Option(help="Messages in one submission.")] = 1,
    size: Annotated[int, typer.Option(help="Bytes of each message.")] = 64,
    mode: Annotated[str, typer.Option(help="pipelined, or blocking: wait for each submission's local delivery.")] = "pipelined",
    broadcast: Annotated[
        float | None,
        typer.Option(help="Fraction of submissions to all members; by default 1, or 0 if the protocol can address some."),
    ] = None,
    multicast: Annotated[
        float | None, typer.Option(help="Fraction of submissions to a random subset; 0.2 if it can. The rest go to one member.")
    ] = None,
    delay: Annotated[
        str, typer.Option(help="constant:MS, uniform:MS:MS, exponential:MS, or matrix:FILE (JSON rows).")
    ] = "constant:10",
    reorder: Annotated[bool, typer.Option("--reorder", help="Let packets overtake each other.")] = False,
    loss: Annotated[float, typer.Option(help="Probability that a packet is lost.")] = 0.0,
    duplicate: Annotated[float, typer.Option(help="Probability that a packet is duplicated.")] = 0.0,
    links: Annotated[
        str, typer.Option(help="auto: repair the network where the protocol needs it; raw: never, to see what breaks.")
    ] = "auto",
    crash: Annotated[list[str] | None, typer.Option(help="MEMBER@MS; repeatable.")] = None,
    detect: Annotated[float | None, typer.Option(help="Ms until survivors know of a crash; three delays if not given.")] = None,
    pause: Annotated[list[str] | None, typer.Option(help="MEMBER@MS+MS: when, and for how long; repeatable.")] = None,
    partition: Annotated[list[str] | None, typer.Option(help="0,1/2,3@MS+MS: sides, when, how long; repeatable.")] = None,
    faults: Annotated[
        str | None,
        typer.Option(help="Faults to inject, like 'kill 2@1s, stop 3@2s for 4s, restart 2@10s'; see docs/live.md."),
    ] = None,
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
    from quire.simulation.config import (
        FaultConfig,
        NetworkConfig,
        SimulationConfig,
        WorkloadConfig,
        parse_crash,
        parse_members,
        parse_options,
        parse_partition,
        parse_pause,
    )

    config = SimulationConfig(
        protocol=protocol,
        options=parse_options(option or ()),
        members=members,
        seed=seed,
        network=NetworkConfig(delay=delay, reorder=reorder, loss=loss, duplicate=duplicate, links=links),
        workload=WorkloadConfig(
            senders=None if senders is None else parse_members(senders),
            messages=messages,
            interval_ms=interval,
            spacing=spacing,
            burst=burst,
            batch=batch,
            size=size,
            mode=mode,
            broadcast=broadcast,
            multicast=multicast,
        ),
        faults=FaultConfig(
            crashes=_each(parse_crash, crash),
            detect_ms=detect,
            pauses=_each(parse_pause, pause),
            partitions=_each(parse_partition, partition),
            words=faults or "",
        ),
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


def _each(parse: Callable[[str], Fault], texts: list[str] | None) -> tuple[Fault, ...]:
    return tuple(map(parse, texts or ()))


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
        table.add_row("repair of links", ", ".join(f"{count:,} {name}" for name, count in result.link_packets.items()))
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
