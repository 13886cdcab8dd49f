"""The packets that sites exchange, and the letters that they carry.

A *letter* is a message on its way through the tree: its sender, and either a run of the application's messages or a note
between sites about membership. The header by which a cluster orders it is removed after each hop, so on each hop it has only
its own header and that of the present cluster.

`dests` are the sites for which a copy is: none stands for the receiver alone, EVERYBODY for all founders of the group
that are behind the receiver. Copies for sites behind the same next hop travel as one until their paths part.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from quire.model.messages import Run
from quire.model.packets import Packet
from quire.protocols.clusters.encoding import entry_count

Sites = tuple[int, ...]

EVERYBODY: Sites = (-1,)
NO_RUN = Run(0, 0, 0)


class Letter(msgspec.Struct, frozen=True):
    """A message from one site to others: either a run or a note."""

    source: int
    run: Run = NO_RUN
    note: bytes = b""

    @property
    def weight(self) -> int:
        """How much buffer space it takes, in messages."""
        return self.run.count or 1


class Carrier(Packet, frozen=True):
    """A letter on a hop through a cluster. `slot`: its sender's there; `life`: the incarnation of the receiver that it is
    for."""

    cluster: int
    slot: int
    life: int
    source: int
    dests: tuple[int, ...]
    run: Run
    note: bytes

    def carried(self) -> Run | None:
        return None if self.note else self.run

    @property
    def letter(self) -> Letter:
        return Letter(self.source, self.run, self.note)


class Tagged(Carrier, frozen=True, tag=1):
    """From member to member, with the sender's matrix clock."""

    name: ClassVar[str] = "MATRIX"

    encoding: int
    tag: tuple[int, ...]

    @property
    def entries(self) -> int:
        """How many entries of the matrix are sent: the cost of a header, as the paper counts it."""
        return entry_count(self.encoding, self.tag)


class Up(Carrier, frozen=True, tag=2):
    """From a member to the coordinator. `number`: the packet's position on this link."""

    name: ClassVar[str] = "UP"

    number: int


class Down(Carrier, frozen=True, tag=3):
    """From the coordinator to a member. `serial`: the letter's position in the coordinator's order."""

    name: ClassVar[str] = "DOWN"

    number: int
    serial: int
