"""The simulated network: decides when each copy of a packet arrives, if any does.

Links keep order unless reordering is requested: from one member to another, a packet arrives no earlier than the one before it.
Packets are lost independently of each other; between the sides of a partition all are lost that are sent while it lasts. A
duplicated packet travels twice, each copy with its own delay.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import msgspec

from quire.simulation.delays import Delays


class Split(msgspec.Struct, frozen=True):
    """The sides of a partition, and from when until when they cannot reach each other."""

    sides: tuple[tuple[int, ...], ...]
    start_ns: int
    end_ns: int

    def separates(self, source: int, destination: int, now_ns: int) -> bool:
        if not self.start_ns <= now_ns < self.end_ns:
            return False
        homes = [[member in side for side in self.sides] for member in (source, destination)]
        # A member that is on no side still reaches everybody.
        return all(any(home) for home in homes) and homes[0] != homes[1]


class Network:
    def __init__(
        self,
        members: int,
        delays: Delays,
        random: Random,
        *,
        reorder: bool = False,
        loss: float = 0.0,
        duplicate: float = 0.0,
        splits: Sequence[Split] = (),
    ) -> None:
        self.delays = delays
        self.loses = loss > 0 or bool(splits)
        self.repeats_or_reorders = duplicate > 0 or reorder
        self._uniform = random.random
        self._members = members
        self._reorder = reorder
        self._loss = loss
        self._duplicate = duplicate
        self._splits = tuple(splits)
        # Only for links that have been used: in a large group, few pairs ever communicate.
        self._last: dict[int, int] = {}

    def one_delay_ns(self) -> int | None:
        """The delay of every packet, if all arrive exactly once after the same time; else None."""
        return None if self.loses or self.repeats_or_reorders else self.delays.constant_ns()

    def arrivals(self, source: int, destination: int, now_ns: int) -> list[int]:
        """When each copy of a packet that is sent now arrives. Draws random numbers: call it once per packet."""
        uniform = self._uniform
        if self._splits and any(split.separates(source, destination, now_ns) for split in self._splits):
            return []
        copies = 2 if self._duplicate and uniform() < self._duplicate else 1
        model, last, times = self.delays.between(source, destination), self._last, []
        link = source * self._members + destination
        for _ in range(copies):
            if self._loss and uniform() < self._loss:
                continue
            time = now_ns + model.draw(uniform)
            if not self._reorder:
                time = last[link] = max(time, last.get(link, 0))
            times.append(time)
        return times
