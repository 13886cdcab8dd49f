"""`quire report`: one HTML file about a run or a sweep."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Console
from rich.markup import escape

from quire.cli.auditing import audit_run
from quire.cli.calling import call
from quire.cli.spark import Master, Remote, requested_address
from quire.cli.status import status
from quire.model.errors import BadInput

if TYPE_CHECKING:
    from quire.pipeline import Audit


def report(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A run or a sweep.")],
    out: Annotated[Path | None, typer.Option(help="The file to write; DIR/report.html if not given.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing report.")] = False,
    window: Annotated[
        str, typer.Option(help="What the diagram shows of a run: witness, start, end, a message like 1:17, or @LOGICAL_TIME.")
    ] = "witness",
    events: Annotated[
        int | None,
        typer.Option(help="About how many marks the diagram shows, by default 2000; consecutive messages are one mark."),
    ] = None,
    no_audit: Annotated[bool, typer.Option("--no-audit", help="Do not check the orders.")] = False,
    master: Master = None,
    remote: Remote = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Write a report: verdicts, costs and a diagram of a run, or the figures of a sweep, in one HTML file."""
    from quire.report.window import EVENTS
    from quire.report.write import check_report, write_report
    from quire.sweep.store import is_sweep
    from quire.trace.store import REPORT

    events = EVENTS if events is None else events
    path, where = out or directory / REPORT, requested_address(master, remote)
    check_report(path, window, events, force=force)
    if not directory.is_dir():
        raise BadInput(f"{directory} is not a directory; name a run or a sweep")
    audit = None if no_audit or is_sweep(directory) else audit_run(directory, where)
    with status(f"writing {path}"):
        write_report(directory, path, audit, centre=window, events=events, force=force)
    if json:
        verdict = None if audit is None else audit.verdict
        print(msgspec.json.encode({"report": str(path), "bytes": path.stat().st_size, "verdict": verdict}).decode())
        return
    say_where(str(path))


def say_where(path: str) -> None:
    """Tell a person what to open."""
    Console(highlight=False).print(f"report: [bold]{escape(shlex.quote(path))}[/]  (open it in a browser)", soft_wrap=True)


def report_beside(directory: Path, audit: Audit) -> str | None:
    """Write the report of a run that was just made and audited; the run stands even where its report does not."""
    from quire.report.write import write_report
    from quire.trace.store import REPORT

    path = directory / REPORT
    try:
        with status(f"writing {path}"):
            write_report(directory, path, audit, force=True)
    except BadInput as error:
        print(f"quire: could not write a report of {directory}: {error}", file=sys.stderr)
        return None
    except Exception as error:  # noqa: BLE001
        # A mistake of ours, which must not end a command that has a verdict to tell.
        retry = call("report", directory)
        print(f"quire: could not write a report of {directory}, because of {error!r}; {retry} shows more", file=sys.stderr)
        return None
    return str(path)
