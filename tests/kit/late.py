"""A network on which some copies of packets come long after all others."""

from __future__ import annotations

from random import Random

import msgspec

from quire.simulation.delays import Delays
from quire.simulation.network import Network, Split


class Lateness(msgspec.Struct, frozen=True):
    """Which share of the copies is late, and by how much at most."""

    share: float = 0.0
    most_ns: int = 0


class LateNetwork(Network):
    """Loses, repeats and reorders like any other. Where nobody asks for late copies, it draws what any other would."""

    def __init__(
        self,
        members: int,
        delays: Delays,
        random: Random,
        *,
        lateness: Lateness,
        reorder: bool = True,
        loss: float = 0.0,
        duplicate: float = 0.0,
        splits: tuple[Split, ...] = (),
    ) -> None:
        super().__init__(members, delays, random, reorder=reorder, loss=loss, duplicate=duplicate, splits=splits)
        self._lateness = lateness
        self._draw = random.random

    def arrivals(self, source: int, destination: int, now_ns: int) -> list[int]:
        times = super().arrivals(source, destination, now_ns)
        share, most_ns = self._lateness.share, self._lateness.most_ns
        if not share:
            return times
        return [time + int(self._draw() * most_ns) if self._draw() < share else time for time in times]
