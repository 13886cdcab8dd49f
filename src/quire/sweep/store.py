"""The directory of a sweep on disk: its grid, and the results so far.

`sweep.json` holds the grid; `results/` holds Parquet files, each written completely under a temporary name first, so that
finished results survive whatever ends a sweep. When nothing is left to measure, they are merged into one file, in the order of
the grid: the same grid gives the same bytes, however it was distributed and however often it was interrupted.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from quire.files.errors import writing
from quire.files.replacing import exchange
from quire.files.scratch import NEW, Scratch, move_files, sweep
from quire.model.errors import BadInput
from quire.sweep import experiments
from quire.sweep.experiments.contract import Experiment, Row
from quire.sweep.grid import Grid, GridFile
from quire.trace.store import report_parts

FORMAT = 1
_DESCRIPTION, _RESULTS, _WHOLE, _REPLACEMENT = "sweep.json", "results", "all.parquet", "replacement"
_OWN_NAME = re.compile(r"\d{8,}-\d{6,}\.parquet|all\.parquet")
_TYPES: Mapping[object, pa.DataType] = {int: pa.int64(), float: pa.float64(), bool: pa.bool_()}


class SweepInfo(msgspec.Struct, frozen=True, kw_only=True):
    """sweep.json."""

    format: int = FORMAT
    quire: str
    grid: GridFile


class Measured(msgspec.Struct, frozen=True):
    """The result of one cell: its quantities, or a sentence that says why there are none."""

    cell: str
    row: Row
    error: str | None = None


class StoredSweep:
    """A sweep as it was read: its grid, and the rows of those of its cells that are finished."""

    def __init__(self, grid: Grid, rows: Sequence[dict[str, Any]], errors: Mapping[str, str], quire: str) -> None:
        self.grid = grid
        self.rows = rows
        self.errors = errors
        self.quire = quire


def is_sweep(directory: Path) -> bool:
    return (directory / _DESCRIPTION).is_file()


def open_sweep(directory: Path) -> StoredSweep:
    """The sweep in this directory; raises BadInput in one sentence if it is not one."""
    info = _read_info(directory)
    grid = Grid(info.grid, str(directory / _DESCRIPTION))
    found = _read_results(directory)
    order = {cell: index for index, cell in enumerate(grid.cells)}
    mine = sorted((row for row in found.values() if row["cell"] in order), key=lambda row: order[row["cell"]])
    errors = {row["cell"]: row["error"] for row in mine if row["error"] is not None}
    return StoredSweep(grid, [row for row in mine if row["error"] is None], errors, info.quire)


class SweepStore:
    """A sweep that is being made. Only one process at a time holds it."""

    def __init__(self, directory: Path, grid: Grid, *, force: bool = False) -> None:
        _check_directory(directory, grid, force=force)
        self.directory = directory
        self._grid = grid
        self._home = directory / _REPLACEMENT if force and is_sweep(directory) else directory
        """A replacement is a separate sweep until it is complete: the old results stay, and the new sweep can be resumed."""
        with writing(directory):
            directory.mkdir(parents=True, exist_ok=True)
            self._lock = (directory / ".lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.close()
            raise BadInput(f"another sweep is writing to {directory}; wait for it, or choose another directory") from error
        try:
            self._open()
        except BaseException:
            self._lock.close()
            raise

    def _open(self) -> None:
        with writing(self.directory):
            sweep(self.directory)
            if self._home != self.directory:
                _remove_unfit(self._home, self._grid)
            self._results = self._home / _RESULTS
            self._results.mkdir(parents=True, exist_ok=True)
        self._found = _read_results(self._home)
        info = SweepInfo(quire=version("quire"), grid=self._grid.file)
        text = msgspec.json.format(msgspec.json.encode(info)) + b"\n"
        _replace(self._home / _DESCRIPTION, lambda path: path.write_bytes(text))
        self._parts = 0

    def __enter__(self) -> SweepStore:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._lock.close()

    def unfinished(self) -> list[str]:
        """The cells of the grid that are still to be measured, those that failed included."""
        return [cell for cell in self._grid.cells if cell not in self._found or self._found[cell]["error"] is not None]

    def add(self, measured: Iterable[Measured]) -> None:
        """Add results, and write them to disk at once."""
        rows = [self._row(each) for each in measured]
        if not rows:
            return
        self._found.update((row["cell"], row) for row in rows)
        self._parts += 1
        self._write(self._results / f"{os.getpid():08d}-{self._parts:06d}.parquet", rows)

    def finish(self) -> None:
        """Put all results in one file, in the order of the grid, then what other grids had measured here."""
        others = sorted(cell for cell in self._found if cell not in self._grid.cells)
        rows = [self._found[cell] for cell in (*self._grid.cells, *others) if cell in self._found]
        old = [path for path in self._results.glob("*.parquet") if path.name != _WHOLE]
        if rows and old:
            self._write(self._results / _WHOLE, rows)
            for path in old:
                path.unlink()
        if self._home != self.directory:
            self._replace_the_old()

    def _replace_the_old(self) -> None:
        with writing(self.directory), Scratch(self.directory, f".{_REPLACEMENT}.") as scratch:
            (scratch.path / NEW).mkdir()
            move_files(self._home, scratch.path / NEW, sweep_parts(self._home))
            exchange(scratch, sweep_parts(self.directory))
            with suppress(OSError):  # Somebody may have put something else there.
                self._home.rmdir()
        self._home, self._results = self.directory, self.directory / _RESULTS

    def _row(self, measured: Measured) -> dict[str, Any]:
        settings = msgspec.structs.asdict(self._grid.cells[measured.cell])
        return {"cell": measured.cell, **settings, **measured.row, "error": measured.error}

    def _write(self, path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
        schema = _schema(self._grid.experiment)
        columns = [pa.array([row.get(field.name) for row in rows], field.type) for field in schema]
        _replace(path, lambda work: pq.write_table(pa.table(columns, schema=schema), work, compression="zstd"))


def _replace(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file atomically."""
    work = path.with_name(f".{path.name}.part")
    with writing(path):
        write(work)
        work.replace(path)


