"""Parts of a live group's run, as its members would have left them."""

from __future__ import annotations

from pathlib import Path

from quire.live.identity import everybody, identify_group
from quire.live.runs.plan import Plan
from quire.trace.log import EventLog
from quire.trace.parts.description import PartEnd, describe_part, read_clock
from quire.trace.parts.frames import NewNames
from quire.trace.parts.writer import PartWriter

SECOND = 1_000_000_000
ENDED = PartEnd(clock=read_clock())


def log_of(plan: Plan, me: int) -> EventLog:
    """What a member records, with the whole group as address 0."""
    return EventLog(me, (everybody(plan.settings(me)),))


def write_part(directory: Path, plan: Plan, log: EventLog, *, began: int = SECOND, end: PartEnd | None = ENDED) -> None:
    """The part of a member that recorded this, in the run in which all were started at about this time."""
    me = log.process
    peers = {peer: began + peer for peer in range(len(plan.members)) if peer != me}
    part = PartWriter(directory, describe_part(identify_group(plan.settings(me), plan.described()), me, began + me, peers))
    part.append(NewNames(tuple(log.names.addresses), tuple(log.names.packet_types)), log.take())
    if end is not None:
        part.end(end)
    part.close()
