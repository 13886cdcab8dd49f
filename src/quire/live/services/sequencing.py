"""The role of a process in `quire run --protocol sequencer`.

The members come first and are clients; then come the sequencers, the first of which also keeps the directory. Clients create
and join their groups as `ring` lays them out, send to them in turn, leave and rejoin some, and have groups moved meanwhile.
They end when everything that they sent is delivered everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping

from quire.live.identity import identify
from quire.live.load import Load
from quire.live.observing.observer import Observer
from quire.live.observing.status import Observed
from quire.live.recording import Recording
from quire.live.services.nodes import Host
from quire.live.services.ring_load import send_in_ring
from quire.live.services.service import NodeRole, Role, Service
from quire.live.services.session import Session
from quire.live.services.status import ObservedClient, ObservedSequencer
from quire.live.services.surviving.role import SurvivingRole, identify_survivors, number_of_client
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

    @property
    def units(self) -> range:
        return range(self.clients, len(self.settings.members))

    def make_node(self) -> Node:
        me, units = self.settings.me, self.units
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
        self.session.begin(host)
        await send_in_ring(self, self.session, self.options, self.settings.me, self.units)

    def details(self) -> dict[str, object]:
        if isinstance(self.node, CombinedSequencer):
            return {f"load of {self.node.address}": self.node.sequencer.numbered, "groups_moved": self.node.directory.moved}
        return {f"load of {self.node.address}": self.node.numbered} if isinstance(self.node, Sequencer) else {}


def make_role(load: Load, settings: Settings, recording: Recording | None, observer: Observer | None) -> Role:
    role = SequencerRole if _backups(settings) is None else SurvivingRole
    return role(load, settings, recording, observer)


def _backups(settings: Settings) -> int | None:
    assert isinstance(settings.options, RingOptions)
    return settings.options.backups


def processes(members: int, options: RingOptions) -> int:
    """Clients and sequencers; raises BadInput where the groups cannot be laid out."""
    options.layout(members)
    return members + options.sequencers


def losable(members: int, options: RingOptions) -> range:
    return range(0) if options.backups is None else range(members, members + options.sequencers)


def number_in_trace(settings: Settings) -> int | None:
    return settings.me if _backups(settings) is None else number_of_client(settings)


def identify_ring(settings: Settings, load: Mapping[str, object] | None) -> RunIdentity:
    options = settings.options
    assert isinstance(options, RingOptions)
    if options.backups is not None:
        return identify_survivors(settings, options, load)
    clients = len(settings.members) - options.sequencers
    relays = tuple(range(clients, len(settings.members)))
    return identify(settings, options.promises(), options.layout(clients), load=load, relays=relays)


SEQUENCER = Service(
    NAME,
    "overlapping groups over several sequencers (Kindberg)",
    RingOptions,
    make_role,
    identify_ring,
    processes,
    process=number_in_trace,
    losable=losable,
    messages=1000,
)