def _schema(experiment: Experiment) -> pa.Schema:
    settings = [
        pa.field(field.name, _TYPES.get(field.type, pa.string()), nullable=False)
        for field in msgspec.structs.fields(experiment.cell)
    ]
    quantities = [pa.field(each.name, pa.float64()) for each in experiment.quantities]
    assert not {field.name for field in settings} & {field.name for field in quantities}, "a name means two things"
    return pa.schema([pa.field("cell", pa.string(), nullable=False), *settings, *quantities, pa.field("error", pa.string())])


def _check_directory(directory: Path, grid: Grid, *, force: bool) -> None:
    """Refuse a directory that holds something else, or results that do not belong with what would be added to them."""
    if not directory.exists():
        return
    if not directory.is_dir() or (not is_sweep(directory) and any(directory.iterdir())):
        raise BadInput(f"{directory} exists already and is not a sweep; choose another name")
    if not is_sweep(directory):
        return
    if force:
        sweep_parts(directory)
        return
    info = _read_info(directory)
    if info.quire != version("quire"):
        raise BadInput(
            f"{directory} was begun with version {info.quire}, and this is {version('quire')}: "
            "choose another directory, or --force to measure everything again"
        )
    if info.grid.experiment != grid.file.experiment:
        raise BadInput(
            f"{directory} holds results of the experiment {info.grid.experiment}, not {grid.file.experiment}: "
            "choose another directory, or --force to replace them"
        )


def sweep_parts(directory: Path) -> list[str]:
    """The files of the sweep in this directory; raises BadInput if there is none, or if other files are among its results."""
    _read_info(directory)
    results = sorted(path for path in (directory / _RESULTS).glob("*.parquet") if not path.is_dir())
    for path in results:
        if not _OWN_NAME.fullmatch(path.name):  # One of ours may be damaged.
            _read_rows(path)
    return [_DESCRIPTION, *report_parts(directory), *(f"{_RESULTS}/{path.name}" for path in results)]


def _remove_unfit(replacement: Path, grid: Grid) -> None:
    """Remove what an earlier attempt to measure again has left, unless this one can continue it."""
    _check_directory(replacement, grid, force=True)
    if not is_sweep(replacement):
        return
    info = _read_info(replacement)
    if (info.quire, info.grid.experiment) != (version("quire"), grid.file.experiment):
        for name in sweep_parts(replacement):
            (replacement / name).unlink()


def _read_info(directory: Path) -> SweepInfo:
    path = directory / _DESCRIPTION
    try:
        info = msgspec.json.decode(path.read_bytes(), type=SweepInfo)
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}; is {directory} a sweep?") from error
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise BadInput(f"{path} is not the description of a sweep: {error}") from error
    if info.format != FORMAT:
        raise BadInput(f"{path} has format {info.format}, this version reads format {FORMAT}")
    experiments.find(info.grid.experiment)
    return info


def _read_results(directory: Path) -> dict[str, dict[str, Any]]:
    """The final result of each cell: a result rather than an error, if it was tried more than once."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted((directory / _RESULTS).glob("*.parquet")):
        for row in _read_rows(path):
            if row["cell"] not in found or row["error"] is None:
                found[row["cell"]] = row
    return found


def _read_rows(path: Path) -> list[dict[str, Any]]:
    try:
        rows = pq.read_table(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise BadInput(f"{path} is not a file of results: {str(error).splitlines()[0]}") from error
    for name in ("cell", "error"):
        if name not in rows.column_names:
            raise BadInput(f"{path} is not a file of results: it has no column {name!r}")
    return rows.to_pylist()
