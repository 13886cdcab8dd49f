"""The workload of a client in `quire run --protocol sequencer`, with or without backups.

It creates and joins its groups as `ring` lays them out, sends to them in turn, leaves some and comes back, and has groups moved
meanwhile. It is done when everything that it sent is delivered everywhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import cycle

from quire.live.load import Pace
from quire.live.services.service import Role
from quire.live.services.session import Session
from quire.protocols.sequencing.ring import RingOptions


async def send_in_ring(role: Role, session: Session, options: RingOptions, me: int, units: Sequence[int]) -> None:
    """Run the workload as client `me`; `units` are the addresses of the sequencers."""
    clients = len(role.settings.members) - options.sequencers
    groups = options.layout(clients)
    own = [group for group, inside in groups.items() if me in inside]
    for group in groups:
        await session.create_group(group)
    for group in own:
        await session.join_group(group)
    restless = asyncio.ensure_future(_change(session, options, me, clients, own, list(groups), units))
    if role.load.sends(me):
        await _send(role, session, own or list(groups))
    await restless
    await session.flushed()


async def _send(role: Role, session: Session, groups: Sequence[str]) -> None:
    load, settings = role.load, role.settings
    batch, pace, targets = load.batch(settings.run_messages_max, settings.run_bytes_max), Pace(load), cycle(groups)
    most = min(len(batch), max(1, (load.messages or 0) // (4 * len(groups))))
    while (count := await pace.take(most)) and not role.stopping:
        await session.multicast_many(next(targets), batch[:count])
        role.sent += count


async def _change(
    session: Session,
    options: RingOptions,
    me: int,
    clients: int,
    own: Sequence[str],
    groups: Sequence[str],
    units: Sequence[int],
) -> None:
    """Leave and come back, and have groups moved, while messages are on their way."""
    for number in range(options.changes):
        if number % clients == me and own:
            group = own[number // clients % len(own)]
            await session.leave_group(group)
            await session.join_group(group)
    for number in range(options.moves if me == 0 else 0):
        session.move_group(groups[number % len(groups)], units[(number + 1) % len(units)])
        await asyncio.sleep(options.tick_ms / 1000)
