"""`quire import`: logs of other systems as run directories."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from quire.cli.auditing import status
from quire.cli.calling import call
from quire.cli.spark import Master, Remote, spark_address
from quire.pipeline.importing.formats.registry import FORMATS, takers
from quire.pipeline.importing.request import AUTO, ImportRequest

if TYPE_CHECKING:
    from quire.pipeline.importing.defects import Defect
    from quire.pipeline.importing.importer import Imported


_KNOWN = ", ".join(f"{entry.name} ({entry.summary})" for entry in FORMATS)


def _help(option: str, text: str) -> str:
    """The help of an option that some formats take."""
    return f"{text} For {' and '.join(takers(option))}."


def import_(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Log files of one system.")],
    out: Annotated[Path, typer.Option(help="A new directory for the run.")],
    format_: Annotated[str, typer.Option("--format", help=f"{_KNOWN}; or auto: detect it from the files.")] = AUTO,
    regex: Annotated[
        str | None,
        typer.Option(
            help=_help(
                "regex", "Regular expression that finds events, with groups (?<event>…), (?<host>…), (?<clock>…). RE2 syntax."
            )
        ),
    ] = None,
    parser: Annotated[
        str | None,
        typer.Option(
            help=_help("parser", "A predefined layout instead of --regex: two-lines, clock-first, one-line, timed or akka.")
        ),
    ] = None,
    delimiter: Annotated[
        str | None,
        typer.Option(
            help=_help("delimiter", "Regular expression for the line between executions; (?<trace>…) labels the next one.")
        ),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option("--map", metavar="FIELD=COLUMN", help=_help("columns", "Which column holds what; repeatable.")),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing run.")] = False,
    master: Master = None,
    remote: Remote = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Import the logs of another system as a run, on Spark, so that audit, causality and order can read them."""
    from quire.pipeline.importing.choosing import choose
    from quire.pipeline.importing.defects import Unusable
    from quire.pipeline.importing.importer import check_out, import_logs
    from quire.pipeline.importing.mapping import parse_mapping
    from quire.pipeline.session import session

    where = spark_address(master, remote)
    columns = parse_mapping(column or ())
    request = ImportRequest(format=format_, regex=regex, parser=parser, delimiter=delimiter, columns=columns)
    # Before Spark is started, which takes seconds, find out whether there is anything to import, and where to.
    check_out(out, force=force)
    choose(files, request)
    try:
        with status("starting Spark") as say, session(where) as spark:
            say(f"importing {len(files)} file{'s' if len(files) > 1 else ''}")
            done = import_logs(spark, files, out, request, force=force)
    except Unusable as unusable:
        _show_defects(unusable.defects.listed, json)
        raise
    if json:
        sys.stdout.buffer.write(msgspec.json.encode(done) + b"\n")
        sys.stdout.buffer.flush()
        return
    _show_defects(done.defects, json)
    _show(done)


def _show_defects(defects: Sequence[Defect], json: bool) -> None:
    if json:
        sys.stdout.buffer.write(msgspec.json.encode({"defects": defects}) + b"\n")
        sys.stdout.buffer.flush()
        return
    if not defects:
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("where", "host", "defect", "because"):
        table.add_column(title, overflow="fold")
    for defect in defects:
        table.add_row(f"{defect.file} {defect.unit} {defect.line}", defect.host, str(defect.kind), defect.because)
    Console(highlight=False, markup=False).print(table)


def _show(done: Imported) -> None:
    console = Console(highlight=False, markup=False)
    for execution in done.executions:
        label = f" ({execution.label})" if execution.label else ""
        console.print(
            f"{execution.directory}{label}: {execution.events:,} events of {len(execution.hosts)} hosts, "
            f"{execution.messages:,} messages, {execution.deliveries:,} deliveries",
            soft_wrap=True,
        )
    if done.defect_counts:
        counts = ", ".join(f"{count:,} × {kind}" for kind, count in done.defect_counts.items())
        console.print(f"defects: {counts}; the entries concerned were left out", soft_wrap=True)
    first = done.executions[0].directory
    console.print(f"next: {call('causality', first)}", soft_wrap=True)
