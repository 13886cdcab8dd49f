"""`quire collect`: one run of what the processes of a group recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quire.model.errors import BadInput


def collect(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Directory with the parts of the trace.")],
    out: Annotated[Path | None, typer.Option(help="Directory for the run; runs/NAME if not given.")] = None,
    without: Annotated[str | None, typer.Option(help="Processes whose part is missing and may be left out, like 0,2.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing run.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Combine the parts that processes write with `trace=DIR` into one run, which can be audited and reported.

    Copy parts from several hosts into one directory first. If the directory holds several runs, the latest is collected.
    The parts are kept. The part of a crashed process is used as far as it goes, and the run says so.
    """
    from quire.cli.ending import conclude
    from quire.live.runs.collecting import collect as collect_parts
    from quire.live.runs.collecting import latest_run
    from quire.trace.store import check_new

    left_out = _numbers(without)
    target = out or Path("runs") / latest_run(directory).identity.run
    check_new(target, force=force)
    summary = collect_parts(directory, target, without=left_out, force=force)
    conclude(summary, target, "", audited=False, reported=False, json=json)


def _numbers(text: str | None) -> tuple[int, ...]:
    try:
        return tuple(int(number) for number in text.split(",")) if text else ()
    except ValueError:
        raise BadInput(f"--without takes process numbers like 0,2, not {text!r}") from None
