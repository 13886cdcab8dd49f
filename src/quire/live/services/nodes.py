"""A node of a service in a process of its own: the mesh carries its packets, the event loop wakes it.

Nodes repair a bad network themselves. So where a link is full, because its peer is slow or gone, a packet is dropped
instead of anybody waiting; and where a service survives the loss of members, a lost one is given up and the rest go on.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any

from quire.live.errors import GroupFailed, MemberUnreachable, NotDelivered
from quire.live.events import Listener
from quire.live.network.mesh import Mesh
from quire.live.settings import Settings
from quire.live.spool import Spool
from quire.model.errors import QuireError
from quire.model.packets import Packet
from quire.protocols.node import Effects, Node, Notice, Send
from quire.trace.scribe import Scribe

SPILL_RECORDS = 1 << 14

Told = Callable[["Host", Notice], None]
"""The application of a node: called with each notice, when everything before it in the same step was performed."""


class Host(Scribe):
    """Use it in `async with`, which waits until all members are there. `survives`: go on without members that are lost."""

    def __init__(
        self,
        settings: Settings,
        node: Node,
        told: Told,
        *,
        spool: Spool | None = None,
        survives: bool = False,
        on_event: Listener | None = None,
    ) -> None:
        super().__init__(spool.recorder if spool is not None else None)
        self.settings = settings
        self.node = node
        self.told = told
        self.failure: QuireError | None = None
        self.lost: set[int] = set()
        """Members that were given up."""
        self.on_lost: Callable[[int], None] | None = None
        """Called with each of them, which never comes back."""
        self.dropped = 0
        """Packets that found no room on their link."""
        self._survives = survives
        self._spool = spool
        self._mesh = self._make_mesh()
        self._mesh.report.listener = on_event
        self._alarm: asyncio.TimerHandle | None = None
        self._closing = False
        self._ended = asyncio.Event()
        self._news = asyncio.Event()
        """Set when somebody closes, is lost or ends."""

    def _make_mesh(self) -> Mesh:
        return Mesh(self.settings, type(self.node).packets, self)

    async def __aenter__(self) -> Host:
        await self._mesh.start()
        self.act(())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            await self.close()
        else:
            await self._stop()

    @staticmethod
    def now() -> int:
        """The time that the node is told."""
        return time.monotonic_ns()

    def time_ns(self) -> int:
        return time.time_ns()

    def act(self, effects: Effects) -> None:
        """Perform the effects of one step of the node."""
        if self._ended.is_set():
            return
        for effect in effects:
            if isinstance(effect, Send):
                self._send(effect)
            else:
                self.told(self, effect)
        self._set_alarm()
        if self._spool is not None and self._spool.recorder.pending_records() > SPILL_RECORDS:
            self._spool.spill()

    async def until_closing(self, members: Iterable[int]) -> None:
        """Return when these members have no more to do, or are given up, or the service has ended here."""
        needed = frozenset(members)
        while not self._ended.is_set() and any(not self._mesh.has_left(member) for member in needed):
            self._news.clear()
            await self._news.wait()

    async def until_ended(self) -> None:
        """Return when the service has ended here, well or by a `failure`."""
        await self._ended.wait()

    def pause(self) -> None:
        """Read nothing more: the application has more than enough to do."""
        self._mesh.pause()

    def resume(self) -> None:
        if self._mesh.paused:
            self._mesh.resume()

    async def close(self) -> None:
        """Return when all members are closing and nothing is unfinished here; the node serves the others until then.

        Raises NotDelivered where that is not known within the timeout.
        """
        if not self._ended.is_set():
            self._closing = True
            self._check_closing()
            try:
                # Where members may be lost, each of the others first has to notice.
                async with asyncio.timeout(self.settings.timeout_s * (3 if self._survives else 1)):
                    await self._ended.wait()
            except TimeoutError:
                self.fail(GroupFailed("the service did not close in time"))
        await self._stop()
        if self.failure is not None:
            raise NotDelivered(0, 0, self._mesh.who_is_missing()) from self.failure

    # What the mesh reports.

    def packet_arrived(self, source: int, packet: Packet, lamport: int) -> None:
        self.heard(lamport)
        self.act(self.node.receive(self.now(), source, packet))
        self._check_closing()

    def room_made(self) -> None:
        """Nobody waits for room."""

    def peer_closing(self) -> None:
        self._news.set()
        self._check_closing()

    def everybody_done(self) -> None:
        self._ended.set()
        self._news.set()

    def failed(self, error: GroupFailed) -> None:
        if self._survives and isinstance(error, MemberUnreachable):
            self.lost.add(error.member)
            self._mesh.give_up(error.member)
            if self.on_lost is not None:
                self.on_lost(error.member)
            self._news.set()
            self._check_closing()
        else:
            self.fail(error)

    def time_passed(self) -> None:
        self._check_closing()

    def fail(self, error: QuireError) -> None:
        if not self._ended.is_set():
            self.failure = error
            self._ended.set()
            self._news.set()

    def _send(self, send: Send) -> None:
        packet, me, mesh = send.packet, self.node.address, self._mesh
        lamport = self.tick()
        there = tuple(member for member in send.to if member != me and mesh.has_room_to(member))
        away = sum(member != me for member in send.to)
        self.dropped += away - len(there)
        run = packet.carried()
        header = mesh.transmit(packet, there, lamport)
        self.record_packet(packet.name, away, header, run.payload_bytes() if run is not None else 0)
        if me in send.to:
            asyncio.get_running_loop().call_soon(self._to_itself, packet, lamport)

    def _to_itself(self, packet: Packet, lamport: int) -> None:
        if not self._ended.is_set():
            self.packet_arrived(self.node.address, packet, lamport)

    def _set_alarm(self) -> None:
        due = self.node.due()
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if due is not None:
            delay_s = max(0, due - self.now()) / 1e9
            self._alarm = asyncio.get_running_loop().call_later(delay_s, self._wake)

    def _wake(self) -> None:
        self._alarm = None
        now, due = self.now(), self.node.due()
        self.act(self.node.wake(now) if due is not None and due <= now else ())
        self._check_closing()

    def _check_closing(self) -> None:
        if self._closing and self.node.idle():
            self._mesh.say_closing(0)
            self._mesh.check_done([0] * len(self.settings.members))

    async def _stop(self) -> None:
        self._ended.set()
        if self._alarm is not None:
            self._alarm.cancel()
        await self._mesh.stop()
        if self._spool is not None:
            loop: asyncio.AbstractEventLoop = asyncio.get_running_loop()
            finish: Callable[[], Any] = self._spool.finish
            await loop.run_in_executor(None, finish)
