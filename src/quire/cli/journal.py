"""`quire journal`: what a process keeps on disk, and whether it can be read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from quire.cli.auditing import EXIT_CODES

if TYPE_CHECKING:
    from quire.journal.summary import JournalSummary

_EXIT = {"whole": EXIT_CODES["holds"], "torn": EXIT_CODES["holds"], "damaged": EXIT_CODES["violated"]}


def journal(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="The journal's directory.")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Show what is in a journal and check it, without changing anything, also while a process writes to it.

    Exit code 0: it can be used; a torn tail is no damage, and the next start cuts it off. 1: it is damaged. 2: bad input.
    3: it could not be read.
    """
    from quire.journal.summary import summarise

    summary = summarise(path)
    if json:
        sys.stdout.buffer.write(msgspec.json.encode(summary) + b"\n")
        sys.stdout.buffer.flush()
    else:
        _show(summary)
    raise typer.Exit(_EXIT[summary.verdict])


def _show(summary: JournalSummary) -> None:
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"{summary.path}: {_sentence(summary)}", markup=False)
    if summary.in_use_by is not None:
        console.print(f"in use by {summary.in_use_by}", markup=False)
    console.print(_files(summary))
    if summary.types:
        console.print(_types(summary))
    if summary.surplus:
        console.print(f"the next start removes {', '.join(summary.surplus)}", markup=False)


def _sentence(summary: JournalSummary) -> str:
    if summary.damage is not None:
        damage = summary.damage
        return f"damaged. {damage.file} is damaged at byte {damage.offset}: {damage.why}; {damage.what_to_do}"
    if summary.torn is None:
        return "whole"
    where = f"the last {summary.torn.bytes:,} bytes of {summary.torn.file}, from byte {summary.torn.offset:,},"
    if summary.in_use_by is not None:
        return f"whole so far; {where} are being written"
    return f"torn tail: {where} were being written when the process or the machine stopped; the next start removes them"


def _files(summary: JournalSummary) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading, justify in (("file", "left"), ("bytes", "right"), ("records", "right"), ("numbers", "left")):
        table.add_column(heading, justify=justify)  # type: ignore[arg-type]
    if summary.snapshot is not None:
        table.add_row(summary.snapshot.file, f"{summary.snapshot.bytes:,}", "", f"before {summary.snapshot.before}")
    for segment in summary.segments:
        numbers = f"{segment.first} to {segment.last}" if segment.records else ""
        table.add_row(segment.file, f"{segment.bytes:,}", f"{segment.records:,}", numbers)
    return table


def _types(summary: JournalSummary) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("type")
    table.add_column("records", justify="right")
    table.add_column("last", justify="right")
    for name, counts in summary.types.items():
        table.add_row(name, f"{counts.records:,}", str(counts.last))
    return table
