"""An audit from the command line: where it is done, what a person sees meanwhile, and the exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import typer
from rich.console import Console

from quire.cli.spark import LOCAL

if TYPE_CHECKING:
    from quire.pipeline import Audit

EXIT_CODES = {"holds": 0, "violated": 1, "undecided": 3}
HERE_MAX = 2_000_000
"""Up to so many events an audit takes less time in this process than Spark takes to start."""
COLOURS = {"holds": "green", "violated": "red", "undecided": "yellow"}


def as_json(audit: Audit) -> dict[str, object]:
    """An audit as it is printed for machines: what it comes to, then everything else."""
    return {"verdict": audit.verdict, **msgspec.structs.asdict(audit)}


@contextmanager
def status(text: str) -> Iterator[Callable[[str], None]]:
    """What is being done, for a person who watches; the caller may say what comes next."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.status(text) as shown:
        yield shown.update


def audit_run(directory: Path, where: str | None, *, expect: Sequence[str] | None = None, segments: int | None = None) -> Audit:
    """Audit the run on a session at `where`; if that is None, a small one in this process, and a large one on Spark here.

    Where Spark itself fails, says so and exits as undecided.
    """
    from quire.pipeline.auditing.auditor import audit, audit_here
    from quire.pipeline.layout import lay_out
    from quire.pipeline.session import reason_of_failure, session
    from quire.trace.store import open_run

    if where is None and lay_out(open_run(directory)).rows <= HERE_MAX:
        with status(f"auditing {directory}"):
            return audit_here(directory, expect=expect, segments=segments)
    with status("starting Spark") as say, session(where or LOCAL) as spark:
        from pyspark.errors import PySparkException

        say(f"auditing {directory}")
        try:
            return audit(spark, directory, expect=expect, segments=segments)
        except PySparkException as error:
            reason = reason_of_failure(error)
            print(f"quire: could not decide on {directory}, because Spark failed: {reason}", file=sys.stderr)
            raise typer.Exit(EXIT_CODES["undecided"]) from None
