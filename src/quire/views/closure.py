"""Causality at the end of a view: the largest causally closed cut, and an order in which causes come first."""

from __future__ import annotations

from collections.abc import Iterable

from quire.views.packets import Data


def closed(longest: Iterable[int], runs: Iterable[Data]) -> tuple[int, ...]:
    """Shrink the cut until every message in it has all its causes in it. A run that lacks a cause is cut off together with
    everything that its member sent later, and so may take others with it. `longest` is the cut to begin with, and `runs` are
    the runs in it that are not yet delivered everywhere; those that are need no check, because their causes were delivered."""
    cut = list(longest)
    left = list(runs)
    moved = True
    while moved:
        moved = False
        kept = []
        for data in left:
            run = data.run
            if run.end > cut[run.origin]:
                continue
            if any(count > cut[member] for member, count in enumerate(data.causes)):
                cut[run.origin] = run.first
                moved = True
            else:
                kept.append(data)
        left = kept
    return tuple(cut)


def causes_first(runs: Iterable[Data]) -> list[Data]:
    """The runs in an order that respects causality and depends on the runs alone. A run that depends on another was sent by a
    member that had delivered more, so sorting by the number of causes suffices."""
    return sorted(runs, key=lambda data: (sum(data.causes), data.run.origin, data.run.first))
