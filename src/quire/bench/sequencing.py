"""The sequencing service's part: clients of one group, and the one sequencer that numbers what they send."""

from __future__ import annotations

import asyncio

from quire.bench.duty import Duty, Report
from quire.bench.group import TIMEOUT_S
from quire.bench.load import Supply, Tally
from quire.bench.pipe import Pipe
from quire.live.services.nodes import Host
from quire.live.services.session import Session
from quire.live.settings import Settings, read_settings
from quire.protocols.node import Notice
from quire.protocols.sequencing import Client, Options
from quire.protocols.sequencing.notices import Changed, Delivered
from quire.protocols.sequencing.office import Office

GROUP = "bench"
UNNUMBERED_BYTES = 2 << 20
"""How much a client has on its way to a number."""
TICK_MS = 250
"""Nothing is lost between processes of one machine, so what is late is not repeated soon."""


def _settings(duty: Duty, *, direct: bool) -> Settings:
    options = Options(window=UNNUMBERED_BYTES // duty.size, tick_ms=TICK_MS, bodies="direct" if direct else "relay")
    return read_settings(GROUP, duty.me, duty.addresses, protocol="sequencer", options=options, timeout_s=TIMEOUT_S)


async def sequencer(pipe: Pipe, *, direct: bool = False) -> None:
    """Number what clients send, until all have everything."""
    settings = _settings(pipe.duty, direct=direct)
    assert isinstance(settings.options, Options)
    node = Office(settings.me, (settings.me,), settings.options)
    async with Host(settings, node, _say_nothing):
        await pipe.all_ready()
        await pipe.all_done()
        pipe.say(Report(me=settings.me, cpu_s=pipe.cpu_s()))


def _say_nothing(_host: Host, _notice: Notice) -> None:
    """Sequencers say nothing to an application."""


async def throughput(pipe: Pipe, *, direct: bool = False) -> None:
    """Send at full speed and deliver everything, run by run."""
    duty = pipe.duty
    settings = _settings(duty, direct=direct)
    assert isinstance(settings.options, Options)
    supply, tally, over = Supply(duty), Tally(duty.size), asyncio.Event()
    client = Client(duty.me, (duty.members,), duty.members, settings.options)
    session = Session(client, settings.inbox_messages_max, settings.run_messages_max)

    def take(delivery: Delivered | Changed) -> None:
        if isinstance(delivery, Delivered):
            tally.take_together(delivery.run.body.payload)
            if tally.senders_done == duty.members:
                over.set()

    session.on_delivered = take
    async with Host(settings, client, session.told) as host:
        session.begin(host)
        await session.create_group(GROUP)
        await session.join_group(GROUP)
        await pipe.all_ready()
        for batch in supply.batches():
            await session.multicast_many(GROUP, batch)
        await over.wait()
        elapsed_s = await pipe.all_done()
        pipe.report(elapsed_s, supply.sent, (tally,))
        await session.flushed()
