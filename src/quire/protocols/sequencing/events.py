"""The numbered events of a group: messages, joins, leaves, and blanks for numbers lost with their sequencer.

The numbers of a group are one sequence, and every kind of event takes numbers from it, so that membership changes between the
same two messages at all members. A run of k messages takes k numbers and has one context.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from quire.model.messages import NUMBER_MAX, Run
from quire.model.packets import Packet
from quire.protocols.sequencing.contexts import weight
from quire.protocols.sequencing.senders import Numbers

MESSAGES, JOIN, LEAVE, BLANK = range(4)
KINDS = ("MSG", "JOIN", "LEAVE", "NOP")
OPS = {JOIN: "join", LEAVE: "leave", BLANK: "blank"}
"""What traces call them."""

NO_RUN = Run(0, 0, 0)


class Remembered(msgspec.Struct, frozen=True, array_like=True):
    """What members must also be told with an event if their group can only be rebuilt from what its members know."""

    life: int
    counter: int = -1
    """Of messages: the counter of the first, and before which one their sender knew the numbers of all."""
    acked: int = 0
    senders: dict[int, Numbers] | None = None
    """Of a join, and of the first number of another life: what was known of those who had sent to the group."""


class Event(Packet, frozen=True, tag=10):
    """A numbered event: a run of messages from `seq` on, or the join or leave of `who`. BLANK stands for as many numbers as
    `run` says, which were assigned to something that no longer exists."""

    name: ClassVar[str] = "ACCEPT"
    group: str
    seq: int
    kind: int
    who: int
    req: int = -1
    run: Run = NO_RUN
    tot: dict[str, int] = msgspec.field(default_factory=dict)
    """How far the groups that share a client and this sequencer were numbered."""
    dep: dict[str, int] = msgspec.field(default_factory=dict)
    """How far the sender had seen the other groups."""
    members: tuple[int, ...] = ()
    """Of a join or a leave: the members from then on."""
    stable: int = 0
    """What is numbered up to here every member has delivered."""
    direct: bool = False
    """The members have the bodies from the sender itself."""
    at: dict[int, str] = msgspec.field(default_factory=dict)
    """Of a join: where members can be reached, if they said so."""
    remembered: Remembered | None = None

    def carried(self) -> Run | None:
        return self.run if self.kind == MESSAGES else None

    @property
    def last(self) -> int:
        """The number of the last of its messages."""
        return self.seq + (self.run.count - 1 if self.kind in (MESSAGES, BLANK) else 0)

    @property
    def size(self) -> int:
        """The approximate number of bytes kept for its messages and their context."""
        return len(self.run.body.payload) + weight(self.dep)

    def is_sound(self) -> bool:
        """Whether a correct sequencer can have numbered it. The body of a run is checked where it is decoded."""
        if self.kind == MESSAGES:
            run = self.run
            return run.origin == self.who and run.count >= 1 <= self.seq <= self.last <= NUMBER_MAX and run.first >= 0
        return self.kind in (JOIN, LEAVE, BLANK) and 1 <= self.seq <= self.last <= NUMBER_MAX
