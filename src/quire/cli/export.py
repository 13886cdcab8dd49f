"""`quire export`: a run as other tools read it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from quire.cli.legible import legible
from quire.cli.spark import Master, Remote, requested_address
from quire.cli.workers import few_events, workers
from quire.model.errors import BadInput

FORMATS = ("shiviz", "run")


def export(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The run directory.")],
    out: Annotated[Path, typer.Option(help="A new file; for run, a new directory.")],
    format_: Annotated[
        str, typer.Option("--format", help="shiviz; or run: one of the executions that share a run, as a run of its own.")
    ] = "shiviz",
    execution: Annotated[str | None, typer.Option(metavar="LABEL", help="Which execution. For run.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file, or run.")] = False,
    master: Master = None,
    remote: Remote = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Write a run with its vector clocks for ShiViz: for each event its text, then its host and clock. Or take one execution
    out of a run that holds many."""
    from quire.pipeline.causality.executions import check_single
    from quire.pipeline.causality.tasks import CAUSALITY
    from quire.pipeline.exporting import EXPORT, check_new_file, export_with
    from quire.pipeline.layout import lay_out
    from quire.trace.store import open_run

    where = requested_address(master, remote)
    if format_ not in FORMATS:
        raise BadInput(f"--format must be {', '.join(FORMATS)}, not {format_!r}")
    if (format_ == "run") != (execution is not None):
        raise BadInput("--format run and --execution LABEL go together: they take one execution out of a run that holds many")
    if execution is not None:
        _extract(directory, execution, out, force=force, json=json)
        return
    check_new_file(out, force=force)
    check_single(directory)
    small = few_events(lay_out(open_run(directory)))
    with workers(where, small=small, doing=f"exporting {directory}") as (run, _):
        done = export_with(run(CAUSALITY), run(EXPORT), directory, out, force=force)
    if json:
        sys.stdout.buffer.write(msgspec.json.encode(done) + b"\n")
        sys.stdout.buffer.flush()
    else:
        Console(highlight=False).print(
            f"{out}: {done.events:,} events of {done.hosts} hosts; the regex is {done.regex}", soft_wrap=True, markup=False
        )


def _extract(directory: Path, label: str, out: Path, *, force: bool, json: bool) -> None:
    from quire.pipeline.extracting import extract_execution

    done = extract_execution(directory, label, out, force=force)
    if json:
        sys.stdout.buffer.write(msgspec.json.encode(done) + b"\n")
        sys.stdout.buffer.flush()
    else:
        Console(highlight=False, markup=False).print(
            f"{out}: {done.events:,} events of execution {legible(label)}", soft_wrap=True
        )
