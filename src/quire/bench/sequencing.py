"""The sequencing service as a contender: clients of one group, and the sequencer that numbers their messages."""

from __future__ import annotations

import asyncio

from quire.bench.assignment import Assignment, Report
from quire.bench.group import TIMEOUT_S
from quire.bench.load import Supply, Tally
from quire.bench.pipe import Pipe
from quire.live.network_options import Network
from quire.live.services.nodes import Host
from quire.live.services.session import Session
from quire.live.settings import Settings, read_settings
from quire.protocols.node import Notice
from quire.protocols.sequencing import Client, SequencingOptions
from quire.protocols.sequencing.combined_sequencer import CombinedSequencer
from quire.protocols.sequencing.notices import Changed, Delivered

GROUP = "bench"
UNNUMBERED_BYTES = 2 << 20
"""How many bytes a client may have in flight that are not numbered yet."""
TICK_MS = 250
"""Long, because nothing is lost between processes of one machine, so there is no need to retry soon."""


def _settings(assignment: Assignment, *, direct: bool) -> Settings:
    options = SequencingOptions(
        window=UNNUMBERED_BYTES // assignment.size, tick_ms=TICK_MS, bodies="direct" if direct else "relay"
    )
    network = Network(timeout_s=TIMEOUT_S)
    return read_settings(GROUP, assignment.me, assignment.addresses, protocol="sequencer", options=options, network=network)


async def sequencer(pipe: Pipe, *, direct: bool = False) -> None:
    """Number what clients send, until all have everything."""
    settings = _settings(pipe.assignment, direct=direct)
    assert isinstance(settings.options, SequencingOptions)
    node = CombinedSequencer(settings.me, (settings.me,), settings.options)
    async with Host(settings, node, _say_nothing):
        await pipe.all_ready()
        await pipe.all_done()
        pipe.say(Report(me=settings.me, cpu_s=pipe.cpu_s()))


def _say_nothing(_host: Host, _notice: Notice) -> None:
    """Sequencers say nothing to an application."""


async def throughput(pipe: Pipe, *, direct: bool = False) -> None:
    """Send at full speed and deliver everything, run by run."""
    assignment = pipe.assignment
    settings = _settings(assignment, direct=direct)
    assert isinstance(settings.options, SequencingOptions)
    supply, tally, over = Supply(assignment), Tally(assignment.size), asyncio.Event()
    client = Client(assignment.me, (assignment.members,), assignment.members, settings.options)
    session = Session(client, settings)

    def take(delivery: Delivered | Changed) -> None:
        if isinstance(delivery, Delivered):
            tally.take_together(delivery.run.body.payload)
            if tally.senders_done == assignment.members:
                over.set()

    session.on_delivered = take
    async with Host(settings, client, session.on_notice) as host:
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
