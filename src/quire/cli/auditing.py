"""An audit from the command line: a Spark session of its own, what a person sees meanwhile, and the exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import typer
from rich.console import Console

if TYPE_CHECKING:
    from quire.pipeline import Audit

EXIT_CODES = {"holds": 0, "violated": 1, "undecided": 3}
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


def audit_run(directory: Path, where: str, *, expect: Sequence[str] | None = None, segments: int | None = None) -> Audit:
    """Audit the run on a session at `where`. Where Spark itself fails, says so and exits as undecided."""
    from quire.pipeline.auditing.auditor import audit
    from quire.pipeline.session import reason_of_failure, session

    with status("starting Spark") as say, session(where) as spark:
        from pyspark.errors import PySparkException

        say(f"auditing {directory}")
        try:
            return audit(spark, directory, expect=expect, segments=segments)
        except PySparkException as error:
            reason = reason_of_failure(error)
            print(f"quire: could not decide on {directory}, because Spark failed: {reason}", file=sys.stderr)
            raise typer.Exit(EXIT_CODES["undecided"]) from None
