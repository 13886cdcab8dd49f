"""The interface of an experiment: the settings that define a cell of a grid, and the quantities measured in it.

A cell is a frozen struct of plain values, so that it has a unique name, can be sent to a worker as bytes, and becomes columns
of the result. A quantity is one entry in a table: a name, a unit, a sentence, and how to compute it from the measurement.
Adding one to an experiment adds a column to its results and a possible axis to its figures; nothing else changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

Row = dict[str, float | None]
"""The measured quantities of a cell by name; None where there was nothing to measure."""


class Quantity(NamedTuple):
    """A measured quantity. `of` computes it from the cell and the result of its run."""

    name: str
    unit: str
    summary: str
    of: Callable[[Any, Any], float | None]


class Experiment(NamedTuple):
    name: str
    summary: str
    cell: type[msgspec.Struct]
    """The settings with their defaults; each may be an axis. One of them is `seed`."""
    quantities: Sequence[Quantity]
    check: Callable[[Any], None]
    """Raises BadInput, before anything runs, if this cell cannot be measured."""
    measure: Callable[[Any], Any]
    """Runs the cell; what it returns is handed to the quantities."""
    work: Callable[[Any], float]
    """An estimate of the work of a cell, in any unit, from which the sizes of tasks are chosen."""
    choices: Callable[[str], Sequence[str] | None] = lambda _: None
    """For a setting, the values that the word `all` stands for; None if it stands for itself."""

    def run(self, cell: Any) -> Row:
        """The quantities of one cell."""
        measured = self.measure(cell)
        return {quantity.name: quantity.of(cell, measured) for quantity in self.quantities}

    def quantity(self, name: str) -> Quantity | None:
        return next((quantity for quantity in self.quantities if quantity.name == name), None)
