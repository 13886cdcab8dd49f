"""The results of an import: what is reported about it, and which files it consists of."""

from __future__ import annotations

from pathlib import Path

import msgspec

from quire.files.replacing import check_replaceable
from quire.model.errors import BadInput
from quire.pipeline.importing.arranging import Skew
from quire.pipeline.importing.defects import Defect
from quire.trace.store import run_parts

INDEX = "executions.json"
WHAT = "a run directory"


class Execution(msgspec.Struct, frozen=True, kw_only=True):
    """The imported form of one execution, or of several that share a run."""

    directory: str
    label: str
    hosts: tuple[str, ...]
    """The processes of the run: hosts, or lanes of hosts."""
    named: int
    """How many hosts the log names."""
    events: int
    rows: int
    messages: int
    deliveries: int
    """The deliveries that the log itself records."""
    links: int
    """The number of implied deliveries: causes at other hosts that clocks or spans reveal. They are rows of the trace, but no
    events."""
    together: int = 0
    """How many executions share this run; 0 if it is a single one."""


class Listed(msgspec.Struct, frozen=True):
    """An entry in the index of executions."""

    directory: str
    label: str


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    format: str
    executions: tuple[Execution, ...]
    defects: tuple[Defect, ...]
    defect_counts: dict[str, int]
    set_apart: int = 0
    """How many lines could not be read."""
    notes: tuple[str, ...] = ()
    """Warnings about things that may not be as intended."""
    skews: tuple[Skew, ...] = ()
    """Clock differences between hosts, the largest first in each execution."""


def check_out(out: Path, *, force: bool) -> None:
    """Refuse an existing directory, unless it is to be replaced and holds a run or runs (or nothing)."""
    check_replaceable(out, imported_parts, WHAT, force=force)


def imported_parts(directory: Path) -> list[str]:
    """The files of the run or runs in this directory; raises BadInput if there is none."""
    listed = read_index(directory)
    if listed is None:
        return run_parts(directory)
    names = [each.directory for each in listed if Path(each.directory).name == each.directory]
    runs = [name for name in names if (directory / name / "run.json").is_file()]
    if not runs:
        raise BadInput(f"{directory / INDEX} lists no existing run")
    return [INDEX, *(f"{name}/{part}" for name in runs for part in run_parts(directory / name))]


def read_index(directory: Path) -> list[Listed] | None:
    """The index of the executions' runs; None if they do not have one run each."""
    index = directory / INDEX
    if not index.is_file():
        return None
    try:
        return msgspec.json.decode(index.read_bytes(), type=list[Listed])
    except (OSError, msgspec.DecodeError) as error:
        raise BadInput(f"{index} does not list executions: {error}") from error
