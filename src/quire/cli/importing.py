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

from quire.cli.calling import call
from quire.cli.legible import legible
from quire.cli.spark import Master, Remote, requested_address
from quire.cli.workers import few_log_bytes, workers
from quire.model.errors import BadInput
from quire.pipeline.importing.formats.registry import FORMATS, takers
from quire.pipeline.importing.request import AUTO, ImportRequest

if TYPE_CHECKING:
    from quire.pipeline.importing.defects import Defect
    from quire.pipeline.importing.previewing import Preview
    from quire.pipeline.importing.results import Imported


_SKEWS_SHOWN = 10
_DEFECTS_SHOWN = 20
_KNOWN = ", ".join(f"{entry.name} ({entry.summary})" for entry in FORMATS)


def _help(option: str, text: str) -> str:
    """The help of an option that some formats take."""
    return f"{text} For {' and '.join(takers(option))}."


def import_(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Logs of one system: files, directories, or - for standard input; gzip, zstd and bzip2 are unpacked.",
        ),
    ],
    out: Annotated[Path | None, typer.Option(help="A new directory for the run; needed unless it is a --dry-run.")] = None,
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
    id_: Annotated[
        str | None,
        typer.Option("--id", metavar="COLUMN", help=_help("columns", "Events with names: the column that has them.")),
    ] = None,
    after: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help=_help("columns", "The column with the names of the events that an event follows.")),
    ] = None,
    lanes: Annotated[
        bool | None,
        typer.Option(
            "--lanes/--no-lanes",
            help="Events that name what they follow: those of a host that do not follow each other are concurrent, or in the "
            "order of their times; by default concurrent, unless that takes more than 256 lanes.",
        ),
    ] = None,
    skip_lines: Annotated[int, typer.Option(min=0, help="So many lines at the beginning of each file are not events.")] = 0,
    only: Annotated[
        str | None,
        typer.Option(
            "--where", metavar="REGEX", help=_help("where", "Only lines that match are events, like ^[^#]. RE2 syntax.")
        ),
    ] = None,
    set_apart: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help=_help("lenient", "Put lines that cannot be read in this new directory, and go on.")),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the first ten events as they are understood, and write nothing.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing run.")] = False,
    master: Master = None,
    remote: Remote = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Import the logs of another system as a run, so that audit, causality and order can read them."""
    from quire.pipeline.importing.choosing import choose
    from quire.pipeline.importing.defects import Unusable
    from quire.pipeline.importing.importer import import_with
    from quire.pipeline.importing.inputs import expected_bytes, plain_files
    from quire.pipeline.importing.mapping import parse_mapping
    from quire.pipeline.importing.previewing import preview
    from quire.pipeline.importing.results import check_out
    from quire.pipeline.importing.tasks import IMPORT

    where = requested_address(master, remote)
    following = [f"{field}={name}" for field, name in (("id", id_), ("after", after)) if name is not None]
    columns = parse_mapping([*(column or ()), *following])
    request = ImportRequest(
        format=format_, regex=regex, parser=parser, delimiter=delimiter, columns=columns, where=only,
        lenient=set_apart is not None, lanes=lanes, skip_lines=skip_lines,
    )  # fmt: skip
    if dry_run:
        _show_preview(preview(files, request), json)
        return
    if out is None:
        raise BadInput("say with --out where the run is to be written, or look at its first events with --dry-run")
    # Before Spark is started, which takes seconds, find out whether there is anything to import, and where to.
    check_out(out, force=force)
    if (plain := plain_files(files, skip_lines)) is not None:
        choose(plain, request)
    small = few_log_bytes(expected_bytes(files))
    doing = f"importing {len(files)} file{'s' if len(files) > 1 else ''}"
    try:
        with workers(where, small=small, doing=doing) as (run, _):
            done = import_with(run(IMPORT), files, out, request, force=force, set_apart=set_apart)
    except Unusable as unusable:
        _show_defects(unusable.defects.listed, json)
        raise
    if json:
        sys.stdout.buffer.write(msgspec.json.encode(done) + b"\n")
        sys.stdout.buffer.flush()
        return
    _show_defects(done.defects, json)
    _show(done)


def _show_preview(found: Preview, json: bool) -> None:
    if json:
        sys.stdout.buffer.write(msgspec.json.encode(found) + b"\n")
        sys.stdout.buffer.flush()
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("line", "host", "kind", "name", "after", "time ns", "text"):
        table.add_column(title, overflow="fold")
    for event in found.events:
        time = "" if event.time_ns is None else str(event.time_ns)
        words = (event.host, event.kind, event.name, event.after, time, event.text)
        table.add_row(str(event.line), *map(legible, words))
    console = Console(highlight=False, markup=False)
    console.print(table)
    unused = f"; columns not used: {legible(', '.join(found.unused))}" if found.unused else ""
    console.print(f"{found.file} as {found.format}{unused}; nothing was written", soft_wrap=True)


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
    for defect in defects[:_DEFECTS_SHOWN]:
        where = legible(f"{defect.file} {defect.unit} {defect.line}")
        table.add_row(where, legible(defect.host), str(defect.kind), legible(defect.because))
    if len(defects) > _DEFECTS_SHOWN:
        table.add_row(f"and {len(defects) - _DEFECTS_SHOWN} more")
    Console(highlight=False, markup=False).print(table)


def _show_skews(done: Imported) -> None:
    if not done.skews:
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("clock of", "is behind that of", "events", "by at least ms", "probably by ms"):
        table.add_column(title, overflow="fold")
    for skew in done.skews[:_SKEWS_SHOWN]:
        probably = "" if skew.estimate_ns is None else f"{skew.estimate_ns / 1e6:,.3f}"
        table.add_row(legible(skew.behind), legible(skew.ahead), f"{skew.events:,}", f"{skew.at_least_ns / 1e6:,.3f}", probably)
    Console(highlight=False, markup=False).print(table)


def _show(done: Imported) -> None:
    console = Console(highlight=False, markup=False)
    for execution in done.executions:
        label = f" ({legible(execution.label)})" if execution.label else ""
        happened = f"{execution.events:,} events" + (f" of {execution.named} hosts" if execution.named else "")
        if execution.named != len(execution.hosts):
            happened += f" in {len(execution.hosts):,} lanes"
        if execution.together:
            happened += f" in {execution.together:,} executions"
        if execution.links:
            happened += f", {execution.links:,} links from one host to another"
        if execution.deliveries or not execution.links:
            happened += f", {execution.messages:,} messages, {execution.deliveries:,} deliveries"
        console.print(f"{execution.directory}{label}: {happened}", soft_wrap=True)
    if done.defect_counts:
        counts = ", ".join(f"{count:,} × {kind}" for kind, count in done.defect_counts.items())
        console.print(f"defects: {counts}", soft_wrap=True)
    _show_skews(done)
    if done.set_apart:
        console.print(f"{done.set_apart:,} lines could not be read and were set apart", soft_wrap=True)
    for note in done.notes:
        console.print(f"note: {legible(note)}", soft_wrap=True)
    first = done.executions[0]
    following = call("causality", first.directory, "--each") if first.together else call("causality", first.directory)
    console.print(f"next: {following}", soft_wrap=True)
