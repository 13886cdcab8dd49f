"""`quire sweep`: a grid of simulations over Spark."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars
from rich.table import Table

from quire.cli.auditing import EXIT_CODES
from quire.cli.calling import call
from quire.cli.spark import Master, Remote, spark_address
from quire.cli.status import status
from quire.model.errors import BadInput

if TYPE_CHECKING:
    from quire.sweep.grid import Grid
    from quire.sweep.sweeper import Progress, SweepResult

EXIT_FAILED = 1


def sweep(
    grid: Annotated[str | None, typer.Argument(metavar="GRID", help="A TOML file, or the name of a shipped grid.")] = None,
    out: Annotated[Path | None, typer.Option(help="Directory for the results; an unfinished sweep there is resumed.")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Measure everything again; old results stay until that is done.")
    ] = False,
    master: Master = None,
    remote: Remote = None,
    listed: Annotated[bool, typer.Option("--list", help="List the shipped grids and exit.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Measure every cell of a grid on Spark; what was measured before is not measured again.

    Exit code 0: all cells are measured; 1: some failed, and will be tried again; 2: bad input; 3: Spark failed.
    """
    from quire.sweep.grid import read_grid

    if listed:
        _list(json=json)
        return
    if grid is None or out is None:
        raise BadInput("a sweep needs a grid and --out DIR; quire sweep --list shows the shipped grids")
    # Before Spark is started, which takes seconds, find out whether there is anything to measure.
    result = _sweep(read_grid(grid), out, spark_address(master, remote), force=force)
    if json:
        print(msgspec.json.encode(result).decode())
    else:
        _show(result)
    if result.failed:
        print(f"quire: {result.failed} cells failed, the first because {result.first_failure}", file=sys.stderr)
        raise typer.Exit(EXIT_FAILED)


def _sweep(grid: Grid, out: Path, where: str, *, force: bool) -> SweepResult:
    from quire.pipeline.session import reason_of_failure, session
    from quire.sweep.store import SweepStore
    from quire.sweep.sweeper import sweep_into, sweep_on

    with SweepStore(out, grid, force=force) as store, ExitStack() as stack:
        if not store.unfinished():
            return sweep_into(store, grid, run=lambda _: [], workers=1)
        with status("starting Spark"):
            spark = stack.enter_context(session(where))
        from pyspark.errors import PySparkException

        try:
            return sweep_on(spark, store, grid, stack.enter_context(_progress()))
        except PySparkException as error:
            left = len(store.unfinished())
            print(f"quire: {left} cells are not measured, because Spark failed: {reason_of_failure(error)}", file=sys.stderr)
            raise typer.Exit(EXIT_CODES["undecided"]) from None
        except KeyboardInterrupt:
            print(f"quire: {len(store.unfinished())} cells are left; the same command resumes with them", file=sys.stderr)
            raise


@contextmanager
def _progress() -> Iterator[Progress | None]:
    """A bar on stderr for a person who watches; nothing for a file or another program."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (
        TextColumn("measuring"), BarColumn(), MofNCompleteColumn(), TextColumn("cells"), TimeElapsedColumn(),
        TextColumn("left:"), TimeRemainingColumn(),
    )  # fmt: skip
    with Bars(*columns, console=console, transient=True) as bars:
        task = bars.add_task("", total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)


def _list(*, json: bool) -> None:
    from quire.sweep.grid import read_grid, shipped

    grids = shipped()
    if json:
        print(msgspec.json.encode(grids).decode())
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("grid", style="bold")
    table.add_column("cells", justify="right")
    table.add_column("what it measures", overflow="fold")
    for name, title in grids.items():
        table.add_row(name, f"{len(read_grid(name).cells):,}", escape(title))
    Console(highlight=False).print(table)


def _show(result: SweepResult) -> None:
    table = Table(title=escape(result.title), show_header=False, title_justify="left")
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    table.add_row("experiment", result.experiment)
    table.add_row("cells", f"{result.cells:,}")
    before = result.cells - result.measured
    table.add_row("measured", f"{result.measured:,} now" + (f", {before:,} before" if before else ""))
    if result.failed:
        table.add_row("failed", f"[red]{result.failed:,}[/]")
    if result.measured:
        table.add_row("time", f"{result.wall_s:.1f} s on Spark, {result.cells_per_s:.1f} cells/s")
    table.add_row("results", escape(result.directory))
    console = Console()
    console.print(table)
    command = escape(call("report", result.directory))
    console.print(f"next: [bold]{command}[/bold]  (figures, beside what is claimed)", highlight=False, soft_wrap=True)
