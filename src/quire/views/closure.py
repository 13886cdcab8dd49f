"""Causes at the end of a view: the largest part of it that has all of its own, and an order in which they come first."""

from __future__ import annotations

from collections.abc import Iterable

from quire.views.packets import Data


def closed(longest: Iterable[int], runs: Iterable[Data]) -> tuple[int, ...]:
    """Cut what is held until no message in the cut has a cause outside of it. A run with such a cause is cut off with all
    that its member sent after it, which may be the cause of others. `runs` are all in the cut that are not delivered
    everywhere: what everybody has delivered has its causes."""
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
    """These runs in an order that depends on nothing but them. Whoever sent a run after another had delivered more."""
    return sorted(runs, key=lambda data: (sum(data.causes), data.run.origin, data.run.first))
