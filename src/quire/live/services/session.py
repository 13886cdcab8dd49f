"""A client of the sequencing service, as an application sees it: create, join, leave, multicast, iterate.

Messages that are multicast to a group while the event loop is busy are sent together at its next turn, in runs of limited
size. Every queue is bounded: a full window makes `multicast` wait, and a slow application makes this client stop reading.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import TypeAlias

import msgspec

from quire.live import clock
from quire.live.errors import GroupClosed
from quire.live.held import Held
from quire.live.inbox import Inbox
from quire.live.observing.status import Queue
from quire.live.outbox import Outbox
from quire.live.services.nodes import Host
from quire.live.settings import Settings
from quire.model.messages import pack
from quire.model.payloads import BytesLike, as_messages
from quire.protocols.node import Effects, Notice
from quire.protocols.sequencing import Client
from quire.protocols.sequencing.contexts import prune
from quire.protocols.sequencing.errors import Evicted, GapUnrecoverable, GroupLost, UnitUnavailable
from quire.protocols.sequencing.events import BLANK, NO_RUN, OPS
from quire.protocols.sequencing.failover import SurvivingClient
from quire.protocols.sequencing.notices import Changed, Delivered, Failed, Found, Numbered, Skipped
from quire.trace.log import Address

ANSWER_TIMEOUTS = 3
"""After how many timeouts a service with failover counts as unavailable: one passes until a lost sequencer is noticed."""


class GroupMessage(msgspec.Struct, frozen=True):
    """A message of a group, its number there, and who sent it."""

    group: str
    number: int
    origin: int
    payload: bytes


class Membership(msgspec.Struct, frozen=True):
    """`who` joined or left (`change`): these are the members from now on, at every member after the same messages."""

    group: str
    number: int
    change: str
    who: int
    members: tuple[int, ...]


Delivery: TypeAlias = GroupMessage | Membership


class Session:
    """Use it after its host has started. All calls belong to the event loop that started it."""

    def __init__(self, client: Client, settings: Settings) -> None:
        self.client = client
        self.delivered = 0
        self.on_delivered: Callable[[Delivered | Changed], None] | None = None
        """Called with deliveries as they come, run by run, instead of the iterator."""
        self._host: Host | None = None
        self._inbox: Inbox[Delivered | Changed | Failed] = Inbox(settings.inbox_messages_max, settings.inbox_bytes_max)
        run_messages_max = min(settings.run_messages_max, client.options.window)
        self._outbox: Outbox[str] = Outbox(run_messages_max, settings.run_bytes_max)
        self._leaving = False
        self._flush_scheduled = False
        self._patience_s = settings.timeout_s / 4
        self._answer_s = ANSWER_TIMEOUTS * settings.timeout_s if isinstance(client, SurvivingClient) else None
        """How long an answer may take; None: a sequencer that does not answer is lost, and the connection ends."""
        self._asked: dict[str, asyncio.Future[None]] = {}
        self._request: asyncio.Future[None] | None = None
        self._views: dict[str, tuple[int, ...]] = {}
        self._deferred: dict[int, int] = {}
        """Own runs by their first message: their positions in the records, until it is known which members deliver them."""

    def begin(self, host: Host) -> None:
        self._host = host
        host.on_ended = self._ended
        host.on_time_passed = self._time_passed

    @property
    def host(self) -> Host:
        if self._host is None:
            raise GroupClosed("the client is not connected; use it in `async with`")
        return self._host

    def _check_open(self) -> None:
        """Raise what has ended the connection, if it has ended."""
        if self.host.ended:
            raise self.host.failure or GroupClosed("the connection to the service is closed")

    def _ended(self) -> None:
        """The connection has ended: all waiting calls raise the reason."""
        error = self.host.failure or GroupClosed("the connection to the service is closed")
        for waiting in (*self._asked.values(), self._request):
            _resolve(waiting, error)
        self._inbox.wake()
        self._outbox.wake()

    def _time_passed(self) -> None:
        if (news := self._inbox.news(self.client.address, self._patience_s)) is not None:
            self.host.report(news)

    # Groups.

    async def create_group(self, group: str) -> None:
        """Found a group of this name, if there is none. Its founder is not in it: it may join."""
        if group not in self.client.locations:
            await self._ask(group, self.client.create)

    async def find_group(self, group: str) -> None:
        """Raises NoSuchGroup where nobody has created it."""
        if group not in self.client.locations:
            await self._ask(group, self.client.find)

    async def join_group(self, group: str) -> None:
        """Returns when this client is in the group: what is numbered from then on is delivered to it. Raises NoSuchGroup,
        AlreadyMember, or Busy."""
        await self.find_group(group)
        await self._ask_for_membership(group, self.client.join)

    async def leave_group(self, group: str) -> None:
        """Returns when this client has delivered everything up to its leave. Raises NotMember or Busy."""
        await self._ask_for_membership(group, self.client.leave)

    def move_group(self, group: str, sequencer: int) -> None:
        """Have the group moved, with all groups that must move with it; for operators of the service."""
        self.host.act(self.client.move(self.host.now(), group, sequencer))

    async def _ask(self, group: str, ask: Callable[[int, str], Effects]) -> None:
        self._check_open()
        waiting = self._asked.get(group)
        if waiting is None:
            effects = ask(self.host.now(), group)
            waiting = self._asked[group] = asyncio.get_running_loop().create_future()
            self.host.act(effects)
        # Other callers may wait for the same answer when this one is cancelled.
        await self._within(group, asyncio.shield(waiting))

    async def _ask_for_membership(self, group: str, ask: Callable[[int, str], Effects]) -> None:
        self._check_open()
        self._flush()
        effects = ask(self.host.now(), group)
        self._request = asyncio.get_running_loop().create_future()
        self.host.act(effects)
        await self._within(group, asyncio.shield(self._request))

    async def _within(self, group: str, answer: Awaitable[None]) -> None:
        """Raises UnitUnavailable where the answer takes too long. It may still come."""
        try:
            async with asyncio.timeout(self._answer_s):
                await answer
        except TimeoutError:
            raise UnitUnavailable(group) from None

    def _check_available(self, group: str) -> None:
        client = self.client
        if isinstance(client, SurvivingClient) and client.locations.get(group) in client.waiting:
            raise UnitUnavailable(group)

    # Sending.

    async def multicast(self, group: str, payload: BytesLike) -> int:
        """Send a message to a group, as a member or not. Returns its number at this client once it is accepted; waits
        while too many have no number in their groups yet. Raises BadInput for what is not bytes, and TooLarge."""
        return await self.multicast_many(group, (payload,))

    async def multicast_many(self, group: str, payloads: Sequence[BytesLike]) -> int:
        """Send several messages, in order. Returns the number of the first once all are accepted."""
        messages = as_messages(payloads)
        self._check_open()
        if self._leaving:
            raise GroupClosed("the connection to the service is being closed, so nothing more can be sent")
        await self.find_group(group)
        self._check_available(group)
        first = self._outbox.accept(messages, group)
        self._flush_soon()
        while self._outbox.is_full():
            await self._within(group, self._outbox.changed())
            self._check_open()
        return first

    def _flush_soon(self) -> None:
        if not self._flush_scheduled:
            self._flush_scheduled = True
            asyncio.get_running_loop().call_soon(self._scheduled_flush)

    def _scheduled_flush(self) -> None:
        self._flush_scheduled = False
        self._flush(rest=False)
        if len(self._outbox) and self._outbox.may_wait():
            self._flush_soon()

    def _flush(self, *, rest: bool = True) -> None:
        """Send what was accepted, in as few runs as possible, as far as the window has room; without the rest, if that may
        wait."""
        client, outbox = self.client, self._outbox
        while len(outbox) and not self.host.ended and client.outbox.has_room(*outbox.next_run()):
            if not rest and outbox.may_wait():
                break
            run = outbox.take_run()
            group, count = run.to, len(run.payloads)
            assert group is not None
            if group not in client.locations:
                continue  # The group was lost since.
            first, body = client.next_number, pack(run.payloads, run.lengths)
            effects = client.multicast(self.host.now(), group, body, count)
            if self.host.log is not None:
                size = run.bytes // count
                address = Address(group, None)
                self._deferred[first] = self.host.defer_send(client.address, first, address, size, count)
            self.host.act(effects)
        if not outbox.is_full():
            outbox.wake()

    async def flushed(self) -> None:
        """Returns when everything that this client has sent until now is delivered everywhere, whatever it sends meanwhile."""
        self._flush()
        client, outbox = self.client, self._outbox
        accepted = outbox.accepted
        await self._until(lambda: outbox.accepted - len(outbox) >= accepted)
        sent = client.next_number
        await self._until(lambda: client.outbox.first(sent) >= sent)
        last = dict(client.unstable)
        # A group that was lost meanwhile has no unstable messages any more.
        await self._until(lambda: not prune({group: last[group] for group in last if group in client.unstable}, client.stable))

    async def _until(self, condition: Callable[[], bool]) -> None:
        """Raises UnitUnavailable if there is no progress for too long."""
        before, since = self._unflushed(), clock.now()
        while not condition():
            self._check_open()
            await asyncio.sleep(self.client.options.tick_ms / 4000)
            if (left := self._unflushed()) != before:
                before, since = left, clock.now()
            elif self._answer_s is not None and clock.now() - since > self._answer_s:
                raise UnitUnavailable(before[1])

    def _unflushed(self) -> tuple[int, str, int]:
        """How much is not delivered everywhere, one of the groups concerned, and a number that changes with progress."""
        client = self.client
        groups = [*client.unstable, *(one.group for one in client.outbox.sent())]
        left = len(self._outbox) + client.outbox.messages + len(client.unstable)
        return left, groups[0] if groups else "", sum(client.unstable.values()) + sum(client.stable.values())

    # Deliveries.

    def waiting(self) -> Sequence[Held]:
        """Why is nothing delivered? If this client has stopped reading, because its application does not take what was
        delivered: the first messages that it has not taken, since when, and this client as the one that is waited for."""
        unread_s = self._inbox.unread_s()
        if unread_s is None:
            return ()
        notice = self._inbox.first(Delivered)
        run = NO_RUN if notice is None else notice.run
        return (Held(run.origin, run.first, run.count, (self.client.address,), self._inbox.why(), unread_s),)

    def queues(self) -> dict[str, Queue]:
        """What was delivered and is not taken, and what was accepted and is not sent."""
        return {"inbox": Queue(self._inbox.messages, self._inbox.bytes), "outbox": Queue(len(self._outbox))}

    def __aiter__(self) -> AsyncIterator[Delivery]:
        return self._deliveries()

    async def _deliveries(self) -> AsyncGenerator[Delivery, None]:
        """Everything in the groups in which this client is, in order. Ends when the client has left the service; raises
        GapUnrecoverable where something is lost, and what ended the connection otherwise."""
        inbox = self._inbox
        inbox.takers += 1
        try:
            while True:
                while (notice := inbox.take()) is not None:
                    if inbox.has_room_again():
                        self.host.resume()
                    for delivery in _shown(notice):
                        yield delivery
                if self.host.failure is not None:
                    raise self.host.failure
                if self.host.ended:
                    return
                await inbox.changed()
        finally:
            inbox.takers -= 1

    def begin_to_leave(self) -> None:
        """The application leaves: it sends nothing more, and later deliveries are not for it. Iterators still get the earlier
        ones."""
        self._leaving = True
        self.on_delivered = lambda _: None
        if not self._inbox.takers:
            self._inbox.discard()
        self.host.resume()

    def on_notice(self, host: Host, notice: Notice) -> None:
        """Handle a notice of the client node."""
        match notice:
            case Delivered():
                self._delivered(host, notice)
            case Numbered():
                if notice.members is not None:
                    self._settle(host, notice.group, notice.first, notice.members)
                if len(self._outbox):
                    self._flush_soon()
            case Changed():
                self._changed(host, notice)
            case Skipped():
                # The numbers are the same at all members, so it does not matter which member recorded them.
                for number in range(notice.first, notice.last + 1):
                    host.record_view(0, number, Address(notice.group, self._views[notice.group], op=OPS[BLANK]))
            case Found():
                _resolve(self._asked.pop(notice.group, None))
            case Failed():
                _resolve(self._asked.pop(notice.group, None), notice.error)
                if isinstance(notice.error, Evicted):
                    host.fail(notice.error)
                elif isinstance(notice.error, GapUnrecoverable | GroupLost):
                    self._hand_over(host, notice, 0, 0)
                    if self.client.request is None:
                        _resolve(self._request, notice.error)

    def _delivered(self, host: Host, notice: Delivered) -> None:
        run = notice.run
        self.delivered += run.count
        if host.log is not None:
            host.record_delivery(run.origin, run.first, Address(notice.group), run.payload_bytes() // run.count, run.count)
        if run.origin == self.client.address:
            self._settle(host, notice.group, run.first, self._views[notice.group])
        self._hand_over(host, notice, run.count, run.payload_bytes())

    def _changed(self, host: Host, notice: Changed) -> None:
        self._views[notice.group] = notice.members
        host.record_view(notice.who, notice.seq, Address(notice.group, notice.members, op=OPS[notice.kind]))
        self._hand_over(host, notice, 1, 0)
        if notice.who == self.client.address:
            _resolve(self._request)

    def _hand_over(self, host: Host, notice: Delivered | Changed | Failed, messages: int, size: int) -> None:
        if self.on_delivered is not None:
            if not isinstance(notice, Failed):
                self.on_delivered(notice)
            return
        self._inbox.put(notice, messages, size)
        self._inbox.wake()
        if self._inbox.is_full():
            host.pause()

    def _settle(self, host: Host, group: str, first: int, members: tuple[int, ...]) -> None:
        record = self._deferred.pop(first, None)
        if record is not None:
            host.settle(record, Address(group, tuple(sorted(members))))


def _shown(notice: Delivered | Changed | Failed) -> Iterator[Delivery]:
    """The deliveries for the application, one by one; raises failures that cannot be repaired."""
    match notice:
        case Failed():
            raise notice.error
        case Changed():
            yield Membership(notice.group, notice.seq, OPS[notice.kind], notice.who, notice.members)
        case Delivered():
            for number, payload in enumerate(notice.run.payloads(), notice.seq):
                yield GroupMessage(notice.group, number, notice.run.origin, payload)


def _resolve(waiting: asyncio.Future[None] | None, error: Exception | None = None) -> None:
    if waiting is None or waiting.done():
        return
    if error is None:
        waiting.set_result(None)
    else:
        waiting.set_exception(error)
        # The caller may have been cancelled, so that nobody retrieves the error; that must not be logged as a mistake.
        waiting.exception()
