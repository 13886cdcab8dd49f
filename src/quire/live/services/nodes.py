"""The driver of a node of a service: runs it on an event loop, with the mesh as its network.

Nodes retransmit by themselves. So where a link is full, because its peer is slow or gone, packets are dropped instead of making
anybody wait; and where a service survives the loss of members, the rest go on without a lost one until it is heard again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any

from quire.live import clock
from quire.live.errors import GroupFailed, MemberUnreachable, NotDelivered, PeerMisbehaved
from quire.live.events import Event, Listener
from quire.live.network.mesh import Mesh
from quire.live.network.peers import Peer, links
from quire.live.network.rosters import Roster
from quire.live.observing.observer import Observer
from quire.live.observing.status import LinkStatus, Observed
from quire.live.recording import LEFT_EARLY, Recording
from quire.live.services.disk import NodeDisk
from quire.live.settings import Address, Settings
from quire.model.errors import QuireError, TooLarge
from quire.model.packets import Packet
from quire.protocols.node import Effect, Effects, Node, Notice, Send
from quire.trace.event_recorder import EventRecorder

OnNotice = Callable[["Host", Notice], None]
"""The application of a node: called with each notice, after everything before it in the same step was performed."""


class Host(EventRecorder):
    """Use it in `async with`, which waits until all members are there. `survives`: go on without members that are lost."""

    def __init__(
        self,
        settings: Settings,
        node: Node,
        on_notice: OnNotice,
        *,
        roster: Roster | None = None,
        recording: Recording | None = None,
        survives: bool = False,
        on_event: Listener | None = None,
        observer: Observer | None = None,
    ) -> None:
        super().__init__(recording.log if recording is not None else None)
        self.settings = settings
        self.node = node
        self.on_notice = on_notice
        self.failure: QuireError | None = None
        self.on_failed: Callable[[int | None, GroupFailed], bool] | None = None
        """Called first when a peer (None: no particular one) makes the service fail; returns whether it has handled that."""
        self.on_ended: Callable[[], None] | None = None
        """Called once, when the service has ended here, well or by a `failure`."""
        self.on_time_passed: Callable[[], None] | None = None
        """Called at intervals."""
        self.dropped = 0
        """Packets that were dropped, because their link was full or had them already."""
        self._survives = survives
        self._recording = recording
        self._keep_up: Callable[[], None] = (lambda: None) if recording is None else recording.keep_up
        self._disk: NodeDisk[Any] | None = None
        self._mesh = Mesh(settings, type(node).packets, self, roster)
        self.incarnation, self.incarnations = self._mesh.incarnation, self._mesh.incarnations
        """What distinguishes this process from any other that was or will be this member; and the same of the others."""
        self._mesh.report.listener = self._happened
        self._on_event = on_event if observer is None else observer.listen
        self._observer = observer
        self.observed: Observed | None = None
        """What the observer shows."""
        self._clock: Callable[[], float] = clock.now
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at = 0
        self._looks_at_clock = False
        self._closing = False
        self._said_closing = False
        self._ended = asyncio.Event()
        self._news = asyncio.Event()
        """Set when a peer closes, is lost or ends, and at intervals."""

    def goes_on(self, node: Node, disk: NodeDisk[Any], *, restarted: bool) -> None:
        """Before the host is entered: use this node instead of the first one, and write to this disk. `restarted`: whether an
        earlier process used the disk, so that there is no need to wait for the others."""
        self.node, self._disk = node, disk
        self.clock = disk.clock
        if restarted:
            self._mesh.was_here_before()

    async def __aenter__(self) -> Host:
        self._clock = clock.reader()
        if self._disk is not None:
            self._disk.begin(self._mesh.incarnation, self._released, self.fail)
        try:
            if self._observer is not None and self.observed is not None:
                self._observer.tail.lamport = self._logical_time
                await self._observer.start(self.observed, str(self.settings.me))
            await self._mesh.start()
        except BaseException:
            if self._disk is not None:
                await self._disk.close()
            if self._observer is not None:
                await self._observer.stop()
            raise
        if self._recording is not None:
            known = self._mesh.incarnations() | ({} if self._disk is None else self._disk.earlier(self.settings.me))
            self._recording.begin(self._mesh.incarnation, known, self._mesh.report)
        self.act(())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await (self.close() if kind is None else self.stop(LEFT_EARLY))
        except asyncio.CancelledError:
            await self.stop(LEFT_EARLY)
            raise

    def now(self) -> int:
        """The time that the node sees, in nanoseconds."""
        return int(self._clock() * 1e9)

    def time_ns(self) -> int:
        return clock.wall_ns() if self._recording is None else self._recording.wall_ns()

    def _logical_time(self) -> int:
        """A lower bound for the logical times of all events that are not yet taken from the log."""
        return self.clock if self.log is None else self.log.reached(self.clock)

    def act(self, effects: Effects) -> None:
        """Perform the effects of one step of the node."""
        if self._ended.is_set():
            return
        if self._disk is not None:
            effects = self._disk.admit(self.clock, effects)
            if self._disk.full:
                self.pause()
        self._perform(effects)
        if not self._looks_at_clock:
            # Once per turn of the loop: a node that waits for much has to look through all of it.
            self._looks_at_clock = True
            asyncio.get_running_loop().call_soon(self._set_alarm)

    def _perform(self, effects: Effects) -> None:
        before: Effect | None = None
        for effect in effects:
            if isinstance(effect, Notice):
                self.on_notice(self, effect)
            elif isinstance(effect, Send):
                if isinstance(before, Notice):
                    self._keep_up()  # Others may know of it from now on, even if this process is killed.
                self._send(effect)
            before = effect
        self._keep_up()

    def _released(self, effects: Effects) -> None:
        """Perform effects whose records are durable now."""
        if not self._ended.is_set():
            self._perform(effects)
            if self._disk is not None and not self._disk.full:
                self.resume()

    @property
    def returns(self) -> bool:
        """Whether an earlier process of this member has taken part; known once all members are there, or one says so."""
        return self._mesh.returns

    @property
    def lost(self) -> frozenset[int]:
        """The members that are silent, so that the others go on without them."""
        return frozenset(member for member, peer in self._mesh.peers.items() if peer.away)

    def give_up(self, member: int, incarnation: int, why: str) -> None:
        """Drop a process of a member for good. If another one has taken its place, that one stays."""
        if self._mesh.incarnations().get(member, incarnation) == incarnation:
            self._mesh.give_up(member, incarnation, why)
        self._mesh.report(Event("evicted", (member,), why=why))
        self._news.set()
        self._check_closing()

    async def until_closing(self, members: Sequence[int]) -> None:
        """Return when none of these members has more to do, as far as this process or any other server knows, or when the
        service has ended here."""
        while not self._ended.is_set() and not self._is_over_with(members):
            self._news.clear()
            await self._news.wait()

    def _is_over_with(self, members: Sequence[int]) -> bool:
        """Whether each of these members is closing or lost. If all are lost, this process may have been cut off itself: then
        they are waited for as long as at the start."""
        peers = [self._mesh.peers[member] for member in members]
        if all(peer.connection is None for peer in peers):
            # This process may have come back after they had left, which the others know.
            others = (peer for peer in self._mesh.peers.values() if peer.member not in members)
            if any(peer.closing_after is not None for peer in others):
                return True
        if not all(peer.has_left() or peer.away for peer in peers):
            return False
        patience_s = self.settings.timeout_s + self.settings.join_s
        return any(peer.has_left() for peer in peers) or all(peer.away_s() > patience_s for peer in peers)

    @property
    def ended(self) -> bool:
        return self._ended.is_set()

    def report(self, event: Event) -> None:
        """Report an event to the operator."""
        self._mesh.report(event)

    def _happened(self, event: Event) -> None:
        if event.kind == "connected" and self._recording is not None:
            self._recording.meet(self._mesh.incarnations().items())
        if self._on_event is not None:
            self._on_event(event)

    async def until_ended(self) -> None:
        """Return when the service has ended here, well or by a `failure`."""
        await self._ended.wait()

    def pause(self) -> None:
        """Stop reading: the application has more than enough to do."""
        self._mesh.pause()

    def resume(self) -> None:
        if self._mesh.paused:
            self._mesh.resume()

    async def close(self) -> None:
        """Return when all members are closing and nothing is unfinished here; the node serves the others until then, however
        long they have something to do.

        Raises NotDelivered where something is unfinished here for longer than the timeout, or does not end within it once
        all are closing.
        """
        if not self._ended.is_set():
            self._closing = True
            self._check_closing()
            await self._until_over()
        missing = self._mesh.who_is_missing()
        await self.stop()
        if self.failure is not None:
            raise NotDelivered(0, 0, missing) from self.failure

    async def _until_over(self) -> None:
        # Where members may be lost, each of the others first has to notice it.
        patience_s = self.settings.timeout_s * (3 if self._survives else 1)
        deadline = clock.now() + patience_s
        while not self._ended.is_set():
            if self._said_closing and not all(peer.has_left() or peer.away for peer in self._mesh.peers.values()):
                deadline = clock.now() + patience_s
            elif clock.now() >= deadline:
                self.fail(GroupFailed("the service did not close in time"))
                return
            self._news.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(deadline - clock.now()):
                    await self._news.wait()

    async def leave(self, unheard: Callable[[], bool], within_s: float) -> None:
        """Announce that this node closes, wait up to `within_s` while something it sent is `unheard`, and stop it alone."""
        if not self._ended.is_set():
            self._mesh.say_closing(0)
            deadline = clock.now() + within_s
            while unheard() and clock.now() < deadline:
                await asyncio.sleep(0.002)
        await self.stop()

    def listens_at(self) -> str:
        """Where others reach this node; empty: nowhere."""
        listen, port = self.settings.listen, self._mesh.port
        return "" if listen is None or port is None else str(Address(listen.host, port))

    def dial(self, peer: Peer, address: Address) -> None:
        """Maintain a connection to another peer, which listens there."""
        self._mesh.dial(peer, address)

    # What the mesh reports.

    def packet_arrived(self, source: int, packet: Packet, lamport: int) -> None:
        self.heard(lamport)
        self.act(self.node.receive(self.now(), source, packet))
        self._check_closing()

    def room_made(self) -> None:
        """Nothing to do: nodes never wait for room."""

    def peer_closing(self) -> None:
        self._news.set()
        self._check_closing()

    def everybody_done(self) -> None:
        self._end()

    def failed(self, error: GroupFailed) -> None:
        by = error.member if isinstance(error, MemberUnreachable | PeerMisbehaved) else None
        if self.on_failed is not None and self.on_failed(by, error):
            return
        if self._survives and isinstance(error, MemberUnreachable):
            self._mesh.peers[error.member].away = True
            self._news.set()
            self._check_closing()
        else:
            self.fail(error)

    def given_up(self, by: int, error: GroupFailed) -> None:
        """Another member has given up on the service, and says why."""
        if self.on_failed is not None and self.on_failed(by, error):
            return
        if self._survives:
            self._mesh.lose(by, str(error))
        else:
            self.fail(error)

    def time_passed(self) -> None:
        self._news.set()
        self._check_closing()
        if self.on_time_passed is not None:
            self.on_time_passed()

    def fail(self, error: QuireError) -> None:
        if not self._ended.is_set():
            self.failure = error
            self._mesh.failure_notices.has_failed(error)
            self._end()

    def _end(self) -> None:
        if self._ended.is_set():
            return
        self._ended.set()
        self._news.set()
        if self.on_ended is not None:
            self.on_ended()

    def _send(self, send: Send) -> None:
        packet, me, mesh = send.packet, self.node.address, self._mesh
        lamport = self.tick()
        there = tuple(member for member in send.to if member != me and mesh.has_use_for(packet, member))
        away = sum(member != me for member in send.to)
        self.dropped += away - len(there)
        run = packet.carried()
        try:
            header = mesh.transmit(packet, there, lamport)
        except TooLarge as error:
            # This is the same as losing it on the way, which nodes repair.
            self.dropped += len(there)
            mesh.report(Event("too_large", there, why=str(error)))
            return
        self.record_packet(packet.name, away, header, run.payload_bytes() if run is not None else 0)
        if me in send.to:
            asyncio.get_running_loop().call_soon(self._to_itself, packet, lamport)

    def _to_itself(self, packet: Packet, lamport: int) -> None:
        if not self._ended.is_set():
            self.packet_arrived(self.node.address, packet, lamport)

    def _set_alarm(self) -> None:
        self._looks_at_clock = False
        due = None if self._ended.is_set() else self.node.due()
        if due is None or (self._alarm is not None and self._alarm_at <= due):
            # An alarm that goes off too early is set again then, which is rare; nodes postpone deadlines with every packet.
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_at = due
        self._alarm = asyncio.get_running_loop().call_later(max(0, due - self.now()) / 1e9, self._wake)

    def _wake(self) -> None:
        self._alarm = None
        now, due = self.now(), self.node.due()
        self.act(self.node.wake(now) if due is not None and due <= now else ())
        self._check_closing()

    def _check_closing(self) -> None:
        if self._closing and self.node.idle():
            self._said_closing = True
            self._mesh.say_closing(0)
            self._mesh.check_done([0] * len(self.settings.members))

    async def stop(self, why: str = "") -> None:
        """End at once. `why`: the reason, if it is a failure."""
        self._end()
        if self._alarm is not None:
            self._alarm.cancel()
        await self._mesh.stop()
        if self._disk is not None:
            await self._disk.close()
        if self._recording is not None:
            await self._recording.end(str(self.failure or why))
        if self._observer is not None:
            await self._observer.stop()

    def links(self) -> tuple[LinkStatus, ...]:
        """The status of the links to the others."""
        return links(self._mesh.peers.values())
