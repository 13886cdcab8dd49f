"""Clients that hold the others up: which, and for how long.

A sequencer keeps what a client has not delivered, up to a bound; then the others wait for that client. One that does not move
for longer than the timeout while others wait is to be evicted, however alive it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from quire.live import clock

LOOK_S_MAX = 2.0
"""How much of the time between two looks counts at most: this process may have been stopped."""


class Laggards:
    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._looked_at: float | None = None
        self._known: dict[int, tuple[tuple[str, int], float]] = {}
        """Each with how far it was, and for how many seconds it has been there."""

    def look(self, holding_up: Mapping[int, tuple[str, int]]) -> Iterator[tuple[int, str]]:
        """Who has held the others up for too long, and why it is to go. `holding_up`: who does at the moment, and how far it
        has delivered which group."""
        now = clock.now()
        passed_s = 0.0 if self._looked_at is None else min(now - self._looked_at, LOOK_S_MAX)
        self._looked_at = now
        known, self._known = self._known, {}
        for client, position in holding_up.items():
            before, held_s = known.get(client, (position, -passed_s))
            held_s = held_s + passed_s if before == position else 0.0
            self._known[client] = (position, held_s)
            if held_s > self._timeout_s:
                group, number = position
                yield (
                    client,
                    f"others waited {held_s:.1f} s for it, and it delivered nothing after number {number} of {group!r}",
                )
