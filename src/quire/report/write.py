"""A report written: the page for whatever the directory holds, in one file, whole or not at all."""

from __future__ import annotations

from pathlib import Path

from quire.model.errors import BadInput
from quire.pipeline.auditing.verdicts import Audit
from quire.report.run_report import report_run
from quire.report.sweep_report import report_sweep
from quire.report.window import EVENTS, EVENTS_MAX, parse_spot
from quire.sweep.store import is_sweep

NAME = "report.html"


def check_report(path: Path, spot: str, events: int, *, force: bool) -> None:
    """Refuse, before anything is read, what cannot be written or shown."""
    if path.exists() and not force:
        raise BadInput(f"{path} exists already; choose another --out, or --force to replace it")
    if path.is_dir():
        raise BadInput(f"{path} is a directory; --out names the file of the report")
    if not 1 <= events <= EVENTS_MAX:
        raise BadInput(f"--events must be from 1 to {EVENTS_MAX}, not {events}")
    parse_spot(spot)


def write_report(
    directory: Path, path: Path, audit: Audit | None = None, *, spot: str = "witness", events: int = EVENTS, force: bool = False
) -> None:
    """Write the report of a run, with its audit if there is one, or of a sweep; raises BadInput in one sentence."""
    check_report(path, spot, events, force=force)
    text = report_sweep(directory) if is_sweep(directory) else report_run(directory, audit, spot=spot, events=events)
    work = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        work.write_text(text, encoding="utf-8")
        work.replace(path)
    except OSError as error:
        raise BadInput(f"cannot write {path}: {error.strerror}") from error
