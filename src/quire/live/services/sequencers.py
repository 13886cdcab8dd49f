"""The sequencing service as a service: sequencers that run until they are stopped, and clients that come and go.

`serve` runs a sequencer; the first of them keeps the directory too. `connect` is the way in for applications.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from types import TracebackType

import msgspec

from quire.live.events import Listener
from quire.live.network.hub import VISITORS
from quire.live.services.nodes import Host
from quire.live.services.session import Session
from quire.live.services.visiting import FellowHost, HubHost
from quire.live.settings import Address, Certificates, Settings, read_settings
from quire.model.errors import BadInput
from quire.protocols.node import Notice
from quire.protocols.registry import convert_options
from quire.protocols.sequencing import Client, Options, Sequencer
from quire.protocols.sequencing.events import LEAVE
from quire.protocols.sequencing.notices import Changed
from quire.protocols.sequencing.office import Office

NAME = "sequencer"
SERVICE = "quire"
ANY_PORT = Address("127.0.0.1", 0)
WILDCARDS = ("0.0.0.0", "::")  # noqa: S104


def _settings(
    service: str,
    me: int,
    sequencers: Sequence[str],
    options: Mapping[str, object] | None,
    secret: bytes | str | None,
    certificates: Certificates | None,
    insecure: bool,
    timeout_s: float,
    listen: str | None = None,
) -> Settings:
    chosen = convert_options(NAME, Options, options or {})
    settings = read_settings(
        service, me, sequencers, protocol=NAME, options=chosen, secret=secret, certificates=certificates,
        insecure=insecure, timeout_s=timeout_s, listen=listen,
    )  # fmt: skip
    return msgspec.structs.replace(settings, visitors=VISITORS)


def serve(
    sequencers: Sequence[str],
    me: int = 0,
    *,
    service: str = SERVICE,
    options: Mapping[str, object] | None = None,
    secret: bytes | str | None = None,
    certificates: Certificates | None = None,
    insecure: bool = False,
    timeout_s: float = 10.0,
    listen: str | None = None,
    on_event: Listener | None = None,
) -> HubHost:
    """The sequencer at place `me` of `sequencers`, the addresses of all, in the same order everywhere. Use it in `async
    with`, which waits until all sequencers are there, and ends it. Raises BadInput where these make no sense."""
    settings = _settings(service, me, sequencers, options, secret, certificates, insecure, timeout_s, listen)
    assert isinstance(settings.options, Options)
    units = range(len(sequencers))
    node = Office(me, units, settings.options) if me == 0 else Sequencer(me, units, 0, settings.options)
    host = HubHost(settings, node, _nothing_to_tell, on_event=on_event)
    host.on_lost = lambda client: host.act(node.suspect(client))
    return host


def _nothing_to_tell(_host: object, _notice: Notice) -> None:
    """Sequencers say nothing to an application."""


def connect(
    sequencers: str | Sequence[str],
    *,
    me: int | None = None,
    service: str = SERVICE,
    order: str | None = None,
    options: Mapping[str, object] | None = None,
    secret: bytes | str | None = None,
    certificates: Certificates | None = None,
    insecure: bool = False,
    timeout_s: float = 10.0,
    listen: str | None = None,
    on_event: Listener | None = None,
) -> Connected:
    """A client of the sequencing service, to be used in `async with`, which connects to all sequencers.

    `sequencers` are their addresses, in the same order everywhere; `order` and `options` as the sequencers have them. `me`
    is this client's number among clients: drawn at random if not given, as it may be unless certificates name it. Beyond
    loopback give the service's `secret` or `certificates`, or say `insecure`. With `bodies=direct` other clients connect to
    this one: `listen` says where, a free port of loopback if not given and all is there; elsewhere, if not given, nobody does,
    and what they send is relayed. Raises BadInput where these make no sense, and on entering where the sequencers run
    something else; GroupFailed when a sequencer is lost.
    """
    addresses = tuple(sequencers.split(",")) if isinstance(sequencers, str) else tuple(sequencers)
    if me is None and certificates is not None:
        raise BadInput("certificates name their client by its number: say which it is with me=")
    if me is not None and not 0 <= me < VISITORS:
        raise BadInput(f"me must be from 0 to {VISITORS - 1}, not {me}")
    given = {**(options or {}), **({} if order is None else {"order": order})}
    settings = _settings(service, 0, addresses, given, secret, certificates, insecure, timeout_s, listen)
    number = len(addresses) + (secrets.randbelow(VISITORS) if me is None else me)
    where = None if listen is None else settings.listen
    assert isinstance(settings.options, Options)
    if where is not None and (settings.options.bodies != "direct" or where.host in WILDCARDS):
        raise BadInput(f"a client listens at {where} only with bodies=direct, and where others can reach it")
    if settings.options.bodies == "direct" and listen is None and all(each.is_loopback() for each in settings.members):
        where = ANY_PORT
    return Connected(msgspec.structs.replace(settings, me=number, listen=where), on_event)


class Connected(Session):
    """A client that is connected while it is in its `async with`."""

    def __init__(self, settings: Settings, on_event: Listener | None = None) -> None:
        assert isinstance(settings.options, Options)
        client = Client(settings.me, range(len(settings.members)), 0, settings.options)
        super().__init__(client, settings.inbox_messages_max, settings.run_messages_max)
        self._visit = FellowHost(settings, client, self._told, on_event=on_event)
        client.spreading.linked = self._visit.linked

    def _told(self, host: Host, notice: Notice) -> None:
        if isinstance(notice, Changed):
            for fellow, at in notice.at.items():
                if fellow != self.me:
                    self._visit.link(fellow, at)
            if notice.kind == LEAVE:
                self._visit.keep_only({client for view in self.client.views.values() for client in view})
        self.told(host, notice)

    @property
    def me(self) -> int:
        """This client's number, by which others see it."""
        return self.client.address

    async def __aenter__(self) -> Connected:
        await self._visit.__aenter__()
        self.client.at = self._visit.listens_at()
        self.begin(self._visit)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Everything that was sent is delivered everywhere, and all groups are left, before it returns; at once where an
        exception ends the block."""
        try:
            if kind is None and self._visit.failure is None:
                self.on_delivered = lambda _: None  # Nobody takes what comes from now on.
                self._visit.resume()
                await self.flushed()
                for group in tuple(self.client.hold.delivered):
                    await self.leave_group(group)
        finally:
            await self._visit.close()
