"""One sequencer of a service with failover: connects its copies of units with its copy of the register.

The register is replicated in a changing group of its own, so its views are also what the sequencers agree on about which of
them are there. A sequencer that is missing in a view loses its units; one that comes back reports to the register. Entering the
block of a sequencer waits until all units are live, and leaving it until they are live without it, so that sequencers can be
restarted one after the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from types import TracebackType
from typing import Any

from quire.live import clock
from quire.live.dynamic.events import Blocked, Excluded, Unblocked, View
from quire.live.dynamic.group import DynamicGroup
from quire.live.events import Listener
from quire.live.network.hub import HubRoster
from quire.live.observing.observer import Observer
from quire.live.recording import Recording
from quire.live.services.nodes import Host
from quire.live.services.surviving.absences import Absences
from quire.live.services.surviving.process import ForRegister, ServingProcess
from quire.live.services.surviving.register import ANSWERS, QUESTIONS, RegisterObject, Said
from quire.live.services.visiting import HubHost
from quire.live.settings import Settings
from quire.model.errors import ProtocolViolation, QuireError
from quire.protocols.node import Notice, Send
from quire.protocols.sequencing.failover import packets as wire
from quire.protocols.sequencing.failover.configurations import REGISTER, Configuration

HANDED_OVER_S = 5.0
"""How long a sequencer that leaves waits until others run its units."""


class SurvivingServer:
    """Use it in `async with`. `hub`: where clients and the other sequencers connect."""

    def __init__(
        self,
        settings: Settings,
        node: ServingProcess,
        group: DynamicGroup,
        register: RegisterObject,
        *,
        recording: Recording | None = None,
        on_event: Listener | None = None,
        observer: Observer | None = None,
    ) -> None:
        self._roster = HubRoster(settings)
        self.hub = HubHost(
            settings, node, self._on_notice, self._roster, recording=recording, survives=True, on_event=on_event,
            observer=observer,
        )  # fmt: skip
        self.hub.waits_for_visitors = True
        self.hub.on_lost = self._sent_away
        self.host = self.hub.host
        self._node = node
        self._group = group
        self._register = register
        self._tasks: set[asyncio.Task[None]] = set()
        self._leaving = False
        self._absences = Absences(settings.timeout_s)
        self._cut_off = False
        """Whether it cannot reach a majority of the sequencers."""
        self.on_running: Callable[[Configuration], None] | None = None
        """Called with each configuration of a unit that begins to work, wherever it runs."""
        self._epochs_told: dict[int, int] = {}
        self._asked: set[tuple[int, bytes]] = set()
        """Messages to the register without an answer yet, so that duplicates are dropped."""

    # Coming and going.

    async def __aenter__(self) -> SurvivingServer:
        await self._group.__aenter__()
        try:
            await self.hub.__aenter__()
        except BaseException as error:
            await self._group.__aexit__(type(error), error, None)
            raise
        for task in (self._follow_views(), self._follow_register(), self._keep_time()):
            self._start(task)
        await self._until_all_live(self.hub.settings.join_s)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None and self.failure is None:
                self._leaving = True
                self._say(ForRegister(self._node.address, wire.Missing(self._node.me)))
                await self._until_all_live(HANDED_OVER_S)
        finally:
            for task in tuple(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            try:
                await self.hub.__aexit__(kind, error, trace)
            finally:
                with suppress(QuireError):
                    await self._group.__aexit__(kind, error, trace)

    def visitors(self) -> int:
        """How many clients are connected, or were and may come back."""
        return len(self._roster.visitors())

    @property
    def failure(self) -> QuireError | None:
        """What has ended the service here, if it did not end well."""
        return self.hub.failure

    async def until_ended(self) -> None:
        """Return when the service has ended here, well or by a `failure`."""
        await self.hub.until_ended()

    async def _until_all_live(self, within_s: float) -> None:
        """Wait until all units are live, at other processes if this one leaves."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while not self._all_live():
                    await self._register.changed()

    def _all_live(self) -> bool:
        found = self._register.register().succession.configurations
        mine = self._node.me
        return len(found) == len(self._node.units) and all(
            each.live and not (self._leaving and mine in each.names) for each in found.values()
        )

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # The register.

    def _on_notice(self, _host: Host, notice: Notice) -> None:
        """Pass messages of the process on to the register."""
        if isinstance(notice, ForRegister):
            self._say(notice)

    def _say(self, notice: ForRegister) -> None:
        source, packet = notice.source, notice.packet
        succession = self._register.register().succession
        if isinstance(packet, wire.Here) and (self._leaving or self._node.me in succession.there):
            return
        question = QUESTIONS.encode(packet)
        if (source, question) not in self._asked:
            self._asked.add((source, question))
            self._start(self._tell(source, question))

    async def _tell(self, source: int, question: bytes) -> None:
        try:
            said = await self._register.take(source, question)
        except ProtocolViolation as error:
            if source not in self._node.processes:
                self.hub.dismiss(source, str(error))
        except QuireError:
            pass  # There was no majority, or this process is ending: a process that misses the answer asks again.
        else:
            self._perform(said)
        finally:
            self._asked.discard((source, question))

    def _perform(self, said: Said) -> None:
        self.host.act([Send(ANSWERS.decode(packet), tuple(to)) for packet, to in said])

    async def _follow_register(self) -> None:
        """Tell the process which process runs which unit, according to its copy of the register."""
        while True:
            register = self._register.register()
            if register.succession.version > self._node.routes.version:
                self.host.act(self._node.receive(self.host.now(), REGISTER, register.configured()))
                self._tell_of_running()
            await self._register.changed()

    def _tell_of_running(self) -> None:
        if self.on_running is None:
            return
        for unit, found in self._register.register().succession.configurations.items():
            if found.live and found.epoch > self._epochs_told.get(unit, -1):
                self._epochs_told[unit] = found.epoch
                self.on_running(found)

    async def _follow_views(self) -> None:
        async for event in self._group.events():
            if isinstance(event, View):
                self._miss_the_missing()
            if isinstance(event, View | Blocked | Unblocked | Excluded):
                self._cut_off = isinstance(event, Blocked | Excluded)

    def _miss_the_missing(self) -> None:
        """Report processes that are no longer in the view, which thereby lose their units; one process does this."""
        view = self._group.view
        if view is None or view.senior != self._group.me:
            return
        present = set(map(int, view.members))
        for name in sorted(self._register.register().succession.there):
            if name.address not in present:
                self._say(ForRegister(self._node.address, wire.Missing(name)))

    # Clients.

    def _sent_away(self, client: int) -> None:
        self._absences.sent_away(client)
        self.host.act(self._node.suspect(client))

    def _suspect_the_absent(self) -> None:
        if self._cut_off:
            self._absences.excuse()
        evicted = self._register.register().directory.evicted
        for client in self._absences.look(self._roster.visitors(), self._node.clients(), evicted):
            if client in evicted:
                self.hub.dismiss(client, "it was silent for too long")
            else:
                self.host.act(self._node.suspect(client))

    async def _keep_time(self) -> None:
        """The register has no clock: the senior member sends it a tick when something is due."""
        while True:
            await asyncio.sleep(self._node.options.tick_ms / 1000)
            self._miss_the_missing()
            self._suspect_the_absent()
            due, view = self._register.register().due(), self._group.view
            if due is not None and due <= clock.wall_ns() and view is not None and view.senior == self._group.me:
                with suppress(QuireError):
                    self._perform(await self._register.tick())
