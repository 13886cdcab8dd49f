"""What the network does to a packet: when each copy of it arrives, if one does.

Links keep their order unless reordering is asked for: on one ordered pair a packet arrives no earlier than the one
before it. Packets are lost independently of each other, or all of them between the sides of a partition while it
lasts; the moment of sending decides. A duplicated packet travels twice, each copy with a delay of its own.
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
        # Only of links that carried something: in a large group few of all pairs ever speak to each other.
        self._last: dict[int, int] = {}

    def one_delay_ns(self) -> int | None:
        """The delay of every copy, where all arrive once and after the same time; else None."""
        return None if self.loses or self.repeats_or_reorders else self.delays.constant_ns()

    def arrivals(self, source: int, destination: int, now_ns: int) -> list[int]:
        """When each copy of a packet that is sent now arrives. Draws from the seed: call it once for each packet."""
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
