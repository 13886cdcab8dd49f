"""The watermark of a streaming total order: how far it is final, by the stability rule of single-phase ordering.

A source whose latest clock is c can still produce an event at c + 1, but nothing earlier. So every event below the minimum of
these over all sources has its final position; nothing still to come can precede it. Source: Sun and Maheshwari 1996, with
sources for sites and heartbeats for a site's acknowledgements.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from quire.pipeline.ordering.stream.intake import CLOCK_MAX, Open

Key = tuple[int, int]
"""A key of the order: a clock, and the index of a source among the sources."""

NEVER_HEARD = -(1 << 63)
"""The mark of a source that has not been heard from: all its events are above it."""


def frontier(
    marks: Sequence[int], open: Sequence[Open | None], silent: Collection[int] = (), *, together: bool = False
) -> Key | None:
    """The smallest key that a future event can have. Sources in `silent` are not waited for; None if all are silent.

    A source with an open transaction can still add to it, and the added events take the key of the transaction's first event.
    If all events with one clock leave `together`, none leaves before the last of them has arrived.
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
    """The marks and open transactions after everything below `limit` has left without waiting for silent sources: events of
    those below the limit are late from then on."""
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
