"""Writes the report of a run or a sweep to one file, atomically."""

from __future__ import annotations

from pathlib import Path

from quire.files.whole import check_file, write_file
from quire.model.errors import BadInput
from quire.pipeline.auditing.verdicts import Audit
from quire.report.run_report import report_run
from quire.report.sweep_report import report_sweep
from quire.report.window import EVENTS, EVENTS_MAX, parse_centre
from quire.sweep.store import is_sweep
from quire.trace.store import is_report


def check_report(path: Path, centre: str, events: int, *, force: bool) -> None:
    """Refuse, before anything is read, what cannot be written or shown."""
    check_file(path, is_report, "a report made by Quire", force=force)
    if not 1 <= events <= EVENTS_MAX:
        raise BadInput(f"--events must be from 1 to {EVENTS_MAX}, not {events}")
    parse_centre(centre)


def write_report(
    directory: Path,
    path: Path,
    audit: Audit | None = None,
    *,
    centre: str = "witness",
    events: int = EVENTS,
    force: bool = False,
) -> None:
    """Write the report of a run, with its audit if there is one, or of a sweep; raises BadInput in one sentence."""
    check_report(path, centre, events, force=force)
    text = report_sweep(directory) if is_sweep(directory) else report_run(directory, audit, centre=centre, events=events)
    write_file(path, lambda work: work.write_text(text, encoding="utf-8"))
