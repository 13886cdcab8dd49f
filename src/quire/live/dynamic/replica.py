"""The group's state at this member: commands as they are delivered, snapshots for others and for the journal, and reads.

In a group with commands the first byte of a message says what it is: the application's own, a command, or one of the group's
own notes on who calls (`sessions`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Protocol

from quire.live.dynamic.deliveries import DeliveredRun, Then, Waiting
from quire.live.dynamic.disk import MemberJournal
from quire.live.dynamic.events import Restored, View
from quire.live.dynamic.node import Node
from quire.live.dynamic.state import GroupState
from quire.live.dynamic.submitting import untold
from quire.live.errors import GroupClosed, GroupFailed
from quire.live.groups.commands import MESSAGE, Commands, marked
from quire.live.journals import little_by_little
from quire.model.errors import BadInput, CannotWrite, QuireError
from quire.model.messages import NUMBER_MAX, make_run
from quire.model.payloads import Messages
from quire.views.packets import Entry

_GONE, _HERE = b"\x03", b"\x04"
"""The first bytes of the group's own notes: that a session has ended, or that the sender's exists."""


class Owner(Protocol):
    def accept(self, messages: Messages) -> int: ...
    def hand_over(self, waiting: Waiting, messages: int = 1, size: int = 0) -> None: ...
    def failed(self, error: QuireError) -> None: ...
    def unkept(self, error: CannotWrite) -> None:
        """The journal could not be shortened."""


class Replica:
    def __init__(self, state: GroupState, node: Node, owner: Owner) -> None:
        self.state = state
        self._node = node
        self._owner = owner
        self._reads: dict[int, asyncio.Future[None]] = {}
        self._tokens = 0
        self._has_given = False
        """Whether the application was ever given a message, so that it may have changed its state."""
        self._snapshots: set[asyncio.Task[None]] = set()
        self._commands: Commands | None = None
        if state.machine is not None:
            quorum_reads = node.settings.rules.uniform
            self._commands = Commands(
                state.machine,
                node.settings.me,
                self._accept_command,
                _nothing,
                self._failed,
                read_round=self._read_round if quorum_reads else None,
            )

    # Commands.

    def marked(self, messages: Messages) -> Messages:
        """Messages of the application as they are sent."""
        return messages if self._commands is None else marked(messages)

    def apply(self, payload: bytes, name: str) -> asyncio.Future[Any]:
        if self._commands is None:
            raise BadInput("this group has no state with an apply method; pass one to quire.join")
        return self._commands.submit(name, payload, lambda result: result)

    def _accept_command(self, payload: bytes) -> int:
        return self._owner.accept(Messages((payload,), (len(payload),), len(payload)))

    def _failed(self, error: GroupFailed) -> None:
        self._owner.failed(error)

    def take(self, entry: Entry, position: int | None) -> list[DeliveredRun]:
        """Execute the commands in a delivered run; returns the messages that are for the application."""
        self._has_given = True
        if self._commands is None:
            return [DeliveredRun(entry.origin, entry.number - 1, entry.epoch, position, entry.run)]
        found: list[DeliveredRun] = []
        messages: list[bytes] = []
        for index, payload in enumerate((*entry.run.payloads(), None)):
            if payload is not None and payload[:1] == MESSAGE:
                messages.append(payload[1:])
                continue
            if messages:
                start = index - len(messages)
                run = make_run(entry.rank, entry.run.first + start, messages)
                at = None if position is None else position + start
                found.append(DeliveredRun(entry.origin, entry.number - 1 + start, entry.epoch, at, run))
                messages = []
            if payload is not None:
                self._execute(self._commands, entry, entry.number + index, payload)
        return found

    def _execute(self, commands: Commands, entry: Entry, number: int, payload: bytes) -> None:
        machine, sessions = commands.machine, self.state.sessions
        caller, earlier = sessions.caller(entry.session, entry.origin, entry.epoch)
        if earlier is not None:
            machine.member_left(earlier)
        if payload[:1] == _GONE:
            gone = sessions.gone(payload[1:])
            if gone is not None:
                machine.member_left(gone)
        elif payload[:1] != _HERE:
            commands.execute(caller, number, payload, own=entry.session == self._node.session)

    def installed(self, view: View, *, joined: bool) -> None:
        """Send, as commands, which sessions have ended and which are new, so that it takes effect at one point of the order."""
        if self._commands is None:
            return
        # A member that is leaving sends nothing more; the next senior checks which sessions have ended.
        with suppress(GroupClosed):
            if joined:
                self._accept_command(_HERE)
            if view.senior == self._node.settings.me:
                for gone in self.state.sessions.absent_from(view):
                    self._accept_command(_GONE + gone)

    def settled(self, number: int) -> None:
        """Operations up to this number are executed; results that are not known here by now never will be."""
        if self._commands is not None:
            self._commands.will_not_be_told(number, untold())

    def end(self, unknown: QuireError, why: QuireError) -> None:
        """The group has ended here, because of `why`: futures that wait get `unknown`."""
        for task in self._snapshots:
            task.cancel()
        for read in self._reads.values():
            if not read.done():
                read.set_exception(why)
        self._reads.clear()
        if self._commands is not None:
            self._commands.will_not_be_told(NUMBER_MAX, unknown)
            self._commands.end(why)

    # Reads.

    async def _read_round(self) -> None:
        self._tokens += 1
        token = self._tokens
        read = self._reads[token] = self._node.loop.create_future()
        try:
            self._node.read(token)
            await read
        finally:
            self._reads.pop(token, None)

    def read_ready(self, token: int) -> None:
        read = self._reads.get(token)
        if read is not None and not read.done():
            read.set_result(None)

    def read_failed(self, token: int) -> None:
        """This process is no member at present; the read is retried when it is one again."""
        if token in self._reads:
            self._node.loop.call_soon(self._node.read, token)

    # Snapshots.

    def hand_snapshot_to_others(self) -> None:
        """A process that joins asks for the present state."""
        self._when_read_so_far(lambda: self._start(self._give()))

    async def _give(self) -> None:
        # Built part by part: joining all of a large state at once would block the event loop.
        whole = bytearray()
        async for part in little_by_little(self.state.snapshot()):
            whole += part
        self._node.checkpointed(whole)

    def restore(self, snapshot: bytes, event: Restored) -> None:
        """Replace the state by this one."""
        self._when_read_so_far(lambda: self._restore(snapshot), event)

    def _restore(self, snapshot: bytes) -> None:
        try:
            self.state.restore(snapshot)
        except QuireError as error:
            self._owner.failed(error)

    def look_after_journal(self, journal: MemberJournal) -> None:
        """Shorten the journal when it has grown."""
        if not journal.is_long() or (kept := self._node.process.member.to_keep()) is None:
            return
        snapshot: asyncio.Future[Iterator[bytes]] = self._node.loop.create_future()
        task = journal.checkpoint(kept, snapshot)
        task.add_done_callback(self._kept)
        self._when_read_so_far(lambda: snapshot.set_result(self.state.snapshot()))

    def _kept(self, task: asyncio.Task[None]) -> None:
        """A checkpoint has ended. If the disk had no room for it, the group goes on: there may be room for records, and if not,
        writing them fails."""
        if not task.cancelled() and isinstance(error := task.exception(), CannotWrite):
            self._owner.unkept(error)

    def _when_read_so_far(self, action: Callable[[], object], event: Restored | None = None) -> None:
        """Run an action on the state as of now: at once or, where the application changes the state as it reads, when it has
        read everything up to now. Before the first message it is run at once, so that nobody waits for the application."""

        def act() -> None:
            action()

        if self.state.by_reader and self._has_given:
            self._owner.hand_over(Then(act, event))
            return
        act()
        if event is not None:
            self._owner.hand_over(event)

    def _start(self, work: Any) -> None:
        task = self._node.loop.create_task(work)
        self._snapshots.add(task)
        task.add_done_callback(self._snapshots.discard)


def _nothing() -> None:
    """Does nothing: what was accepted is sent soon anyway."""
