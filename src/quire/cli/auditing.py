"""Runs an audit for the command line: chooses where it runs, shows progress, and defines the exit codes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import typer

from quire.cli.workers import few_events, workers

if TYPE_CHECKING:
    from quire.pipeline import Audit

EXIT_CODES = {"holds": 0, "violated": 1, "undecided": 3}
COLOURS = {"holds": "green", "violated": "red", "undecided": "yellow"}


def as_json(audit: Audit) -> dict[str, object]:
    """An audit as JSON: the verdict first, then everything else."""
    return {"verdict": audit.verdict, **msgspec.structs.asdict(audit)}


def audit_run(directory: Path, where: str | None, *, expect: Sequence[str] | None = None, segments: int | None = None) -> Audit:
    """Audit the run with the workers at `where`. If Spark itself fails, say so and exit as undecided."""
    from quire.pipeline.auditing.auditor import audit, audit_here
    from quire.pipeline.layout import lay_out
    from quire.pipeline.session import reason_of_failure
    from quire.trace.store import open_run

    small = few_events(lay_out(open_run(directory)))
    with workers(where, small=small, doing=f"auditing {directory}") as (_, spark):
        if spark is None:
            return audit_here(directory, expect=expect, segments=segments)
        from pyspark.errors import PySparkException

        try:
            return audit(spark, directory, expect=expect, segments=segments)
        except PySparkException as error:
            reason = reason_of_failure(error)
            print(f"quire: could not decide on {directory}, because Spark failed: {reason}", file=sys.stderr)
            raise typer.Exit(EXIT_CODES["undecided"]) from None
