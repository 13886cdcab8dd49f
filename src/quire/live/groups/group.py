"""A group with fixed members, as an application sees it: multicast, iterate, ask what is held back, close.

Messages that are multicast while the event loop is busy are sent together as one run at its next turn; an idle member sends at
once. Every queue is bounded: a full window or a slow peer makes `multicast` wait, and a slow application makes this member stop
reading, which in turn makes the others wait (backpressure).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any

from quire.live import clock
from quire.live.errors import GroupClosed, GroupFailed, NotDelivered
from quire.live.events import Listener
from quire.live.groups.agreement import Agreement
from quire.live.groups.awaited import Awaited
from quire.live.groups.commands import OF_THE_STATE, AnyState, Commands, marked, read_state
from quire.live.groups.counting import samples
from quire.live.groups.driver import Driver
from quire.live.groups.stalls import StallReports
from quire.live.groups.status import status
from quire.live.held import Held
from quire.live.inbox import Inbox
from quire.live.metrics import exposition
from quire.live.network.mesh import Mesh
from quire.live.network.rosters import FixedRoster
from quire.live.network.topology import Topology
from quire.live.observing.observer import Observer
from quire.live.observing.status import Status
from quire.live.outbox import Outbox
from quire.live.recording import LEFT_EARLY, Recording
from quire.live.settings import Settings
from quire.model.errors import BadInput
from quire.model.messages import Message
from quire.model.packets import Packet
from quire.model.payloads import BytesLike, as_bytes, as_messages
from quire.protocols.contract import Deliver
from quire.protocols.registry import create
from quire.trace.relay_load import RelayLoad


class Group:
    """One member's end of a group whose members are fixed. Use it in `async with`; all calls belong to the event loop that
    entered it."""

    def __init__(
        self,
        settings: Settings,
        recording: Recording | None = None,
        on_event: Listener | None = None,
        state: AnyState = None,
        observer: Observer | None = None,
    ) -> None:
        machine, settings = read_state(settings, state)
        self.settings = settings
        self.me = settings.me
        self._protocol = create(settings.protocol, settings.me, len(settings.members), settings.options)
        self._mesh = Mesh(settings, type(self._protocol).packets, self, FixedRoster(settings, Topology.of(self._protocol)))
        self._mesh.report.listener = on_event if observer is None else observer.listen
        self._observer = observer
        log, wall_ns = (None, clock.wall_ns) if recording is None else (recording.log, recording.wall_ns)
        self._driver = Driver(self._protocol, self._mesh.transmit, self._delivered, log, wall_ns)
        self._agreement = Agreement(settings.me, self._driver.through, self._mesh.peers, self._mesh.failure_notices)
        self._recording = recording
        if recording is not None:
            recording.relay_load = self.relay_load
        self._audience = frozenset(self._protocol.audience())
        if len(self._audience) < len(settings.members):
            missing = min(set(range(len(settings.members))) - self._audience)
            raise BadInput(f"member {missing} is missing from the hierarchy; this group is fixed, so describe all members")
        self._outbox: Outbox[tuple[int, ...]] = Outbox(
            min(settings.run_messages_max, self._protocol.longest_run()), settings.run_bytes_max
        )
        self._inbox: Inbox[Deliver] = Inbox(settings.inbox_messages_max, settings.inbox_bytes_max)
        self._stalls = StallReports(settings, self._driver, self._inbox, self._mesh)
        self._awaited: Awaited[None] = Awaited()
        self._flush_scheduled = False
        self._may_send_at_once = True
        self._closing = False
        self._failure: GroupFailed | None = None
        self._ended = asyncio.Event()
        self._commands = (
            None if machine is None else Commands(machine, self.me, self._accept_for_the_state, self._send_soon, self._fail)
        )

    async def __aenter__(self) -> Group:
        self._driver.clock = clock.reader()
        if self._observer is not None:
            self._observer.tail.lamport = lambda: self._driver.lamport
            await self._observer.start(self, str(self.me))
        try:
            await self._mesh.start()
        except BaseException:
            self._end_commands()
            await self._unobserved()
            raise
        if self._recording is not None:
            self._recording.begin(self._mesh.incarnation, self._mesh.incarnations(), self._mesh.report)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            await self.close()
        else:
            await self._stop()

    def present(self) -> int:
        """How many members are here, this one included."""
        return 1 + sum(peer.connection is not None for peer in self._mesh.peers.values())

    async def multicast(self, payload: BytesLike) -> int:
        """Send a message to the group. Returns its number once it is accepted; waits while there is no room for more."""
        return await self.multicast_many((payload,))

    async def multicast_many(self, payloads: Sequence[BytesLike]) -> int:
        """Send several messages, in order. Returns the number of the first once all are accepted."""
        return await self._send_when_there_is_room(payloads, None)

    async def send(self, payload: BytesLike, to: Sequence[int]) -> int:
        """Send a message to these members only. Returns its number once it is accepted; waits while there is no room.

        Raises BadInput where the group's protocol only multicasts, or where there is no such member.
        """
        if not self._protocol.addressed:
            raise BadInput(f"{self.settings.protocol} multicasts to the whole group only; use multicast instead")
        if not to or len(set(to)) != len(to):
            raise BadInput("name at least one destination, and none twice")
        for member in to:
            if member not in self._audience:
                raise BadInput(f"there is no member {member} in this group to send to")
        return await self._send_when_there_is_room((payload,), tuple(to))

    async def _send_when_there_is_room(self, payloads: Sequence[BytesLike], to: tuple[int, ...] | None) -> int:
        number = self._accept(payloads, to)
        self._send_soon()
        while self._outbox.is_full():
            await self._outbox.changed()
            if self._failure is not None:
                raise self._failure
        return number

    def submit(self, payload: BytesLike) -> asyncio.Future[Message]:
        """Send a message at once; the future is done when it is delivered here, and holds its position in the order.

        Any number may be outstanding, and nothing waits; use `multicast` for flow control.
        """
        future = self._awaited.add(self._accept((payload,)), None)
        self._send_soon()
        return future

    async def execute(self, payload: BytesLike) -> Message:
        """Send a message and wait until it is delivered here."""
        return await self.submit(payload)

    def apply(self, payload: BytesLike, state: str = "") -> asyncio.Future[Any]:
        """Have the state of this name apply the payload, at every member and in the order of the group; the future holds what
        its `apply` returned or raised here. Objects of `quire.Replicated` have commands, which do the same."""
        if self._commands is None:
            raise BadInput("this group has no state; pass one to quire.join")
        return self._commands.submit(state, as_bytes(payload), lambda result: result)

    async def __aiter__(self) -> AsyncIterator[Message]:
        """Every message as it is delivered, this member's own included. Ends when the group has closed; raises GroupFailed when
        it cannot go on, after everything that was delivered here."""
        async for delivery in self.runs():
            for message in self._protocol.messages(delivery):
                yield message

    async def runs(self) -> AsyncGenerator[Deliver, None]:
        """Whole runs as they are delivered, without an object per message: `delivery.run`, and `delivery.position` in the total
        order. Ends when the group has closed; raises GroupFailed when it cannot continue."""
        inbox = self._inbox
        inbox.takers += 1
        try:
            while True:
                while (delivery := inbox.take()) is not None:
                    if self._mesh.paused and inbox.has_room_again():
                        self._mesh.resume()
                        self._schedule_flush()
                    yield delivery
                if self._ended.is_set():
                    if self._failure is not None:
                        raise self._failure
                    return
                await inbox.changed()
        finally:
            inbox.takers -= 1

    def waiting(self) -> Sequence[Held]:
        """Why is this not delivered yet? Everything held back here: what it waits for, from whom, since when.

        Where this member reads nothing more because its own application does not take what was delivered, that comes first:
        it waits for `me`.
        """
        return self._stalls.waiting()

    def relay_load(self) -> RelayLoad | None:
        """How much this member has forwarded for others so far."""
        return self._driver.relay_load()

    def status(self) -> Status:
        """The status of this member, as `observe` shows it."""
        return status(self.settings, self._driver, self._outbox, self._inbox, self._mesh, self.waiting(), self._failure)

    def metrics(self) -> str:
        """This member's counters in the text format of Prometheus."""
        return exposition(samples(self.settings, self._driver, self._outbox, self._inbox, self._mesh))

    async def close(self) -> None:
        """Send nothing more, and return when everything that any member sent is delivered at all of them.

        Raises NotDelivered when that is not known to be so: another member is lost, or it takes longer than the timeout.
        A fixed group ends with the first member to close it: the others still deliver what was sent, but send nothing
        more. Closing twice does nothing.
        """
        if not self._ended.is_set():
            self._closing = True
            if not self._inbox.takers:
                self._inbox.discard()
                self._mesh.resume()
            self._schedule_flush()
            try:
                async with asyncio.timeout(self.settings.timeout_s):
                    await self._ended.wait()
            except TimeoutError:
                gap = self._protocol.gap()
                failure = GroupFailed("the group did not close in time" + (f": {gap}" if gap is not None else ""))
                failure.__cause__ = gap
                self._fail(failure)
                await self._ended.wait()
        missing = self._mesh.who_is_missing()
        await self._stop()
        if self._failure is not None:
            accepted = self._outbox.accepted
            # Where messages go to some members only, this one does not learn which of its messages were delivered.
            delivered = accepted if self._protocol.addressed else self._driver.delivered[self.me]
            raise NotDelivered(accepted, delivered, missing) from self._failure

    # What the mesh reports.

    def packet_arrived(self, source: int, packet: Packet, lamport: int) -> None:
        if self._failure is not None:
            return
        self._may_send_at_once = True
        self._driver.receive(source, packet, lamport)
        if self._protocol.wakes_on_packets and len(self._outbox):
            self._schedule_flush()

    def room_made(self) -> None:
        """A peer has acknowledged frames, or is closing: there may be something to send or finish."""
        self._schedule_flush()

    def peer_closing(self) -> None:
        self._closing = True
        self._schedule_flush()

    def everybody_done(self) -> None:
        self._end()

    def failed(self, error: GroupFailed) -> None:
        self._fail(error)

    def given_up(self, by: int, error: GroupFailed) -> None:
        self._fail(error)
        self._agreement.peer_gave_up(by)

    def time_passed(self) -> None:
        """Tell the others how far this member has delivered, and check whether something takes too long."""
        if self._failure is None:
            self._agreement.tell()
        self._stalls.look()

    def _fail(self, error: GroupFailed) -> None:
        """The group cannot go on: nothing more is sent or delivered, and soon all waiting calls raise the error."""
        if not self._ended.is_set() and self._failure is None:
            self._failure = error
            self._agreement.end(error, self._tell_failure)

    def _tell_failure(self) -> None:
        if self._failure is not None:
            self._awaited.fail(self._failure)
            self._end_commands()
        self._end()

    def _end(self) -> None:
        self._ended.set()
        self._inbox.wake()
        self._outbox.wake()

    def _end_commands(self) -> None:
        if self._commands is not None:
            self._commands.end(self._failure or GroupClosed("the group has ended; create a new group to continue"))

    async def _stop(self) -> None:
        await self._mesh.stop()
        self._end_commands()
        if self._recording is not None:
            await self._recording.end(str(self._failure or ("" if self._ended.is_set() else LEFT_EARLY)))
        await self._unobserved()

    async def _unobserved(self) -> None:
        if self._observer is not None:
            await self._observer.stop()

    def _accept(self, payloads: Sequence[BytesLike], to: tuple[int, ...] | None = None) -> int:
        if self._failure is not None:
            raise self._failure
        if self._closing:
            raise GroupClosed("the group is closing, so nothing more can be sent; create a new group to continue")
        messages = as_messages(payloads, self.settings.run_bytes_max)
        if self._commands is not None and to is not OF_THE_STATE:
            messages = marked(messages)
        return self._outbox.accept(messages, to)

    def _accept_for_the_state(self, payload: bytes) -> int:
        return self._accept((payload,), OF_THE_STATE)

    def _send_soon(self) -> None:
        """Send at once if all messages of this member so far are delivered here. Messages that are accepted after that are sent
        together at the next turn of the event loop."""
        if self._flush_scheduled:
            return
        if self._may_send_at_once and self._driver.submitted == self._driver.delivered[self.me]:
            self._may_send_at_once = False
            self._flush()
        else:
            self._schedule_flush()

    def _schedule_flush(self) -> None:
        if not self._flush_scheduled:
            self._flush_scheduled = True
            asyncio.get_running_loop().call_soon(self._scheduled_flush)

    def _scheduled_flush(self) -> None:
        self._flush_scheduled = False
        self._may_send_at_once = True
        self._flush(rest=False)
        if len(self._outbox) and self._outbox.may_wait():
            self._schedule_flush()

    def _flush(self, *, rest: bool = True) -> None:
        """Send what was accepted, in as few runs as possible, as far as windows, links and the application have room. `rest`:
        also send a last run that could still grow."""
        outbox, mesh = self._outbox, self._mesh
        while len(outbox) and self._failure is None and mesh.has_room() and not self._inbox.is_full():
            if not rest and outbox.may_wait():
                break
            run = outbox.take_run()
            if not self._driver.submit(run.payloads, run.lengths, run.to or None):
                outbox.put_back(run)
                break
        if not outbox.is_full():
            outbox.wake()
        mesh.retry_blocked()
        if self._closing and not len(outbox):
            mesh.say_closing(self._driver.submitted)
            mesh.check_done(self._driver.delivered)

    def _delivered(self, delivery: Deliver) -> None:
        if self._recording is not None:
            self._recording.keep_up()
        for_the_application = delivery if self._commands is None else self._commands.take(delivery)
        if for_the_application is not None:
            run, inbox = for_the_application.run, self._inbox
            inbox.put(for_the_application, run.count, run.payload_bytes())
            inbox.wake()
            if inbox.full_since is not None:
                self._mesh.pause()
            if run.origin == self.me and self._awaited.are_before(run.end):
                self._settle_awaited(for_the_application)
        # A delivery makes room in the window, and may be the last that closing waits for.
        if len(self._outbox) or self._closing:
            self._schedule_flush()

    def _settle_awaited(self, delivery: Deliver) -> None:
        for message in self._protocol.messages(delivery):
            if (awaited := self._awaited.take(message.seq)) is not None:
                awaited[0].set_result(message)
