"""The role of a process in `quire run --protocol sequencer`.

Members come first and are clients; then come the sequencers, the first of which keeps the directory too. Clients create and
join their groups as `ring` lays them out, send to them in turn, leave some and come back, and have groups moved meanwhile.
They end when everything that they sent is delivered everywhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from itertools import cycle

from quire.live.identity import identify
from quire.live.load import Pace
from quire.live.observing.status import Observed
from quire.live.services.nodes import Host
from quire.live.services.service import NodeRole, Service
from quire.live.services.session import Session
from quire.live.services.standing import ObservedClient, ObservedSequencer
from quire.live.settings import Settings
from quire.protocols.node import Node, Notice
from quire.protocols.sequencing import Client, Sequencer
from quire.protocols.sequencing.combined_sequencer import CombinedSequencer
from quire.protocols.sequencing.ring import RingOptions
from quire.trace.parts.description import RunIdentity

NAME = "sequencer"


class SequencerRole(NodeRole):
    @property
    def options(self) -> RingOptions:
        assert isinstance(self.settings.options, RingOptions)
        return self.settings.options

    @property
    def clients(self) -> int:
        return len(self.settings.members) - self.options.sequencers

    def make_node(self) -> Node:
        me, units = self.settings.me, range(self.clients, len(self.settings.members))
        self.node: Node
        if me < self.clients:
            client = Client(me, units, units[0], self.options)
            self.session = Session(client, self.settings)
            self.session.on_delivered = lambda _: None
            self.node = client
        elif me == units[0]:
            self.node = CombinedSequencer(me, units, self.options)
        else:
            self.node = Sequencer(me, units, units[0], self.options)
        return self.node

    def observed(self, host: Host) -> Observed:
        if isinstance(self.node, Sequencer | CombinedSequencer):
            return ObservedSequencer(host, self.node)
        return ObservedClient(host, self.session)

    def on_notice(self, host: Host, notice: Notice) -> None:
        self.session.on_notice(host, notice)
        self.delivered = self.session.delivered

    async def work(self, host: Host) -> None:
        if self.settings.me >= self.clients:
            await host.until_closing(range(self.clients))
            return
        session, me = self.session, self.settings.me
        session.begin(host)
        groups = self.groups()
        own = [group for group, inside in groups.items() if me in inside]
        for group in groups:
            await session.create_group(group)
        for group in own:
            await session.join_group(group)
        restless = asyncio.ensure_future(self._change(own))
        if self.load.sends(me):
            await self._send(own or list(groups))
        await restless
        await session.flushed()

    async def _send(self, groups: Sequence[str]) -> None:
        load, settings = self.load, self.settings
        batch, pace, targets = load.batch(settings.run_messages_max, settings.run_bytes_max), Pace(load), cycle(groups)
        most = min(len(batch), max(1, (load.messages or 0) // (4 * len(groups))))
        while (count := await pace.take(most)) and not self.stopping:
            await self.session.multicast_many(next(targets), batch[:count])
            self.sent += count

    async def _change(self, own: Sequence[str]) -> None:
        """Leave and come back, and have groups moved, while messages are on their way."""
        me, options, units = self.settings.me, self.options, range(self.clients, len(self.settings.members))
        for number in range(options.changes):
            if number % self.clients == me and own:
                group = own[number // self.clients % len(own)]
                await self.session.leave_group(group)
                await self.session.join_group(group)
        for number in range(options.moves if me == 0 else 0):
            groups = list(self.groups())
            self.session.move_group(groups[number % len(groups)], units[(number + 1) % len(units)])
            await asyncio.sleep(options.tick_ms / 1000)

    def groups(self) -> Mapping[str, tuple[int, ...]]:
        return self.options.layout(self.clients)

    def details(self) -> dict[str, object]:
        if isinstance(self.node, CombinedSequencer):
            return {f"load of {self.node.address}": self.node.sequencer.numbered, "groups_moved": self.node.directory.moved}
        return {f"load of {self.node.address}": self.node.numbered} if isinstance(self.node, Sequencer) else {}


def processes(members: int, options: RingOptions) -> int:
    """Clients and sequencers; raises BadInput where the groups cannot be laid out."""
    options.layout(members)
    return members + options.sequencers


def identify_ring(settings: Settings, load: Mapping[str, object] | None) -> RunIdentity:
    options = settings.options
    assert isinstance(options, RingOptions)
    clients = len(settings.members) - options.sequencers
    relays = tuple(range(clients, len(settings.members)))
    return identify(settings, options.promises(), options.layout(clients), load=load, relays=relays)


SEQUENCER = Service(
    NAME,
    "overlapping groups over several sequencers (Kindberg)",
    RingOptions,
    SequencerRole,
    identify_ring,
    processes,
    messages=1000,
)
