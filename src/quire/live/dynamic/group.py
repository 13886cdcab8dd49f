"""A group whose members change, as an application sees it: multicast, iterate, see its members, leave it or close it.

Every queue is bounded: `multicast` waits while too many of this member's messages are undelivered, and if the application does
not read, this member stops reading from its peers. A member that cannot reach a majority waits, and reports it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any

from quire.live.dynamic.deliveries import DeliveredRun, Then, Waiting
from quire.live.dynamic.events import Excluded, GroupEvent, MemberExcluded, Restored, View, ViewMessage
from quire.live.dynamic.iterating import Iterated
from quire.live.dynamic.joining import DynamicSettings, check_cluster
from quire.live.dynamic.node import Node
from quire.live.dynamic.quorum import Quorum
from quire.live.dynamic.recording import MemberRecording
from quire.live.dynamic.replica import Replica
from quire.live.dynamic.state import GivenState, GroupState
from quire.live.dynamic.status import MemberStatus, tell
from quire.live.dynamic.submitting import NO_SINGLES, Submitting
from quire.live.dynamic.unread import Unread
from quire.live.errors import GroupClosed, NotDelivered
from quire.live.events import Event, Listener, Reporter
from quire.live.held import Held
from quire.live.inbox import Inbox
from quire.live.observing.observer import Observer
from quire.live.observing.status import Status
from quire.model.errors import BadInput, OutcomeUnknown, QuireError
from quire.model.payloads import BytesLike, Messages, as_bytes, as_messages
from quire.views import effects

END_S = 10.0
"""How long leaving and closing may take, unless the timeout is longer."""
LINGER_S = 5.0
"""How long a process that is no longer a member stays, so that others can ask it how its last view ended."""

_CLOSING = "the group is closing, so nothing more can be sent"


class DynamicGroup(Iterated):
    """One member's end of a group whose members change. Use it in `async with`, which waits until this process is a member.
    Leaving the block leaves the group, and the others continue. All calls belong to the event loop that entered it."""

    def __init__(
        self,
        settings: DynamicSettings,
        state: GivenState = None,
        on_event: Listener | None = None,
        recording: MemberRecording | None = None,
        observer: Observer | None = None,
    ) -> None:
        self.settings = settings
        self.me = settings.me
        self.view: View | None = None
        """The view that this member is in, or the last one that it was in; None before the first."""
        self._report = Reporter(settings.network.group, settings.me)
        self._report.listener = on_event if observer is None else observer.listen
        self._observer = observer
        kept = GroupState(state)
        if kept.machine is not None and not settings.rules.total:
            protocol = settings.rules.protocol
            raise BadInput(f"a state needs a total order, which {protocol} does not keep; join with order='total'")
        self._recording = recording
        self._node = Node(settings, settings.facts(kept.declaration), self, recording)
        self._inbox: Inbox[Waiting] = Inbox(settings.network.inbox_messages_max, settings.network.inbox_bytes_max)
        self._unread = Unread(self._inbox, self._node, self._report)
        single_max = settings.network.run_bytes_max if kept.machine is None else NO_SINGLES
        self._submitting = Submitting(settings.rules.run_max, settings.rules.run_bytes, single_max)
        self._replica, self._quorum = Replica(kept, self._node, self), Quorum(self._node, self._tell)
        self._delivered: dict[str, int] = {}
        self._standing = MemberStatus(self._node, self._quorum, self._submitting, self._inbox, self._delivered)
        self._is_total, self._flush_scheduled = settings.rules.total, False
        self._ending = ""
        """Why nothing more can be submitted; empty while it can."""
        self._is_member, self._over = asyncio.Event(), asyncio.Event()
        self._failure: QuireError | None = None
        self._stopping: asyncio.Task[None] | None = None

    # Coming and going.

    async def __aenter__(self) -> DynamicGroup:
        try:
            await self._node.start(self._report)
            self._submitting.begin(self._node.operations().last, self._node.operations().settled)
            if self._observer is not None:
                await self._observer.start(self, self.me)
            await self._quorum.until_member(self._is_member, lambda: self._failure, self._report)
            if self.view is None:
                raise GroupClosed("the group ended before this process became a member")
        except BaseException as error:
            await self._stop(error if isinstance(error, QuireError) else GroupClosed("the group was not joined"))
            raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            await self._stop(GroupClosed("the process ended without leaving its group"))
        elif self._failure is None:
            await self.leave()
        else:
            await self._stop(self._failure)

    async def leave(self) -> None:
        """Leave the group once everything that this member has sent is delivered; the others continue. The last member cannot
        leave, so the group is then closed. Raises NotDelivered if that is not done in time. Leaving twice does nothing."""
        await self._end("this member is leaving, so nothing more can be sent", self._leave)

    async def close(self) -> None:
        """End the group for all members, once everything that was submitted anywhere is delivered everywhere. Raises
        NotDelivered if that is not done in time. Closing twice does nothing."""
        await self._end(_CLOSING, self._close)

    async def move(self, cluster: str) -> None:
        """Move to another cluster of a hierarchy, and return when a view has this member there. Messages that are on their way
        are neither lost nor reordered. Raises GroupClosed if this member leaves, or the group ends, before that."""
        check_cluster(cluster, self.settings.rules.protocol)
        self._check_open()
        self._node.move(cluster)
        await self._until(lambda: not self._node.has_moved())
        if self._node.has_moved():
            raise self._failure or GroupClosed(self._ending)

    async def _end(self, why: str, how: Callable[[], Awaitable[None]]) -> None:
        self._ending = self._ending or why
        if not self._inbox.takers:
            self._inbox.discard()
            self._read_on()
        try:
            if not self._over.is_set():
                async with asyncio.timeout(max(END_S, self.settings.network.timeout_s)):
                    await how()
                    await self._over.wait()
        except TimeoutError:
            missing = self._quorum.why() or "not all members of the group have answered"
            failure = NotDelivered(self._submitting.accepted, self._submitting.settled, missing)
            await self._stop(failure)
            raise failure from None
        finally:
            await self._stop(GroupClosed("the group has ended here; join again to continue"))

    async def _leave(self) -> None:
        await self._until(self._submitting.is_drained)
        if not self._over.is_set():
            self._node.leave()

    async def _close(self) -> None:
        # Hand over everything that was accepted before the process refuses more.
        await self._until(lambda: not self._submitting.has_pending())
        if not self._over.is_set():
            self._node.close()

    async def _until(self, condition: Callable[[], bool]) -> None:
        self._flush()
        while not (condition() or self._over.is_set()):
            await self._submitting.changed()

    async def _stop(self, why: QuireError) -> None:
        """Stop taking part in the group: everything that waits raises `why`."""
        if self._over.is_set() and self._failure is None:
            await self._node.linger(LINGER_S)
        early = self._failure if self._over.is_set() else why
        self._finish(why)
        if self._stopping is not None:
            await self._stopping
        await self._node.stop()
        if self._recording is not None:
            await self._recording.end("" if early is None else str(early))
        if self._observer is not None:
            await self._observer.stop()

    def _finish(self, why: QuireError) -> None:
        unknown = OutcomeUnknown(f"it is not known whether it was delivered: {why}")
        unknown.__cause__ = why
        self._ending = self._ending or str(why)
        self._submitting.end(unknown)
        self._replica.end(unknown, why)
        self._unread.end()
        self._over.set()
        self._is_member.set()
        self._inbox.wake()

    def failed(self, error: QuireError) -> None:
        """This process cannot go on."""
        if self._failure is None and not self._over.is_set():
            self._failure = error
            self._finish(error)
            self._stopping = self._node.loop.create_task(self._node.stop())

    # Sending.

    @property
    def accepted(self) -> int:
        """How many messages this member has accepted from its application; with a journal, before it was restarted, too."""
        return self._submitting.accepted

    @property
    def acknowledged(self) -> int:
        """How many of these are delivered, and will not be lost."""
        return self._submitting.settled

    async def multicast(self, payload: BytesLike) -> int:
        """Send a message to the group. Returns its number once it is accepted; waits while there is no room for more, and
        raises NoQuorum where that is so because no majority can be reached: then it was not accepted."""
        submitting = self._submitting
        # Applications call this very often: what was checked in this turn of the event loop is not checked again.
        if submitting.room and type(payload) is bytes and len(payload) <= submitting.single_bytes_max:
            return submitting.accept_one(payload) - 1
        await submitting.others_turn()
        first = await self.multicast_many((payload,))
        submitting.make_room()
        return first

    async def multicast_many(self, payloads: Sequence[BytesLike]) -> int:
        """Send several messages, in order. Returns the number of the first once all are accepted."""
        while self._submitting.is_full() and not self._ending:
            self._quorum.check()
            await self._submitting.changed()
        return self._accept(payloads) - 1

    def submit(self, payload: BytesLike) -> asyncio.Future[ViewMessage]:
        """Send a message at once; the future is done when it is delivered here. Any number may be outstanding, except that
        this raises NoQuorum while the queue is full and no majority can be reached."""
        if self._submitting.is_full():
            self._quorum.check()
        return self._submitting.awaited.add(self._accept((payload,)), None)

    async def execute(self, payload: BytesLike) -> ViewMessage:
        """Send a message and wait until it is delivered here. Raises OutcomeUnknown if that can never be known here."""
        return await self.submit(payload)

    def apply(self, payload: BytesLike, state: str = "") -> asyncio.Future[Any]:
        """Have the state of this name apply the payload, at every member and in the order of the group; the future holds what
        its `apply` returned or raised here. Objects of `quire.Replicated` have commands, which do the same."""
        return self._replica.apply(as_bytes(payload), state)

    def name_of(self, caller: int) -> str | None:
        """The name of the member with this number in commands and leases; None if it is gone."""
        return self._replica.state.sessions.name_of(caller)

    def _accept(self, payloads: Sequence[BytesLike]) -> int:
        return self.accept(self._replica.marked(as_messages(payloads, self.settings.network.run_bytes_max)))

    def accept(self, messages: Messages) -> int:
        """Take operations of this process's session; returns the number of the first."""
        self._check_open()
        number = self._submitting.accept(messages)
        if not self._flush_scheduled:
            self._flush_scheduled = True
            self._node.loop.call_soon(self.before_input)
        return number

    def _check_open(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._ending or self._node.is_closing():
            raise GroupClosed(self._ending or _CLOSING)

    def _flush(self) -> None:
        self._flush_scheduled = False
        self._submitting.end_turn()
        if self._submitting.has_pending() and not (self._over.is_set() or self._node.paused):
            for messages in self._submitting.take():
                self._node.submit(messages)
            self._submitting.wake()

    # Receiving.

    async def _deliveries(self, *, events: bool) -> AsyncGenerator[DeliveredRun | GroupEvent, None]:
        inbox = self._inbox
        inbox.takers += 1
        try:
            while True:
                while (waiting := inbox.take()) is not None:
                    if self._node.paused:
                        self.moved()
                    if isinstance(waiting, Then):
                        waiting.action()
                        waiting = waiting.event
                    if isinstance(waiting, DeliveredRun) or (events and waiting is not None):
                        yield waiting
                if self._over.is_set():
                    if self._failure is not None:
                        raise self._failure
                    return
                await inbox.changed()
        finally:
            inbox.takers -= 1

    def _read_on(self) -> None:
        self._node.pause(paused=False)
        self._flush()

    # What the process tells.

    def before_input(self) -> None:
        """Hand over what was accepted, if that is not done yet."""
        if self._flush_scheduled:
            self._flush()

    def delivered(self, effect: effects.Deliver) -> None:
        entry = effect.entry
        self._delivered[entry.origin] = self._delivered.get(entry.origin, 0) + entry.run.count
        for each in self._replica.take(entry, effect.index if self._is_total else None):
            run = each.run
            self._inbox.put(each, run.count, run.payload_bytes())
            if entry.session == self._node.session and self._submitting.awaited.are_before(each.first + 1 + run.count):
                self._submitting.delivered(each.first + 1, list(each.messages()))

    def happened(self, effect: effects.ProcessEffect) -> None:
        match effect:
            case effects.Install():
                self._installed(effect)
            case effects.Settled():
                self._submitting.settle(effect.number)
                self._replica.settled(effect.number)
            case effects.Restore():
                self._replica.restore(effect.state, Restored(effect.position.epoch))
            case effects.Checkpoint():
                self._replica.hand_snapshot_to_others()
            case effects.ReadReady():
                self._replica.read_ready(effect.token)
            case effects.ReadFailed():
                self._replica.read_failed(effect.token)
            case effects.Exclude():
                self._excluded(effect.epoch)
            case effects.LeaveRefused():
                self._node.close()
            case effects.Leave() | effects.Close():
                self._finish(GroupClosed("the group has ended here; join again to continue"))
            case effects.Report():
                self._quorum.reported(effect, self._report, is_member=self.view is not None)
                if effect.kind == "refused":
                    self.does_not_fit(effect.name, effect.why)

    def does_not_fit(self, name: str, why: str, *, reported: bool = False) -> None:
        if self.view is None and (error := self._node.mismatch.begin(name, why, reported=reported)) is not None:
            self.failed(error)

    def moved(self) -> None:
        node, inbox = self._node, self._inbox
        if inbox.messages:
            # Only now, once a turn, so that whoever waited for its own message goes on first, and sends its next one.
            inbox.wake()
        # The application cannot read before this process is a member, and what it catches up with until then is bounded.
        if (inbox.full_since is not None and inbox.is_full() and self._is_member.is_set()) or (
            node.journal is not None and node.journal.full
        ):
            node.pause(paused=True)
            self._unread.watch()
        elif node.paused and inbox.has_room_again():
            self._read_on()
        if node.journal is not None:
            self._replica.look_after_journal(node.journal)

    def unkept(self, error: QuireError) -> None:
        self._report(Event("unrecorded", (), why=f"no checkpoint could be made: {error}"))

    def hand_over(self, waiting: Waiting, messages: int = 1, size: int = 0) -> None:
        """Queue an item for the application to read."""
        self._inbox.put(waiting, messages, size)
        self._inbox.wake()

    def _tell(self, event: GroupEvent) -> None:
        if self._observer is not None:
            tell(self._observer.feed, event)
        self.hand_over(event)
        self._submitting.wake()

    def _installed(self, effect: effects.Install) -> None:
        clusters = effect.view.clusters()
        self.view = View(effect.view.epoch, effect.view.names(), clusters if any(clusters) else ())
        self._is_member.set()
        self._tell(self.view)
        self._replica.installed(self.view, joined=effect.joined)

    def _excluded(self, epoch: int) -> None:
        self._tell(Excluded(epoch))
        if not self.settings.rejoin:
            self.failed(MemberExcluded(epoch))

    def waiting(self) -> Sequence[Held]:
        """Why is this not delivered yet? Everything held back here: what it waits for, from whom, and how long it is known to
        have waited. Messages that this member's own application does not take come first: they wait for `me`."""
        return self._standing.waiting()

    def status(self) -> Status:
        """The status of this member, as `observe` shows it."""
        return self._standing.status(self.view, self._ending)

    def metrics(self) -> str:
        """This member's counters in the text format of Prometheus."""
        return self._standing.metrics(self.view)

    def journalled(self) -> tuple[int, int]:
        """In how many batches (group commits) this process made its journal durable, and their size together."""
        return self._standing.journalled()
