"""The grid of a sweep: which cells to measure, read from a TOML file and fully validated before anything runs.

Each `[[grid]]` table is a Cartesian product: every setting is one value or a list of values, and omitted ones have their
default. The grid is the union of all tables; a cell that occurs twice is measured once.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from importlib import resources
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import msgspec

from quire.model.errors import BadInput
from quire.sweep import experiments
from quire.sweep.experiments.contract import Experiment
from quire.sweep.figures import Figure, check_figure

CELLS_MAX = 100_000
_FILE_BYTES_MAX = 1 << 20


class GridFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file as it is written; `read_grid` makes a Grid of it."""

    title: str
    about: str = ""
    source: str = ""
    experiment: str = "simulate"
    grid: tuple[dict[str, Any], ...]
    figure: tuple[Figure, ...] = ()


class Grid:
    """Cells by name, in the order of the file, and the file that they come from."""

    def __init__(self, file: GridFile, where: str) -> None:
        self.file = file
        self.where = where
        self.experiment = experiments.find(file.experiment)
        self.cells = _cells(file, self.experiment, where)
        for number, figure in enumerate(file.figure, 1):
            try:
                check_figure(figure, self.experiment)
            except BadInput as error:
                raise BadInput(f"{where}: in figure {number}, {error}") from error


def shipped() -> Mapping[str, str]:
    """The grids that come with Quire: name to title."""
    found = {}
    for path in sorted(resources.files("quire.sweep").joinpath("grids").iterdir(), key=lambda path: path.name):
        name = path.name.removesuffix(".toml")
        found[name] = _parse(path.read_bytes(), name).title
    return found


def read_grid(name: str) -> Grid:
    """The grid in this file, or the shipped one of this name; raises BadInput in one sentence."""
    path = Path(name)
    if path.suffix != ".toml" and not path.exists():
        known = shipped()
        if name not in known:
            raise BadInput(f"there is no grid {name!r}; name a TOML file, or one of {', '.join(known)}")
        return Grid(_parse(resources.files("quire.sweep").joinpath("grids", f"{name}.toml").read_bytes(), name), name)
    try:
        with path.open("rb") as file:
            data = file.read(_FILE_BYTES_MAX + 1)
    except OSError as error:
        raise BadInput(f"cannot read the grid {name}: {error.strerror}") from error
    if len(data) > _FILE_BYTES_MAX:
        raise BadInput(f"{name} is too large for a grid: more than {_FILE_BYTES_MAX >> 20} MiB")
    return Grid(_parse(data, name), name)


def _parse(data: bytes, where: str) -> GridFile:
    try:
        return msgspec.convert(tomllib.loads(data.decode()), GridFile)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadInput(f"{where} is not TOML: {error}") from error
    except RecursionError as error:
        raise BadInput(f"{where} is not a grid: it is nested too deeply") from error
    except msgspec.ValidationError as error:
        raise BadInput(f"{where} is not a grid: {error}") from error


def cell_name(experiment: Experiment, cell: msgspec.Struct) -> str:
    """A name that only this cell has, the same in every sweep."""
    settings = msgspec.json.encode([experiment.name, msgspec.to_builtins(cell)], order="sorted")
    return sha256(settings).hexdigest()[:20]


def _cells(file: GridFile, experiment: Experiment, where: str) -> dict[str, msgspec.Struct]:
    cells: dict[str, msgspec.Struct] = {}
    if not file.grid:
        raise BadInput(f"{where} has no cells: write at least one [[grid]]")
    for number, table in enumerate(file.grid, 1):
        try:
            for cell in _product(table, experiment):
                cells[cell_name(experiment, cell)] = cell
                if len(cells) > CELLS_MAX:
                    raise BadInput(f"there are more than {CELLS_MAX} cells; ask for fewer")
        except BadInput as error:
            raise BadInput(f"{where}: in grid {number}, {error}") from error
    return cells


def _product(table: Mapping[str, Any], experiment: Experiment) -> Iterator[msgspec.Struct]:
    axes = dict(_axis(setting, given, experiment) for setting, given in table.items())
    if "seed" in table and "seeds" in table:
        raise BadInput("seed and seeds exclude each other")
    if prod(map(len, axes.values())) > CELLS_MAX:
        raise BadInput(f"there are more than {CELLS_MAX} cells; ask for fewer")
    for values in product(*axes.values()):
        cell = experiment.cell(**dict(zip(axes, values, strict=True)))
        experiment.check(cell)
        yield cell


def _axis(setting: str, given: object, experiment: Experiment) -> tuple[str, Sequence[object]]:
    """The setting that is meant, and the values that it takes."""
    if setting == "seeds":
        if not isinstance(given, int) or isinstance(given, bool) or not 1 <= given <= CELLS_MAX:
            raise BadInput(f"seeds is how many there are, from 1 to {CELLS_MAX}, not {given!r}")
        return "seed", range(given)
    fields = {field.name: field for field in msgspec.structs.fields(experiment.cell)}
    if setting not in fields:
        raise BadInput(f"{setting!r} is not a setting of {experiment.name}; it has {', '.join(fields)}, and seeds")
    values = given if isinstance(given, list) else [given]
    if not values:
        raise BadInput(f"{setting} has no values")
    every = experiment.choices(setting)
    if every is not None:
        values = [each for value in values for each in (every if value == "all" else (value,))]
    try:
        return setting, list(dict.fromkeys(msgspec.convert(value, fields[setting].type) for value in values))
    except (msgspec.ValidationError, TypeError) as error:
        raise BadInput(f"{setting} cannot be {given!r}: {str(error)[:1].lower()}{str(error)[1:]}") from error
