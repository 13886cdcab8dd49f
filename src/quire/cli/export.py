"""`quire export`: a run as other tools read it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from quire.cli.auditing import status
from quire.cli.spark import Master, Remote, spark_address
from quire.model.errors import BadInput

FORMATS = ("shiviz",)


def export(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The run directory.")],
    out: Annotated[Path, typer.Option(help="A new file.")],
    format_: Annotated[str, typer.Option("--format", help="shiviz.")] = "shiviz",
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    master: Master = None,
    remote: Remote = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Write a run with its vector clocks for ShiViz: for each event its text, then its host and clock."""
    from quire.pipeline.exporting import check_new_file, export_shiviz
    from quire.pipeline.layout import lay_out
    from quire.pipeline.session import session
    from quire.trace.store import open_run

    where = spark_address(master, remote)
    if format_ not in FORMATS:
        raise BadInput(f"--format must be {', '.join(FORMATS)}, not {format_!r}")
    check_new_file(out, force=force)
    lay_out(open_run(directory))
    with status("starting Spark") as say, session(where) as spark:
        say(f"exporting {directory}")
        done = export_shiviz(spark, directory, out, force=force)
    if json:
        sys.stdout.buffer.write(msgspec.json.encode(done) + b"\n")
        sys.stdout.buffer.flush()
    else:
        Console(highlight=False).print(
            f"{out}: {done.events:,} events of {done.hosts} hosts; the regex is {done.regex}", soft_wrap=True, markup=False
        )
