"""`quire audit`: which guarantees hold in a trace, and counterexamples for those that do not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from quire.cli.auditing import COLOURS, EXIT_CODES, as_json, audit_run
from quire.cli.legible import legible
from quire.cli.spark import Master, Remote, requested_address

if TYPE_CHECKING:
    from quire.pipeline import Audit
    from quire.pipeline.auditing.verdicts import Witness


def audit(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The run directory.")],
    expect: Annotated[
        str | None, typer.Option(help="Guarantees that must hold, like causal,total; by default those that the run promises.")
    ] = None,
    master: Master = None,
    remote: Remote = None,
    segments: Annotated[
        int | None, typer.Option(help="Number of segments checked in parallel; does not change the verdict.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Check which guarantees hold in a run's trace: on Spark if --master or --remote is given or it has over 2 million events.

    Exit code 0: what was expected holds; 1: it is violated, with counterexamples; 2: bad input; 3: undecided.
    """
    from quire.pipeline.layout import check_segments, lay_out
    from quire.trace.store import open_run

    expected, where = parse_expectation(expect), requested_address(master, remote)
    # Before Spark is started, which takes seconds, find out whether there is anything to audit.
    check_segments(segments)
    lay_out(open_run(directory))
    result = audit_run(directory, where, expect=expected, segments=segments)
    if json:
        sys.stdout.buffer.write(msgspec.json.encode(as_json(result)) + b"\n")
        sys.stdout.buffer.flush()
    else:
        _show(result)
    raise typer.Exit(EXIT_CODES[result.verdict])


def parse_expectation(text: str | None) -> list[str] | None:
    """The guarantees in a list like `causal,total`; None for none."""
    from quire.pipeline.auditing.registry import find_checks

    if text is None:
        return None
    names = [name.strip() for name in text.split(",")]
    find_checks(names)
    return names


def _show_places(console: Console, guarantee: str, witness: Witness | None) -> None:
    """Where a counterexample is in the log, if it was imported, and what the log says there."""
    for event in witness.positions if witness is not None else ():
        if event.at is not None:
            said = event.text or f"{event.event} {event.message}"
            console.print(escape(legible(f"{guarantee}: {event.at} ({event.place}) {said}")), soft_wrap=True)


def _show(result: Audit) -> None:
    console = Console(highlight=False)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title, justify in (("check", "left"), ("verdict", "left"), ("violations", "right"), ("because", "left")):
        table.add_column(title, justify="right" if justify == "right" else "left", overflow="fold")
    for guarantee, check in result.checks.items():
        name = guarantee if guarantee in result.expected else f"({guarantee})"
        colour = COLOURS[check.verdict] if guarantee in result.expected else "dim"
        table.add_row(name, f"[{colour}]{check.verdict}[/]", f"{check.violations:,}", escape(legible(check.because)))
    console.print(table)
    for guarantee in result.expected:
        _show_places(console, guarantee, result.checks[guarantee].witness)
    for reason, names in result.reasons_not_applicable().items():
        console.print(f"not applicable: {', '.join(names)} ({reason})", soft_wrap=True)
    for note in result.notes:
        console.print(f"note: {escape(note)}", soft_wrap=True)
    console.print(
        f"{result.verdict}: expected {', '.join(result.expected)} ({result.expectation}); "
        f"{result.events:,} events, {result.messages:,} messages, {result.processes} processes "
        f"in {result.wall_s:.1f} s{' on Spark' if result.on_spark else ''}, {result.events_per_s:,.0f} events/s",
        soft_wrap=True,
    )
