"""The figures of a sweep, as its grid file defines them: a quantity plotted against a setting, with claims to compare.

A claim is a point, or a line across the figure, with its source. `paper` and `truth` are text for readers: what the source
states, and what is actually the case if that differs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from quire.model.errors import BadInput
from quire.sweep.experiments.contract import Experiment


class Claim(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """At `x`, the series should be at `y`, give or take the share `tolerance` of it."""

    x: float
    y: float
    series: str = ""
    tolerance: float = 0.1
    says: Literal["paper", "corrected"] = "corrected"


class Line(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A bound or a reference across the whole figure."""

    y: float
    label: str
    says: Literal["paper", "corrected"] = "paper"


class Figure(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    title: str
    x: str
    y: str | tuple[str, ...]
    by: str = ""
    """The setting whose values are the series; none where there is one series for each quantity."""
    where: dict[str, str | int | float | bool] = {}
    """Only the cells with these settings."""
    x_label: str = ""
    """What to write below, where the name of the setting says too little."""
    log_x: bool = False
    log_y: bool = False
    paper: str = ""
    truth: str = ""
    claim: tuple[Claim, ...] = ()
    line: tuple[Line, ...] = ()

    def quantities(self) -> tuple[str, ...]:
        return (self.y,) if isinstance(self.y, str) else self.y

    def takes(self, cell: Mapping[str, object]) -> bool:
        return all(cell[setting] == value for setting, value in self.where.items())


def label(value: object) -> str:
    """A setting's value as a figure names it."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def check_figure(figure: Figure, experiment: Experiment) -> None:
    """Refuse what cannot be drawn, in one sentence that ends what the caller begins."""
    settings = experiment.cell.__struct_fields__
    named: Sequence[tuple[str, str]] = [
        ("x", figure.x), *(("by", each) for each in [figure.by] if each), *(("where", each) for each in figure.where)
    ]  # fmt: skip
    for what, name in named:
        if name not in settings:
            raise BadInput(
                f"{what} is {name!r}, which is not a setting of {experiment.name}; choose one of {', '.join(settings)}"
            )
    if not figure.quantities():
        raise BadInput("y names no quantity")
    for name in figure.quantities():
        if experiment.quantity(name) is None:
            known = ", ".join(quantity.name for quantity in experiment.quantities)
            raise BadInput(f"y is {name!r}, which {experiment.name} does not measure; choose one of {known}")
    for claim in figure.claim:
        if not 0 <= claim.tolerance <= 1:
            raise BadInput(f"the tolerance of a claim is a share from 0 to 1, not {claim.tolerance:g}")
