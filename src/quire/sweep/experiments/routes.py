"""The experiment on routes through a generated hierarchy: header costs and load per site, computed without packets.

Loads are in units of all messages of all sites together, so that hierarchies of any size can be compared.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from quire.model.errors import BadInput
from quire.simulation.config import MESSAGES_MAX
from quire.simulation.counting import Counted, Shape, count_routes
from quire.sweep.experiments.contract import Experiment, Quantity


class Cell(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`leaf` is the most sites that a cluster on the lowest layer may have; 0 is one more than `branching`."""

    sites: int = 16
    branching: int = 4
    leaf: int = 0
    inside: Literal["matrix", "coordinator"] = "matrix"
    messages: int = 20_000
    seed: int = 0


def _measure(cell: Cell) -> Counted:
    return count_routes(
        cell.sites, cell.branching, cell.leaf or None, messages=cell.messages, seed=cell.seed, inside=cell.inside
    )


def _check(cell: Cell) -> None:
    Shape(cell.sites, cell.branching, cell.leaf or cell.branching + 1)
    if not 1 <= cell.messages <= MESSAGES_MAX:
        raise BadInput(f"messages must be from 1 to {MESSAGES_MAX}, not {cell.messages}")


_QUANTITIES = (
    Quantity("layers", "", "layers of the hierarchy", lambda _, c: c.layers),
    Quantity("hops_mean", "hops", "hops of a message: mean", lambda _, c: c.hops_mean),
    Quantity("hops_max", "hops", "hops of a message: max", lambda _, c: c.hops_max),
    Quantity("entries_mean", "entries", "matrix entries over all hops of a message: mean", lambda _, c: c.entries_mean),
    Quantity("entries_max", "entries", "matrix entries over all hops of a message: max", lambda _, c: c.entries_max),
    Quantity("entries_per_site", "entries", "the most matrix entries of a message, for each site",
             lambda cell, c: c.entries_max / cell.sites),
    Quantity("header_bytes_mean", "bytes", "header bytes over all packets of a message: mean", lambda _, c: c.bytes_mean),
    Quantity("header_bytes_max", "bytes", "header bytes over all packets of a message: max", lambda _, c: c.bytes_max),
    Quantity("top_load", "of all messages", "what the coordinator at the top gets", lambda _, c: c.from_below[-1]),
    Quantity("bottom_load", "of all messages", "what a coordinator on the lowest layer gets, from below and above",
             lambda _, c: c.from_below[0] + c.from_above[0]),
    Quantity("largest_load", "of all messages", "the most that any role of a coordinator gets",
             lambda _, c: max(map(sum, zip(c.from_below, c.from_above, strict=True)))),
    Quantity("hottest", "of all messages", "what arrives over the network at the busiest site", lambda _, c: c.hottest),
)  # fmt: skip

ROUTES = Experiment(
    name="routes",
    summary="routes through generated hierarchies, counted",
    cell=Cell,
    quantities=_QUANTITIES,
    check=_check,
    measure=_measure,
    work=lambda cell: cell.messages + 10_000 + cell.sites,
)
