"""How far a total order is final: the stability rule of single-phase ordering, with sources for sites.

A source whose clock was heard at c can still produce an event at c + 1, and nothing earlier. So every event below the
least of these, over all sources, has its final position; nothing that is to come can precede it. Source: Sun and Maheshwari
1996, where a site's acknowledgement plays the part of a heartbeat here.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from quire.pipeline.ordering.stream.intake import CLOCK_MAX, Open

Key = tuple[int, int]
"""A key of the order: a clock, and the index of a source among the sources."""

NEVER_HEARD = -(1 << 63)
"""The clock of a source that has said nothing: any event of it is above."""


def frontier(
    marks: Sequence[int], open: Sequence[Open | None], silent: Collection[int] = (), *, together: bool = False
) -> Key | None:
    """The least key that an event can still have. Sources in `silent` are not waited for; None if all are silent.

    A source in a transaction can still add to it, and what it adds takes the key of the transaction's first event. If all
    events with one clock leave `together`, none does before the last.
    """
    positions = [
        (mark + 1 if running is None else running.first, 0 if together else source)
        for source, (mark, running) in enumerate(zip(marks, open, strict=True))
        if source not in silent
    ]
    return min(positions, default=None)


def fence(
    marks: Sequence[int], open: Sequence[Open | None], limit: Key, silent: Collection[int], *, together: bool = False
) -> tuple[tuple[int, ...], tuple[Open | None, ...]]:
    """What is known of the sources when everything below `limit` has left without waiting for the silent ones: whatever
    they should still say from before is late."""
    clock, rank = limit
    fenced, running = list(marks), list(open)
    for source in silent:
        transaction = open[source]
        if together:
            if transaction is None or transaction.first < clock:
                running[source] = None if marks[source] == CLOCK_MAX else Open(str(clock), clock)
            continue
        fenced[source] = max(marks[source], min(clock if source < rank else clock - 1, CLOCK_MAX))
        if transaction is not None and (transaction.first, source) < limit:
            running[source] = None
    return tuple(fenced), tuple(running)
