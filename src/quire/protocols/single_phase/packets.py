"""The packets of the single-phase protocol."""

from __future__ import annotations

from typing import ClassVar

from quire.model.messages import Run
from quire.model.packets import Packet

Vector = tuple[tuple[int, int], ...]
"""For each member a clock, and how many of its operation packets the member that vouches for that clock had received."""


class Operations(Packet, frozen=True, tag=1):
    """GOP: a run, the first of whose messages has the logical time `time`. Point-to-point adds what its sender knows."""

    name: ClassVar[str] = "GOP"
    time: int
    run: Run
    vector: Vector = ()

    def carried(self) -> Run:
        return self.run

    @property
    def until(self) -> int:
        """Nothing of this member's will ever be timed so early, or earlier, again."""
        return self.time + self.run.count - 1


class Acknowledgement(Packet, frozen=True, tag=2):
    """ACK: nothing of this member's will ever be timed `clock` or earlier."""

    name: ClassVar[str] = "ACK"
    latest_counts: ClassVar[bool] = True
    clock: int

    @property
    def until(self) -> int:
        return self.clock


class Relay(Packet, frozen=True, tag=3):
    """REL: an acknowledgement that passes on the clocks by which its sender found its own operation stable."""

    name: ClassVar[str] = "REL"
    clock: int
    vector: Vector
