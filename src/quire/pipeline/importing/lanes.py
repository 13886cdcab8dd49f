"""Splits hosts into lanes: chains of events that follow each other, each of which becomes a process of the trace."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from quire.model.errors import BadInput
from quire.pipeline.causes import chains, lanes
from quire.pipeline.importing.mapping import NOWHERE

LANES_MAX = 10_000
LANES_FEW = 256
"""If a run needs no more lanes than this, it has them without being asked: the vectors of so many processes are still small."""
LANES_FEW_SHARED = 1_024
"""The same if executions share a run: each has only some of the lanes."""

_CELLS_MAX = 100_000_000
"""If the vectors that tell who follows whom would need more entries than this, fewer lanes are tried."""


def find_lanes(
    order: np.ndarray, begin: np.ndarray, causes: np.ndarray, execution: np.ndarray, host: np.ndarray, hosts: Sequence[str],
    *, many: bool,
) -> np.ndarray | None:  # fmt: skip
    """The lane of each event among those of its host; -1 for events that are not in `order`. None if few lanes do not suffice,
    unless `many` are wanted; then an event continues a lane only if it follows the last event there directly."""
    is_cause = np.zeros(len(begin) - 1, np.bool_)
    is_cause[causes] = True
    rows = max(1, int(np.bincount(execution[is_cause]).max(initial=0)))
    limit = min(LANES_FEW_SHARED if execution.any() else LANES_FEW, _CELLS_MAX // rows)
    found, few = chains(order, begin, causes, execution, host, len(hosts), is_cause, rows, limit)
    if not few and many:
        found = lanes(order, begin, causes, execution, host, len(hosts))
        if int(found.max(initial=0)) >= LANES_MAX:
            raise _too_many(hosts)
    return np.asarray(found) if few or many else None


def name_lanes(hosts: Sequence[str], used: np.ndarray) -> list[str]:
    """The names of lanes, given as host * LANES_MAX + lane; the first lane of a host has the host's name."""
    if len(used) > LANES_MAX:
        raise _too_many(hosts)
    numbers = used % LANES_MAX
    if tuple(hosts) == (NOWHERE,):
        return [f"lane-{number + 1}" for number in numbers.tolist()]
    taken = set(hosts)
    names = []
    for host, number in zip((used // LANES_MAX).tolist(), numbers.tolist(), strict=True):
        name = hosts[host] if number == 0 else f"{hosts[host]}~{number + 1}"
        while number and name in taken:  # There is a host with the name of this lane.
            name += "~"
        taken.add(name)
        names.append(name)
    return names


def _too_many(hosts: Sequence[str]) -> BadInput:
    advice = "say with --map host=COLUMN where they happened"
    if tuple(hosts) != (NOWHERE,):
        advice = "import every trace as an execution, or leave out --lanes"
    return BadInput(f"events follow each other in more than {LANES_MAX:,} lines; {advice}")
