"""Sweeps: run a grid of simulations on Spark, cell by cell and resumable, with the results in Parquet.

`sweep(spark, grid, directory)` is all that most callers need; `read_grid` makes the grid from a file or a shipped name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quire.sweep.grid import read_grid
    from quire.sweep.sweeper import sweep

__all__ = ["read_grid", "sweep"]


def __getattr__(name: str) -> object:
    # Importing this package is cheap; what it needs is loaded when it is used.
    if name == "sweep":
        from quire.sweep.sweeper import sweep

        return sweep
    if name == "read_grid":
        from quire.sweep.grid import read_grid

        return read_grid
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
