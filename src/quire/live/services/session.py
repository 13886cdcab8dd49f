"""A client of the sequencing service as an application holds it: create, join, leave, multicast, iterate.

What is multicast to a group while the event loop is busy leaves together as one run at its next turn. Every queue has a
bound: a full window makes `multicast` wait, and a slow application makes this client read nothing more.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import TypeAlias

import msgspec

from quire.live.errors import GroupClosed
from quire.live.services.nodes import Host
from quire.model.messages import pack
from quire.protocols.node import Notice
from quire.protocols.sequencing import Client
from quire.protocols.sequencing.errors import Evicted, GapUnrecoverable
from quire.protocols.sequencing.events import JOIN, LEAVE
from quire.protocols.sequencing.notices import Changed, Delivered, Failed, Found, Numbered
from quire.trace.recorder import Address

OPS = {JOIN: "join", LEAVE: "leave"}


class GroupMessage(msgspec.Struct, frozen=True):
    """A message of a group, its number there, and who sent it."""

    group: str
    number: int
    origin: int
    payload: bytes


class Membership(msgspec.Struct, frozen=True):
    """`who` joined or left (`change`): these are the members from now on, for everybody after the same messages."""

    group: str
    number: int
    change: str
    who: int
    members: tuple[int, ...]


Delivery: TypeAlias = GroupMessage | Membership


class Session:
    """Use it after its host has started. All calls belong to the event loop that started it."""

    def __init__(self, client: Client, inbox_messages_max: int, run_messages_max: int) -> None:
        self.client = client
        self.delivered = 0
        self.on_delivered: Callable[[Delivered | Changed], None] | None = None
        """Takes deliveries as they come, run by run, instead of the iterator."""
        self._host: Host | None = None
        self._inbox_max = inbox_messages_max
        self._run_max = run_messages_max
        self._inbox: deque[Delivered | Changed | Failed] = deque()
        self._inbox_messages = 0
        self._arrived = asyncio.Event()
        self._room = asyncio.Event()
        self._asked: dict[str, asyncio.Future[None]] = {}
        self._request: asyncio.Future[None] | None = None
        self._unsent: list[tuple[str, list[bytes]]] = []
        self._unsent_count = 0
        self._views: dict[str, tuple[int, ...]] = {}
        self._deferred: dict[int, int] = {}
        """Own runs by their first message: their places in the records, until it is known who is to deliver them."""

    def begin(self, host: Host) -> None:
        self._host = host

    @property
    def host(self) -> Host:
        if self._host is None:
            raise GroupClosed("the client is not connected; use it in `async with`")
        return self._host

    # Groups.

    async def create_group(self, group: str) -> None:
        """Found a group of this name, if there is none. Its founder is not in it: it may join."""
        if group not in self.client.places:
            await self._ask(group, self.client.create)

    async def find_group(self, group: str) -> None:
        """Raises NoSuchGroup where nobody has created it."""
        if group not in self.client.places:
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
        """Have the group moved, with all that must go with it; for whoever runs the service."""
        self.host.act(self.client.move(self.host.now(), group, sequencer))

    async def _ask(self, group: str, ask: Callable[[int, str], object]) -> None:
        waiting = self._asked.get(group)
        if waiting is None:
            waiting = self._asked[group] = asyncio.get_running_loop().create_future()
            self.host.act(ask(self.host.now(), group))  # type: ignore[arg-type]
        await self._or_failure(waiting)

    async def _ask_for_membership(self, group: str, ask: Callable[[int, str], object]) -> None:
        self._flush()
        self.host.act(ask(self.host.now(), group))  # type: ignore[arg-type]
        self._request = asyncio.get_running_loop().create_future()
        await self._or_failure(self._request)

    async def _or_failure(self, waiting: asyncio.Future[None] | asyncio.Task[None]) -> None:
        """Wait for it, or for the end of the connection."""
        ended = asyncio.ensure_future(self.host.until_ended())
        try:
            await asyncio.wait((asyncio.ensure_future(waiting), ended), return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                raise self.host.failure or GroupClosed("the connection to the service is closed")
            waiting.result()
        finally:
            ended.cancel()

    # Sending.

    async def multicast(self, group: str, payload: bytes) -> int:
        """Send a message to a group, as a member or not. Returns its number at this client once it is accepted; waits
        while too many have no number in their groups yet."""
        return await self.multicast_many(group, (payload,))

    async def multicast_many(self, group: str, payloads: Sequence[bytes]) -> int:
        """Send several messages, in order. Returns the number of the first once all are accepted."""
        if self.host.failure is not None:
            raise self.host.failure
        if group not in self.client.places:
            await self.find_group(group)
        first = -1
        for start in range(0, len(payloads), self._run_max):
            part = payloads[start : start + self._run_max]
            while self.client.outbox.messages + self._unsent_count + len(part) > self.client.options.window:
                self._flush()
                self._room.clear()
                await self._or_failure(asyncio.ensure_future(self._wait_for_room()))
            number = self.client.next_number + self._unsent_count
            first = number if first < 0 else first
            self._submit(group, part)
        return first

    async def _wait_for_room(self) -> None:
        await self._room.wait()

    def _submit(self, group: str, payloads: Iterable[bytes]) -> None:
        if not self._unsent:
            asyncio.get_running_loop().call_soon(self._flush)
        if not self._unsent or self._unsent[-1][0] != group or len(self._unsent[-1][1]) >= self._run_max:
            self._unsent.append((group, []))
        batch = self._unsent[-1][1]
        before = len(batch)
        batch.extend(payloads)
        self._unsent_count += len(batch) - before

    def _flush(self) -> None:
        unsent, self._unsent, self._unsent_count = self._unsent, [], 0
        for group, payloads in unsent:
            client, body = self.client, pack(payloads)
            first = client.next_number
            effects = client.multicast(self.host.now(), group, body, len(payloads))
            if self.host.recorder is not None:
                size = len(body.payload) // len(payloads)
                self._deferred[first] = self.host.defer_send(client.address, first, size, len(payloads))
            self.host.act(effects)

    async def flushed(self) -> None:
        """Returns when everything that this client sent is delivered everywhere."""
        self._flush()
        while not self.client.outbox.idle() or self.client.unstable:
            await self._or_failure(asyncio.ensure_future(asyncio.sleep(self.client.options.tick_ms / 4000)))

    # Deliveries.

    def __aiter__(self) -> AsyncIterator[Delivery]:
        return self._deliveries()

    async def _deliveries(self) -> AsyncIterator[Delivery]:
        """Everything in the groups in which this client is, in order. Raises GapUnrecoverable where some of it is lost."""
        while True:
            while not self._inbox:
                self._arrived.clear()
                await self._or_failure(asyncio.ensure_future(self._wait_for_arrival()))
            notice = self._inbox.popleft()
            if isinstance(notice, Failed):
                raise notice.error
            if isinstance(notice, Changed):
                yield Membership(notice.group, notice.seq, OPS[notice.kind], notice.who, notice.members)
                continue
            for number, payload in enumerate(notice.run.payloads(), notice.seq):
                yield GroupMessage(notice.group, number, notice.run.origin, payload)
            self._inbox_messages -= notice.run.count
            if self._inbox_messages <= self._inbox_max // 2:
                self.host.resume()

    async def _wait_for_arrival(self) -> None:
        await self._arrived.wait()

    def told(self, host: Host, notice: Notice) -> None:
        """What the client says, as its host hands it on."""
        match notice:
            case Delivered():
                self._delivered(host, notice)
            case Numbered():
                if notice.members is not None:
                    self._settle(host, notice.group, notice.first, notice.members)
                self._room.set()
            case Changed():
                self._changed(host, notice)
            case Found():
                _resolve(self._asked.pop(notice.group, None))
            case Failed():
                _resolve(self._asked.pop(notice.group, None), notice.error)
                if isinstance(notice.error, Evicted):
                    host.fail(notice.error)
                elif isinstance(notice.error, GapUnrecoverable):
                    self._hand_over(notice)

    def _delivered(self, host: Host, notice: Delivered) -> None:
        run = notice.run
        self.delivered += run.count
        if host.recorder is not None:
            host.record_delivery(run.origin, run.first, Address(notice.group), run.payload_bytes() // run.count, run.count)
        if run.origin == self.client.address:
            self._settle(host, notice.group, run.first, self._views[notice.group])
        self._hand_over(notice)
        if self.on_delivered is None:
            self._inbox_messages += run.count
            if self._inbox_messages > self._inbox_max:
                host.pause()

    def _changed(self, host: Host, notice: Changed) -> None:
        self._views[notice.group] = notice.members
        host.record_view(notice.who, notice.seq, Address(notice.group, notice.members, op=OPS[notice.kind]))
        self._hand_over(notice)
        if notice.who == self.client.address:
            _resolve(self._request)

    def _hand_over(self, notice: Delivered | Changed | Failed) -> None:
        if self.on_delivered is not None:
            if not isinstance(notice, Failed):
                self.on_delivered(notice)
            return
        self._inbox.append(notice)
        self._arrived.set()

    def _settle(self, host: Host, group: str, first: int, members: tuple[int, ...]) -> None:
        place = self._deferred.pop(first, None)
        if place is not None:
            host.settle(place, Address(group, tuple(sorted(members))))


def _resolve(waiting: asyncio.Future[None] | None, error: Exception | None = None) -> None:
    if waiting is None or waiting.done():
        return
    if error is None:
        waiting.set_result(None)
    else:
        waiting.set_exception(error)
