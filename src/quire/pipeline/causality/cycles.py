"""Contradictory logs: finds a cycle in which, by the logs themselves, a delivery happened before its own send."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from quire.model.errors import QuireError
from quire.model.messages import MessageId
from quire.pipeline.slices import Events
from quire.trace.kinds import SEND

Message = tuple[int, int]


class CycleStep(msgspec.Struct, frozen=True):
    """`member` delivered a message at `pos`, and only later, at `then_pos`, sent the message that the previous step
    delivered."""

    member: int
    delivered: Message
    pos: int
    sent: Message
    then_pos: int

    def __str__(self) -> str:
        return (
            f"member {self.member} delivered {MessageId(*self.delivered)} at position {self.pos} "
            f"before it sent {MessageId(*self.sent)} at position {self.then_pos}"
        )


class Contradiction(QuireError):
    """The logs put some event before itself, so happened-before is not defined."""

    def __init__(self, cycle: Sequence[CycleStep]) -> None:
        super().__init__(f"the logs contradict each other: {', and '.join(map(str, cycle))}")
        self.cycle = tuple(cycle)


def shortest_cycle(events: Events, stuck: np.ndarray) -> list[CycleStep]:
    """The shortest cycle of processes that wait for each other's messages, beginning with its lowest member.

    `stuck` is what `rebuild` returns about the deadlock. Every waiting process waits for the sender of one message, which waits
    too, so following them from anywhere leads into a cycle.
    """
    waiting = {process: int(origin) for process, origin in enumerate(stuck[:, 0].tolist()) if origin >= 0}
    best: list[int] = []
    for process in sorted(waiting):
        path = [process]
        while (following := waiting[path[-1]]) not in path:
            path.append(following)
        cycle = path[path.index(following) :]
        if not best or (len(cycle), min(cycle)) < (len(best), min(best)):
            best = cycle
    least = best.index(min(best))
    cycle = best[least:] + best[:least]
    steps = []
    for before, member in zip([cycle[-1], *cycle], cycle, strict=False):
        index = int(stuck[member, 2])
        wanted = (member, int(stuck[before, 1]))
        own = np.flatnonzero(
            (events.kind[index : events.start[member + 1]] == SEND)
            & (events.origin[index : events.start[member + 1]] == member)
            & (events.seq[index : events.start[member + 1]] == wanted[1])
        )
        delivered = (int(stuck[member, 0]), int(stuck[member, 1]))
        steps.append(CycleStep(member, delivered, int(events.pos[index]), wanted, int(events.pos[index + own[0]])))
    return steps
