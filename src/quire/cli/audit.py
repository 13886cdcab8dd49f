"""`quire audit`: which orders hold in a trace, and why not where they do not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from quire.cli.auditing import COLOURS, EXIT_CODES, audit_run
from quire.cli.spark import Master, Remote, place
from quire.model.errors import BadInput
from quire.model.orders import Guarantee
from quire.pipeline.layout import check_segments, lay_out
from quire.trace.store import open_run

if TYPE_CHECKING:
    from quire.pipeline import Audit


def audit(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The run directory.")],
    expect: Annotated[
        str | None, typer.Option(help="Orders that must hold, like causal,total; what the run promises if not given.")
    ] = None,
    master: Master = None,
    remote: Remote = None,
    segments: Annotated[int | None, typer.Option(help="Pieces to judge in parallel; the verdict is the same for any.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Check which orders hold in a run's trace, on Spark.

    Exit code 0: what was expected holds; 1: it is violated, with witnesses; 2: bad input; 3: it could not be decided.
    """
    expected, where = parse_expectation(expect), place(master, remote)
    # Before Spark is started, which takes seconds, find out whether there is anything to audit.
    check_segments(segments)
    lay_out(open_run(directory))
    result = audit_run(directory, where, expect=expected, segments=segments)
    if json:
        sys.stdout.buffer.write(msgspec.json.encode(result) + b"\n")
        sys.stdout.buffer.flush()
    else:
        _show(result)
    raise typer.Exit(EXIT_CODES[result.verdict])


def parse_expectation(text: str | None) -> list[Guarantee] | None:
    """The orders in a list like `causal,total`; None for none."""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in set(Guarantee):
            raise BadInput(f"--expect knows no order {name!r}; choose from {', '.join(Guarantee)}")
    return [Guarantee(name) for name in names]


def _show(result: Audit) -> None:
    console = Console(highlight=False)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title, justify in (("check", "left"), ("verdict", "left"), ("violations", "right"), ("because", "left")):
        table.add_column(title, justify="right" if justify == "right" else "left", overflow="fold")
    for guarantee, check in result.checks.items():
        name = str(guarantee) if guarantee in result.expected else f"({guarantee})"
        colour = COLOURS[check.verdict] if guarantee in result.expected else "dim"
        table.add_row(name, f"[{colour}]{check.verdict}[/]", f"{check.violations:,}", check.because)
    console.print(table)
    console.print(
        f"{result.verdict}: expected {', '.join(result.expected)} ({result.expectation}); "
        f"{result.events:,} events, {result.messages:,} messages, {result.processes} processes "
        f"in {result.wall_s:.1f} s, {result.events_per_s:,.0f} events/s",
        soft_wrap=True,
    )
