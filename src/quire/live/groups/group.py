"""A group as an application holds it: multicast, iterate, ask what is held back, close.

Messages that are multicast while the event loop is busy leave together as one run at its next turn; an idle member
sends at once. Every queue has a bound: a full window or a slow peer makes `multicast` wait, and a slow application makes
this member read nothing more, which in turn makes the others wait.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from types import TracebackType

from quire.live.errors import GroupClosed, GroupFailed, NotDelivered
from quire.live.events import Event, Listener
from quire.live.groups.driver import Burden, Driver, Held
from quire.live.groups.inbox import Inbox
from quire.live.groups.outbox import Outbox
from quire.live.metrics import Sample, exposition
from quire.live.network.farewell import Ways
from quire.live.network.mesh import Mesh
from quire.live.settings import Certificates, Settings, read_settings
from quire.live.spool import Spool
from quire.model.errors import BadInput
from quire.model.messages import Message
from quire.model.packets import Packet
from quire.protocols.contract import Deliver
from quire.protocols.registry import create

SPILL_RECORDS = 1 << 14


def join(
    group: str,
    *,
    me: int,
    members: Sequence[str],
    order: str | None = None,
    protocol: str | None = None,
    options: Mapping[str, object] | None = None,
    secret: bytes | str | None = None,
    certificates: Certificates | None = None,
    insecure: bool = False,
    listen: str | None = None,
    timeout_s: float = 10.0,
    join_s: float | None = None,
    on_event: Listener | None = None,
) -> Group:
    """A member of a live group, to be used in `async with`, which waits until all members are there.

    `members` are the addresses of all, in the same order everywhere; `me` is this one's place in it. Choose by
    `order` ("total", "causal", "fifo" …) or by `protocol` and its `options`. Beyond loopback give a `secret` of at least
    16 bytes or `certificates`, the same kind everywhere, or say `insecure`. Behind a gateway or in a container, `listen` is
    where this member listens, if that is not its address in `members`. Raises BadInput where these make no sense; on
    entering, MemberUnreachable when a member does not come within `join_s`, and BadInput as soon as it is certain that another
    member was given something else. Later a member may be silent for `timeout_s`, which is also `join_s` if that is not
    given. `on_event` is called with each Event: peers that come, go or stall, and messages that are held back for long.
    """
    return Group(
        read_settings(
            group,
            me,
            members,
            order=order,
            protocol=protocol,
            options=options,
            secret=secret,
            certificates=certificates,
            insecure=insecure,
            listen=listen,
            timeout_s=timeout_s,
            join_s=join_s,
        ),
        on_event=on_event,
    )


class Group:
    """One member's end of a live group. Use it in `async with`; all calls belong to the event loop that entered it."""

    def __init__(self, settings: Settings, spool: Spool | None = None, on_event: Listener | None = None) -> None:
        self.settings = settings
        self.me = settings.me
        self._protocol = create(settings.protocol, settings.me, len(settings.members), settings.options)
        self._mesh = Mesh(settings, type(self._protocol).packets, self, Ways.of(self._protocol))
        self._mesh.report.listener = on_event
        self._driver = Driver(self._protocol, self._mesh.transmit, self._delivered, spool.recorder if spool else None)
        self._spool = spool
        self._audience = frozenset(self._protocol.audience())
        if len(self._audience) < len(settings.members):
            missing = min(set(range(len(settings.members))) - self._audience)
            raise BadInput(f"member {missing} has no place in the group's hierarchy, and live groups are fixed; describe all")
        self._outbox = Outbox(settings.run_messages_max, settings.run_bytes_max)
        self._inbox = Inbox(settings.inbox_messages_max)
        self._room = asyncio.Event()
        self._futures: deque[tuple[int, asyncio.Future[Message]]] = deque()
        self._flush_scheduled = False
        self._may_send_at_once = True
        self._closing = False
        self._reported_gap = (-1, -1)
        self._failure: GroupFailed | None = None
        self._ended = asyncio.Event()

    async def __aenter__(self) -> Group:
        await self._mesh.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            await self.close()
        else:
            await self._stop()

    async def multicast(self, payload: bytes) -> int:
        """Send a message to the group. Returns its number once it is accepted; waits while there is no room for more."""
        return await self.multicast_many((payload,))

    async def multicast_many(self, payloads: Sequence[bytes]) -> int:
        """Send several messages, in order. Returns the number of the first once all are accepted."""
        return await self._send_when_there_is_room(payloads, None)

    async def send(self, payload: bytes, to: Sequence[int]) -> int:
        """Send a message to these members alone. Returns its number once it is accepted; waits while there is no room.

        Raises BadInput where the group's protocol only multicasts, or where there is no such member.
        """
        if not self._protocol.addressed:
            raise BadInput(f"{self.settings.protocol} multicasts to the whole group only; use multicast instead")
        if not to or len(set(to)) != len(to):
            raise BadInput("a message needs at least one destination, and each once")
        for member in to:
            if member not in self._audience:
                raise BadInput(f"there is no member {member} in this group to send to")
        return await self._send_when_there_is_room((payload,), tuple(to))

    async def _send_when_there_is_room(self, payloads: Sequence[bytes], to: tuple[int, ...] | None) -> int:
        number = self._accept(payloads, to)
        self._send_soon()
        while self._outbox.is_full():
            self._room.clear()
            await self._room.wait()
            if self._failure is not None:
                raise self._failure
        return number

    def submit(self, payload: bytes) -> asyncio.Future[Message]:
        """Send a message at once; the future is done when it is delivered here, and holds its place in the order.

        Any number may be outstanding, and nothing waits: to be slowed down by a busy group, use `multicast`.
        """
        number = self._accept((payload,))
        future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._futures.append((number, future))
        self._send_soon()
        return future

    async def execute(self, payload: bytes) -> Message:
        """Send a message and wait until it is delivered here."""
        return await self.submit(payload)

    async def __aiter__(self) -> AsyncIterator[Message]:
        """Every message as it is delivered, this member's own included. Ends when the group has closed."""
        async for delivery in self.runs():
            for message in self._protocol.messages(delivery):
                yield message

    async def runs(self) -> AsyncGenerator[Deliver, None]:
        """Whole runs as they are delivered, with no object a message: `delivery.run`, and `delivery.place` in the total
        order. Ends when the group has closed; raises GroupFailed when it cannot go on."""
        inbox = self._inbox
        inbox.takers += 1
        try:
            while True:
                while (delivery := inbox.take()) is not None:
                    if self._mesh.paused and inbox.has_room_again():
                        self._mesh.resume()
                        self._schedule_flush()
                    yield delivery
                if self._failure is not None:
                    raise self._failure
                if self._ended.is_set():
                    return
                await inbox.changed()
        finally:
            inbox.takers -= 1

    def waiting(self) -> Sequence[Held]:
        """Why is this not delivered yet? Everything held back here: what it waits for, from whom, since when."""
        return self._driver.held()

    def burden(self) -> Burden | None:
        """What this member bore so far, where members pass on what is for others."""
        return self._driver.burden()

    def metrics(self) -> str:
        """This member's counters in the text format of Prometheus."""
        return exposition(self._samples())

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
        await self._stop()
        if self._failure is not None:
            accepted = self._outbox.accepted
            # Of messages to some members, this one is not told which of them were delivered.
            delivered = accepted if self._protocol.addressed else self._driver.delivered[self.me]
            raise NotDelivered(accepted, delivered, self._mesh.who_is_missing()) from self._failure

    # What the mesh reports.

    def packet_arrived(self, source: int, packet: Packet, lamport: int) -> None:
        self._may_send_at_once = True
        self._driver.receive(source, packet, lamport)
        if self._protocol.wakes_on_packets and len(self._outbox):
            self._schedule_flush()

    def room_made(self) -> None:
        """A link has let go of something, or a peer is closing: there may be something to do."""
        self._schedule_flush()

    def peer_closing(self) -> None:
        self._closing = True
        self._schedule_flush()

    def everybody_done(self) -> None:
        self._end()

    def failed(self, error: GroupFailed) -> None:
        self._fail(error)

    def time_passed(self) -> None:
        """Report, once, a message that is held back for long."""
        held = self._driver.held()
        if not held or held[0].since_s < self.settings.timeout_s / 4:
            return
        oldest = held[0]
        message = (oldest.origin, oldest.first)
        if message != self._reported_gap:
            self._reported_gap = message
            why = f"message {oldest.origin}:{oldest.first} is held back: {oldest.because}"
            self._mesh.report(Event("gap", oldest.waits_for, oldest.since_s, why))

    def _fail(self, error: GroupFailed) -> None:
        """The group cannot go on: everybody who waits is told."""
        if self._ended.is_set():
            return
        self._failure = error
        for _, future in self._futures:
            if not future.done():
                future.set_exception(error)
        self._futures.clear()
        self._end()

    def _end(self) -> None:
        self._ended.set()
        self._inbox.wake()
        self._room.set()

    async def _stop(self) -> None:
        await self._mesh.stop()
        if self._spool is not None:
            await asyncio.get_running_loop().run_in_executor(None, self._spool.finish)

    def _accept(self, payloads: Sequence[bytes], to: tuple[int, ...] | None = None) -> int:
        if self._failure is not None:
            raise self._failure
        if self._closing:
            raise GroupClosed("the group is closing, so nothing more can be sent; found a new group to go on")
        most = self.settings.run_bytes_max
        # Most often all together are not too long, which is found out faster than which is the longest.
        if sum(map(len, payloads)) > most and (longest := max(map(len, payloads))) > most:
            raise BadInput(f"a message may have at most {most} bytes, not {longest}")
        return self._outbox.accept(payloads, to)

    def _send_soon(self) -> None:
        """Send at once if nothing is under way. Whatever else is accepted before something new happens leaves together
        at the next turn of the event loop."""
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
        self._flush()

    def _flush(self) -> None:
        """Send what was accepted, in as few runs as possible, as far as windows, links and the application have room."""
        outbox, mesh = self._outbox, self._mesh
        while len(outbox) and self._failure is None and mesh.has_room() and not self._inbox.is_full():
            payloads, to = outbox.take_run()
            if not self._driver.submit(payloads, to):
                outbox.put_back(payloads, to)
                break
        if not outbox.is_full():
            self._room.set()
        mesh.retry_blocked()
        if self._closing and not len(outbox):
            mesh.say_closing(self._driver.submitted)
            mesh.check_done(self._driver.delivered)

    def _delivered(self, delivery: Deliver) -> None:
        if self._spool is not None and self._spool.recorder.pending_records() > SPILL_RECORDS:
            self._spool.spill()
        self._inbox.put(delivery)
        if self._inbox.is_full():
            self._mesh.pause()
        if delivery.run.origin == self.me:
            self._settle_futures(delivery)
        # A delivery makes room in the window, and may be the last that closing waits for.
        if len(self._outbox) or self._closing:
            self._schedule_flush()

    def _settle_futures(self, delivery: Deliver) -> None:
        futures = self._futures
        if not futures or futures[0][0] >= delivery.run.end:
            return
        for message in self._protocol.messages(delivery):
            if futures and futures[0][0] == message.seq:
                _, future = futures.popleft()
                if not future.done():
                    future.set_result(message)

    def _samples(self) -> Iterator[Sample]:
        base = {"group": self.settings.group, "member": str(self.me)}
        yield Sample("quire_messages_sent_total", "Messages this member multicast.", "counter", self._driver.submitted, base)
        for origin, count in enumerate(self._driver.delivered):
            labels = base | {"origin": str(origin)}
            yield Sample("quire_messages_delivered_total", "Messages delivered, by origin.", "counter", count, labels)
        yield Sample("quire_messages_held_back", "Messages not yet delivered here.", "gauge", self._protocol.held_back(), base)
        yield Sample("quire_messages_in_outbox", "Messages accepted but not yet sent.", "gauge", len(self._outbox), base)
        yield Sample("quire_messages_in_inbox", "Messages the application has not taken.", "gauge", self._inbox.messages, base)
        yield from self._mesh.samples(base)
