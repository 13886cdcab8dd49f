"""The end of `quire run`: audits the trace, prints the verdict, and only then writes the report.

The verdict is the purpose of the command, so nothing that comes after it may prevent it from being shown.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from quire.cli.auditing import COLOURS, EXIT_CODES, as_json, audit_run
from quire.cli.calling import call
from quire.cli.report import report_beside, say_where
from quire.cli.summary import add_costs, add_counts, add_details, happened_table
from quire.live.runs.collecting import LiveSummary

if TYPE_CHECKING:
    from quire.pipeline import Audit


def conclude(summary: LiveSummary, out: Path, where: str | None, *, audited: bool, reported: bool, json: bool) -> None:
    """Audit the run in `out`, print what came of it, and report; exits with the code of the verdict."""
    try:
        audit = audit_run(out, where) if audited else None
    except KeyboardInterrupt:
        print(f"quire: the run is in {out}, but was not audited", file=sys.stderr)
        raise
    if json:
        _print_json(summary, out, audit, reported=reported)
    else:
        _print(summary, out, audit, reported=reported)
    if audit is not None:
        raise typer.Exit(EXIT_CODES[audit.verdict])


def _print_json(summary: LiveSummary, out: Path, audit: Audit | None, *, reported: bool) -> None:
    """Print one JSON object, which names the report; so it is printed after writing the report, even if that failed."""
    report = None
    try:
        if audit is not None and reported:
            report = report_beside(out, audit)
    finally:
        checked = None if audit is None else as_json(audit)
        said = {**msgspec.to_builtins(summary), "audit": checked, "report": report}
        print(msgspec.json.encode(said).decode(), flush=True)


def _print(summary: LiveSummary, out: Path, audit: Audit | None, *, reported: bool) -> None:
    console = Console()
    if summary.happened:
        console.print(happened_table(summary.happened))
    console.print(_table(summary, audit))
    if audit is not None and reported and (report := report_beside(out, audit)):
        say_where(report)
    command = escape(call("audit", str(summary.trace)))
    what = "every verdict with its reason" if audit is not None else "check the orders"
    console.print(f"next: [bold]{command}[/bold]  ({what})", highlight=False, soft_wrap=True)


def _table(summary: LiveSummary, audit: Audit | None) -> Table:
    title = f"{summary.protocol}, {summary.members} member{'s' * (summary.members > 1)}, live"
    table = Table(title=title, show_header=False, title_justify="left")
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    add_counts(table, summary, {})
    table.add_row("deliveries/s", f"{summary.deliveries_per_s:,.0f} at the slowest member")
    add_costs(table, summary)
    add_details(table, summary.details)
    for note in summary.notes:
        table.add_row("note", escape(note))
    if summary.older:
        table.add_row("note", f"the directory also holds parts of {summary.older} earlier runs; this is the latest")
    table.add_row("digest", summary.digest)
    table.add_row("run", escape(str(summary.trace)))
    if audit is not None:
        table.add_section()
        for guarantee, check in audit.checks.items():
            verdict = f"[{COLOURS[check.verdict]}]{check.verdict}[/]"
            if guarantee not in audit.expected:
                verdict = f"[dim]{check.verdict}, not promised[/]"
            elif check.violations:
                verdict += f" {check.violations:,} times: {escape(check.because)}"
            elif check.verdict == "undecided":
                verdict += f": {escape(check.because)}"
            table.add_row(guarantee, verdict)
        where = " on Spark" if audit.on_spark else ""
        table.add_row("audited", f"{audit.events:,} events{where} in {audit.wall_s:.1f} s")
    return table
