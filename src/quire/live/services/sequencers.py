"""The sequencing service on sockets: sequencers that run until they are stopped, and clients that come and go.

`serve` runs a sequencer; the first one also keeps the directory. `connect` is the entry point for applications.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Unpack

import msgspec

from quire.live import clock
from quire.live.events import Listener
from quire.live.identity import identify
from quire.live.network.hub import VISITORS, HubRoster
from quire.live.network.peer_links import ClientRoster
from quire.live.network_options import Network, NetworkOptions, takes_network_options
from quire.live.observing.observer import Observer, observer_of
from quire.live.observing.status import Status
from quire.live.recording import Recording
from quire.live.services.laggards import Laggards
from quire.live.services.nodes import Host
from quire.live.services.recorded import record_node
from quire.live.services.session import Session
from quire.live.services.status import ObservedClient, ObservedProcess, ObservedSequencer
from quire.live.services.surviving.joining import join_register, read_register
from quire.live.services.surviving.process import ServingProcess
from quire.live.services.surviving.register import register_object
from quire.live.services.surviving.server import SurvivingServer
from quire.live.services.visiting import HubHost
from quire.live.settings import Address, Settings, read_settings
from quire.model.errors import BadInput
from quire.protocols.node import Notice
from quire.protocols.registry import convert_options
from quire.protocols.sequencing import Client, Sequencer, SequencingOptions
from quire.protocols.sequencing.combined_sequencer import CombinedSequencer
from quire.protocols.sequencing.events import LEAVE
from quire.protocols.sequencing.failover import SurvivingClient, SurvivingOptions
from quire.protocols.sequencing.failover.configurations import Name
from quire.protocols.sequencing.notices import Changed
from quire.trace.parts.description import RunIdentity

NAME = "sequencer"
SERVICE = "quire"
ANY_PORT = Address("127.0.0.1", 0)
WILDCARDS = ("0.0.0.0", "::")  # noqa: S104


def _settings(
    service: str,
    me: int,
    sequencers: Sequence[str],
    options: Mapping[str, object] | None,
    backups: int | None,
    network: Network,
) -> Settings:
    """The settings of a sequencer. If `backups` is given, the service survives failures, and sequencers may be restarted."""
    chosen: SequencingOptions
    if backups is None:
        chosen, restartable = convert_options(NAME, SequencingOptions, options or {}), 0
    else:
        chosen = convert_options(NAME, SurvivingOptions, {**(options or {}), "backups": backups})
        restartable = len(sequencers)
        if max(backups, 1) >= restartable:
            raise BadInput(f"{backups} backups need more than {restartable} sequencers")
    settings = read_settings(service, me, sequencers, protocol=NAME, options=chosen, network=network)
    return msgspec.structs.replace(settings, visitors=VISITORS, restartable=restartable)


@takes_network_options
def serve(
    sequencers: Sequence[str],
    me: int = 0,
    *,
    service: str = SERVICE,
    options: Mapping[str, object] | None = None,
    backups: int | None = None,
    register: Sequence[str] | None = None,
    journal: str | Path | None = None,
    **network: Unpack[NetworkOptions],
) -> HubHost | SurvivingServer:
    """A sequencer, to be used in `async with`, which waits up to `join_s` until all sequencers have joined; leaving the block
    stops it. `sequencers` are the addresses of all, in the same order everywhere; `me` is this one's index in that list.

    With `backups`, so many other sequencers know all that each knows, and one of them continues when it is lost; three
    sequencers survive the loss of one. With 0, another continues with what the members of its groups know. They agree who runs
    what at the addresses `register`, one for each sequencer; if not given, those of the sequencers with ports that are higher
    by 1000. In the directory `journal` each keeps on disk what they agreed on, so that the service continues after all were
    lost at once; what a sequencer knows of its groups is not there. Raises BadInput if the arguments are invalid."""
    given = Network(**network)
    settings = _settings(service, me, sequencers, options, backups, given)
    assert isinstance(settings.options, SequencingOptions)
    if isinstance(settings.options, SurvivingOptions):
        recording = None if given.trace is None else record_node(_identity(settings), me, given.trace, None)
        disk = None if journal is None else Path(journal)
        return make_survivor(
            settings, settings.options, read_register(sequencers, register), disk, given, recording, observer_of(given)
        )
    if journal is not None:
        raise BadInput("a journal is of use only to sequencers that survive: say with backups how many know what one knows")
    units = range(len(sequencers))
    node = CombinedSequencer(me, units, settings.options) if me == 0 else Sequencer(me, units, 0, settings.options)
    # A sequencer neither sends nor delivers, so observers miss nothing without a trace.
    recording = None if given.trace is None else record_node(_identity(settings), me, given.trace, None)
    hub = HubHost(
        settings, node, _nothing_to_tell, HubRoster(settings), recording=recording, on_event=given.on_event,
        observer=observer_of(given),
    )  # fmt: skip
    hub.host.observed = ObservedSequencer(hub.host, node)
    hub.on_lost = lambda client: hub.host.act(node.suspect(client))
    _part_with_laggards(hub, node)
    return hub


def _part_with_laggards(hub: HubHost, node: Sequencer | CombinedSequencer | ServingProcess) -> None:
    """Clients that hold others up for too long are removed from their groups."""
    laggards = Laggards(hub.settings.timeout_s)

    def evict_laggards() -> None:
        for client, why in laggards.look(node.holding_up()):
            hub.dismiss(client, why)

    hub.host.on_time_passed = evict_laggards


def make_survivor(
    settings: Settings,
    options: SurvivingOptions,
    register: Sequence[str],
    journal: Path | None,
    given: Network,
    recording: Recording | None,
    observer: Observer | None,
) -> SurvivingServer:
    """A sequencer of a service that survives failures, whose units others can take over."""
    count = len(settings.members)
    made = register_object(count, options)
    group = join_register(settings.group, settings.me, register, made, journal, given)
    node = ServingProcess(Name(settings.me, clock.wall_ns()), count, options)
    server = SurvivingServer(settings, node, group, made, recording=recording, on_event=given.on_event, observer=observer)
    server.hub.host.observed = ObservedProcess(server.hub.host, node)
    _part_with_laggards(server.hub, node)
    return server


def _identity(settings: Settings) -> RunIdentity:
    assert isinstance(settings.options, SequencingOptions)
    return identify(settings, settings.options.promises(), {}, relays=tuple(range(len(settings.members))))


def _nothing_to_tell(_host: object, _notice: Notice) -> None:
    """Sequencers say nothing to an application."""


@takes_network_options
def connect(
    sequencers: str | Sequence[str],
    *,
    me: int | None = None,
    service: str = SERVICE,
    order: str | None = None,
    options: Mapping[str, object] | None = None,
    backups: int | None = None,
    **network: Unpack[NetworkOptions],
) -> Connected:
    """A client of the sequencing service, to be used in `async with`, which waits up to `join_s` until it is connected to all
    sequencers.

    `sequencers` are their addresses, in the same order everywhere; `order`, `options` and `backups` must be those of the
    sequencers. Where these are given, one sequencer is enough to begin with, and the client continues when one is lost. `me`
    is this client's number among the clients; if not given, it is drawn at random (with certificates, it must be given). Beyond
    loopback, give the service's `secret` or `certificates`, or set `insecure`. With `bodies=direct`, other clients connect to
    this one at `listen`. If `listen` is not given, that is a free port if everything is on loopback; otherwise no client
    connects, and messages are relayed. The other arguments are as in `join`.

    Raises BadInput if the arguments are invalid. Entering the block raises BadInput if the sequencers have other settings,
    and MemberUnreachable if one cannot be reached within `join_s`; calls raise it if one is silent for `timeout_s` later.
    """
    addresses = tuple(sequencers.split(",")) if isinstance(sequencers, str) else tuple(sequencers)
    given = Network(**network)
    if me is None and given.certificates is not None:
        raise BadInput("a client's certificate names its number: give it with me=")
    if me is not None and not 0 <= me < VISITORS:
        raise BadInput(f"me must be from 0 to {VISITORS - 1}, not {me}")
    chosen = {**(options or {}), **({} if order is None else {"order": order})}
    settings = _settings(service, 0, addresses, chosen, backups, given)
    number = len(addresses) + (secrets.randbelow(VISITORS) if me is None else me)
    where = None if given.listen is None else settings.listen
    assert isinstance(settings.options, SequencingOptions)
    if where is not None and (settings.options.bodies != "direct" or where.host in WILDCARDS):
        raise BadInput(f"listen={where} needs bodies=direct and an address that other clients can reach")
    if settings.options.bodies == "direct" and given.listen is None and all(each.is_loopback() for each in settings.members):
        where = ANY_PORT
    settings = msgspec.structs.replace(settings, me=number, listen=where, enough=0 if backups is None else 1)
    observer = observer_of(given)
    return Connected(settings, record_node(_identity(settings), number, given.trace, observer), given.on_event, observer)


class Connected(Session):
    """A client that is connected while it is in its `async with`."""

    def __init__(
        self,
        settings: Settings,
        recording: Recording | None = None,
        on_event: Listener | None = None,
        observer: Observer | None = None,
    ) -> None:
        options, everybody = settings.options, range(len(settings.members))
        assert isinstance(options, SequencingOptions)
        survives = isinstance(options, SurvivingOptions)
        client = (
            SurvivingClient(settings.me, everybody, everybody, everybody, options)
            if isinstance(options, SurvivingOptions)
            else Client(settings.me, everybody, 0, options)
        )
        super().__init__(client, settings)
        self.settings = settings
        self._roster = ClientRoster(settings)
        self._visit = HubHost(
            settings, client, self._on_notice, self._roster, recording=recording, survives=survives, on_event=on_event,
            observer=observer,
        )  # fmt: skip
        self._observed = self._visit.host.observed = ObservedClient(self._visit.host, self)
        client.spreading.linked = self._roster.linked

    def _on_notice(self, host: Host, notice: Notice) -> None:
        if isinstance(notice, Changed):
            for other, at in notice.at.items():
                if other != self.me and (found := self._roster.want(other, at)) is not None:
                    host.dial(*found)
            if notice.kind == LEAVE:
                self._roster.keep_only({client for view in self.client.views.values() for client in view})
        self.on_notice(host, notice)

    @property
    def me(self) -> int:
        """This client's number, by which others see it."""
        return self.client.address

    def status(self) -> Status:
        """The status of this client, as `observe` shows it."""
        return self._observed.status()

    def metrics(self) -> str:
        """This client's counters in the text format of Prometheus."""
        return self._observed.metrics()

    async def __aenter__(self) -> Connected:
        await self._visit.__aenter__()
        self.client.at = self._visit.host.listens_at()
        self.begin(self._visit.host)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Everything that was sent is delivered everywhere, and all groups are left, before it returns; at once where an
        exception ends the block."""
        try:
            if kind is None and self._visit.failure is None:
                self.begin_to_leave()
                await self.flushed()
                for group in tuple(self.client.hold.delivered):
                    await self.leave_group(group)
                # Until the others know that it has left its groups, they may need what only this client knows.
                await self.flushed()
        finally:
            await self._visit.close()
