"""Finds slow clients that hold up the others for too long, so that a sequencer can evict them.

A sequencer keeps what a client has not delivered, up to a bound; then the others wait for that client. One that makes no
progress for longer than the timeout while others wait is to be evicted, even though it is alive.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from quire.live import clock

LOOK_S_MAX = 2.0
"""How much of the time between two checks counts at most: this process may have been stopped."""


class Laggards:
    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._looked_at: float | None = None
        self._known: dict[int, tuple[tuple[str, int], float]] = {}
        """For each such client, how far it has delivered, and for how many seconds that has not changed."""

    def look(self, holding_up: Mapping[int, tuple[str, int]]) -> Iterator[tuple[int, str]]:
        """The clients to evict, each with the reason. `holding_up`: the clients that others wait for at the moment, and how far
        each has delivered which group."""
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
