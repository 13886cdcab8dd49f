"""The driver of a process of a changing group on an event loop: feeds it inputs, and carries out its effects.

It has one timer, and decides nothing. Connections, the disk and time are inputs; effects are carried out in order, and those
that concern the application go to its owner. Everything that can be read in one turn of the event loop, from all connections,
is taken in before any effect is carried out or anything is sent.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import count
from typing import Any, Protocol

from quire.live import clock
from quire.live.dynamic.connection import NamedConnection
from quire.live.dynamic.disk import MemberJournal
from quire.live.dynamic.joining import DynamicSettings
from quire.live.dynamic.mismatch import MismatchNotice
from quire.live.dynamic.recording import MemberRecording
from quire.live.events import Reporter
from quire.live.held import Held
from quire.live.network.acceptor import Acceptor
from quire.live.network.allocator import keep_freed_memory
from quire.live.network.certificates import why_not
from quire.live.network.transports.contract import CLOSE_S
from quire.live.network.transports.registry import make_transport
from quire.live.settings import read_address
from quire.model.errors import QuireError
from quire.model.payloads import Messages
from quire.views import effects
from quire.views.codec import GroupCodec
from quire.views.introductions import Introduction
from quire.views.member import Member
from quire.views.operations import Operations
from quire.views.process import Process
from quire.views.timing import Timing
from quire.views.view import Participant
from quire.wire.frames import Frame

_FEW = 2
"""With so few peers, packets seldom come from several at once, and waiting for that made round trips a third longer."""
_READS_MAX = 32
"""How many reads a turn may have, which would never end while there is always more to read."""


class Owner(Protocol):
    """The object that a node reports to: the group as the application sees it."""

    def before_input(self) -> None:
        """Input from another process is about to be handled, which may close the group."""

    def delivered(self, effect: effects.Deliver) -> None: ...
    def happened(self, effect: effects.ProcessEffect) -> None:
        """Any other effect that concerns the application."""

    def moved(self) -> None:
        """Effects were carried out: check what follows from them."""

    def failed(self, error: QuireError) -> None:
        """The journal cannot be written any more."""

    def does_not_fit(self, name: str, why: str, *, reported: bool = False) -> None:
        """Another process has different settings or, if `reported`, has given up because a third one has."""


class Node:
    def __init__(self, settings: DynamicSettings, facts: str, owner: Owner, recording: MemberRecording | None = None) -> None:
        self.settings = settings
        self.process: Process
        self.loop: asyncio.AbstractEventLoop
        """To which all calls belong. Asking which one runs is a system call each time."""
        self.journal: MemberJournal | None = None
        self.session = ""
        self.paused = False
        """Whether nothing is read at present."""
        self.turned_down = ""
        """Why the last attempt to connect failed."""
        self.mismatch = MismatchNotice(settings)
        self._facts = facts
        self._owner = owner
        self._recording = recording
        self._codec = GroupCodec(settings.rules.protocol)
        self._transport = make_transport(settings.network)
        self._acceptor = Acceptor(settings.network, lambda: self._connection(None), self._transport)
        self._numbers = count(1)
        self._connections: dict[int, NamedConnection] = {}
        self._unflushed: dict[int, NamedConnection] = {}
        self._dialling: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._stopped = False
        self._now: Callable[[], float] = clock.now
        self._sync_wanted = False
        self._wanted: deque[effects.ProcessEffect] = deque()
        """Effects that are still to be carried out, in order."""
        self._doing = False
        self._reads = 0
        """How many reads this turn has had."""
        self._turn_ends = False
        """Whether the end of the turn is scheduled."""
        self._perform: dict[type, Callable[[Any], None]] = {
            effects.Write: self._write,
            effects.Deliver: owner.delivered,
            effects.Save: self._save,
            effects.Sync: self._sync,
            effects.Connect: self._connect,
            effects.Disconnect: self._disconnect,
            effects.Report: self._reported,
        }

    async def start(self, report: Reporter) -> None:
        """Open the journal and listen; raises BadInput or JournalCorrupt. Then the process begins."""
        keep_freed_memory()
        self.loop, self._now = asyncio.get_running_loop(), clock.reader()
        settings, member = self.settings, self._member()
        self.session = member.core.session
        introduction = Introduction(
            group=settings.network.group,
            name=settings.me,
            life=secrets.randbits(63),
            incarnation=member.core.me.incarnation,
            address=str(settings.address),
            facts=self._facts,
            addresses=settings.addresses,
            founders=settings.founders,
        )
        self.process = Process(member, introduction, Timing(timeout_s=settings.network.timeout_s), settings.contacts)
        try:
            await self._acceptor.open()
        except BaseException:
            await self._close_journal()
            raise
        if self.journal is not None:
            self.journal.begin(lambda number: self.do(self.process.synced(self._now(), number)), self._owner.failed)
        if self._recording is not None:
            self._recording.watch(self.process, report)
        self.do(self.process.start(self._now()))

    def _member(self) -> Member:
        settings = self.settings
        if settings.journal is not None:
            self.journal = MemberJournal(settings.journal, self._codec)
            if self.journal.found:
                return Member.restart(settings.rules, self.journal.found)
        # A later incarnation than that of any earlier process, and than those in the founding view.
        me = Participant(settings.me, clock.wall_ns(), settings.weight, settings.cluster)
        return Member(settings.rules, me, f"{settings.me}-{secrets.token_hex(8)}", founds=settings.founds)

    async def stop(self) -> None:
        """Close all connections and the journal."""
        if self._stopped:
            return
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
        for task in self._dialling:
            task.cancel()
        try:
            await asyncio.gather(*self._dialling, return_exceptions=True)
        finally:
            for connection in tuple(self._connections.values()):
                self.mismatch.say(connection)
            await self.mismatch.stay()
            await self._acceptor.close()
            await self._until_disconnected()
            await self._close_journal()

    async def _until_disconnected(self) -> None:
        """Wait until all connections have ended: the last frames may still be on their way, and each ends after a while."""
        with suppress(TimeoutError):
            async with asyncio.timeout(2 * CLOSE_S):
                while self._connections:
                    await asyncio.sleep(0.001)

    async def _close_journal(self) -> None:
        if self.journal is not None:
            await self.journal.close()

    # What the process asks for.

    def do(self, wanted: Iterable[effects.ProcessEffect]) -> None:
        """Carry out the effects that the process returned for an input."""
        if self._stopped:
            return
        self._wanted.extend(wanted)
        if self._doing:
            return  # An effect led to another input, whose effects come after those that are being carried out.
        self._doing = True
        try:
            perform, happened = self._perform, self._owner.happened
            while self._wanted:
                effect = self._wanted.popleft()
                perform.get(type(effect), happened)(effect)
        finally:
            self._doing = False
        if self._recording is not None:
            self._record()
        if self._sync_wanted:
            self._sync_wanted = False
            assert self.journal is not None
            self.journal.sync()
        if self._unflushed:
            unflushed, self._unflushed = self._unflushed, {}
            for connection in unflushed.values():
                connection.flush()
        if self._timer is None or self.process.due < self._timer_at:
            self._arm()
        self._owner.moved()

    def _record(self) -> None:
        """Write the trace before anything is sent: what others may know must be recorded here."""
        if self._recording is not None:
            self._recording.keep()

    def _write(self, effect: effects.Write) -> None:
        for number, parts in effect.frames:
            connection = self._connections.get(number)
            if connection is not None:
                connection.write(parts)
                self._unflushed[number] = connection

    def _save(self, effect: effects.Save) -> None:
        assert self.journal is not None
        self.journal.save(effect)

    def _sync(self, _: effects.Sync) -> None:
        self._sync_wanted = True

    def _reported(self, effect: effects.Report) -> None:
        if self._recording is not None:
            self._recording.reported(effect)
        self._owner.happened(effect)

    def _disconnect(self, effect: effects.Disconnect) -> None:
        connection = self._connections.get(effect.connection)
        if connection is not None:
            self._record()
            connection.refuse(effect.why)

    def _connect(self, effect: effects.Connect) -> None:
        task = self.loop.create_task(self._dial(effect.address))
        self._dialling.add(task)
        task.add_done_callback(self._dialling.discard)

    async def _dial(self, address: str) -> None:
        connection = self._connection(address)
        try:
            async with asyncio.timeout(self.settings.network.handshake_s):
                await self._transport.connect(connection, 0, read_address(address))
        except (OSError, QuireError) as error:
            connection.over = True
            self._not_connected(address, why_not(error), refused=isinstance(error, ConnectionRefusedError))

    def _not_connected(self, address: str, why: str, *, refused: bool) -> None:
        self.turned_down = f"{address}: {why}"
        if not self._stopped:
            self.do(self.process.not_connected(self._now(), address, refused=refused))

    # Time.

    def _arm(self) -> None:
        """Have `time` called when the process is due. A timer that goes off too early is only then set again."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = self.process.due
        self._timer = self.loop.call_at(self._timer_at, self._time)

    def _time(self) -> None:
        self._timer = None
        now = self._now()
        if now >= self.process.due:
            self.do(self.process.time(now))
        else:
            self._arm()

    # Connections.

    def _connection(self, dialled: str | None) -> NamedConnection:
        return NamedConnection(self, self.settings.network, next(self._numbers), dialled)

    def introduction(self) -> Introduction:
        return self.process.introduction()

    def introduced(self, connection: NamedConnection, theirs: Introduction) -> None:
        self._acceptor.left(connection)
        if self._stopped:
            self.mismatch.say(connection)
            return
        self._connections[connection.number] = connection
        if self.paused:
            connection.pause()
        self.do(self.process.connected(self._now(), connection.number, theirs, dialled=connection.dialled))

    def arrived(self, connection: NamedConnection, frames: Iterator[Frame]) -> None:
        self._owner.before_input()
        self._reads += 1
        self._wanted.extend(self.process.received(self._now(), connection.number, frames))
        if len(self._connections) <= _FEW or self._reads >= _READS_MAX:
            self._end_turn()
        elif not self._turn_ends:
            self._turn_ends = True
            self.loop.call_soon(self._end_turn)

    def _end_turn(self) -> None:
        self._turn_ends, self._reads = False, 0
        self.do(self.process.end_turn(self._now(), may_wait=True))
        if self.process.member.waits:
            # By then the application has run, if it waited for nothing but its own message.
            self.loop.call_soon(self._say_the_rest)

    def _say_the_rest(self) -> None:
        self._owner.before_input()
        if self.process.member.waits:
            self.do(self.process.end_turn(self._now()))

    def gave_up(self, connection: NamedConnection, why: str) -> None:
        if not self._stopped:
            self._owner.does_not_fit(connection.name, why, reported=True)

    def ended(self, connection: NamedConnection, why: str) -> None:
        if connection.known:
            if self._connections.pop(connection.number, None) is not None and not self._stopped:
                self.do(self.process.disconnected(self._now(), connection.number))
            return
        self._acceptor.left(connection)
        # The process at the other end may be about to exit.
        if connection.dialled is None or not connection.ended_unexplained:
            self._acceptor.refused(connection, why)
        if connection.dialled is not None:
            self._not_connected(connection.dialled, why, refused=False)

    def pause(self, *, paused: bool) -> None:
        """Stop reading, because the application does not take what was delivered, or read on."""
        if paused != self.paused and not self._stopped:
            self.paused = paused
            for connection in self._connections.values():
                if paused:
                    connection.pause()
                else:
                    connection.resume()
            self.do(self.process.paused(self._now(), paused=paused))

    # What the application asks for.

    def submit(self, messages: Messages) -> None:
        self.do(self.process.submit(self._now(), messages))

    def read(self, token: int) -> None:
        self.do(self.process.read(self._now(), token))

    def checkpointed(self, state: bytes | bytearray) -> None:
        self.do(self.process.checkpointed(self._now(), state))

    def leave(self) -> None:
        self.do(self.process.leave(self._now()))

    def move(self, cluster: str) -> None:
        self.do(self.process.move(self._now(), cluster))

    def has_moved(self) -> bool:
        """Whether this process is not, or not yet, in the cluster that it wants to be in."""
        return self.process.member.core.has_moved()

    def close(self) -> None:
        self.do(self.process.close(self._now()))

    def operations(self) -> Operations:
        return self.process.member.core.operations

    def held_back(self) -> list[Held]:
        """The messages that are held back here."""
        process, now = self.process, self._now()
        found = process.stalls.how_long(now, process.member.membership.waiting_runs())
        return [Held(each.origin, each.first, each.count, each.waits_for, each.because, for_s) for each, for_s in found]

    def is_closing(self) -> bool:
        """Whether the group is closing."""
        return self.process.member.core.closing

    async def linger(self, seconds: float) -> None:
        """Wait, for so long at most, until no other process needs this one, which is no longer a member."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.process.is_needed():
                    await asyncio.sleep(0.01)
