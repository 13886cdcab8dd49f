"""The role of a process in `quire run --protocol sequencer --backups K`: a sequencer of `serve`, or a client of `connect`.

The plan numbers clients first, as in any run. Among themselves, and in the trace, sequencers come first: clients are visitors
of theirs. A sequencer serves until it is told to end, and then until no client is left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import msgspec

from quire.live.identity import identify, run_name
from quire.live.load import Load
from quire.live.network.hub import VISITORS
from quire.live.network_options import Network
from quire.live.observing.observer import Observer
from quire.live.recording import Recording
from quire.live.services.ring_load import send_in_ring
from quire.live.services.sequencers import Connected, make_survivor
from quire.live.services.service import Role
from quire.live.services.surviving.joining import read_register
from quire.live.settings import Address, Settings
from quire.protocols.sequencing.failover import SurvivingOptions
from quire.protocols.sequencing.notices import Changed, Delivered
from quire.protocols.sequencing.ring import RingOptions
from quire.trace.parts.description import RunIdentity

LOOKS_S = 0.05
"""How often a sequencer that is to end looks whether a client is left."""


def _clients(settings: Settings) -> int:
    assert isinstance(settings.options, RingOptions)
    return len(settings.members) - settings.options.sequencers


def number_of_client(settings: Settings) -> int | None:
    """The number by which the sequencers know a client; None for a sequencer."""
    assert isinstance(settings.options, RingOptions)
    return settings.options.sequencers + settings.me if settings.me < _clients(settings) else None


def _as_among_sequencers(settings: Settings) -> Settings:
    """The settings that `quire serve`, or a client of it, would have."""
    options, number = settings.options, number_of_client(settings)
    assert isinstance(options, RingOptions)
    clients = _clients(settings)
    found = msgspec.structs.replace(
        settings, me=settings.me - clients if number is None else number, members=settings.members[clients:],
        options=options.surviving(), visitors=VISITORS, restartable=options.sequencers,
    )  # fmt: skip
    if number is None:
        return found
    assert settings.listen is not None
    listen = Address(settings.listen.host, 0) if options.bodies == "direct" else None
    return msgspec.structs.replace(found, listen=listen, enough=1)


def identify_survivors(settings: Settings, options: RingOptions, load: Mapping[str, object] | None) -> RunIdentity:
    relays = tuple(range(options.sequencers))
    identity = identify(_as_among_sequencers(settings), options.promises(), {}, load=load, relays=relays)
    return msgspec.structs.replace(identity, run=run_name(settings, load), options=msgspec.to_builtins(options))


class SurvivingRole(Role):
    def __init__(self, load: Load, settings: Settings, recording: Recording | None, observer: Observer | None = None) -> None:
        super().__init__(load, settings, recording, observer)
        self._told = asyncio.Event()

    def stop(self) -> None:
        super().stop()
        self._told.set()

    async def take_part(self) -> None:
        await (self._serve() if number_of_client(self.settings) is None else self._send())

    async def _serve(self) -> None:
        settings = _as_among_sequencers(self.settings)
        assert isinstance(settings.options, SurvivingOptions)
        open_to_all = settings.secret is None and settings.certificates is None
        network = Network(
            secret=settings.secret, certificates=settings.certificates, insecure=open_to_all, timeout_s=settings.timeout_s,
            join_s=settings.join_s, transport=settings.transport,
        )  # fmt: skip
        register = read_register([*map(str, settings.members)], settings.register or None)
        server = make_survivor(settings, settings.options, register, None, network, None, self.observer)
        server.on_running = self.on_running
        async with server:
            await self._told.wait()
            while server.visitors():
                await asyncio.sleep(LOOKS_S)

    async def _send(self) -> None:
        options = self.settings.options
        assert isinstance(options, RingOptions)
        async with Connected(_as_among_sequencers(self.settings), self.recording, observer=self.observer) as session:
            session.on_delivered = lambda notice: self._delivered(session, notice)
            await send_in_ring(self, session, options, self.settings.me, range(options.sequencers))

    def _delivered(self, session: Connected, _: Delivered | Changed) -> None:
        self.delivered = session.delivered
