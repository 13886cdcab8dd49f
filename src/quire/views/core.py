"""The state that all parts of a member share: its identity, mode and progress, its journal, and the effects it returns."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from typing import Literal

import msgspec

from quire.model.errors import BadInput
from quire.protocols.hierarchy.protocol import HierarchyOptions
from quire.views.effects import Deliver, Effect, ReadReady, Save, Send, Settled, Sync
from quire.views.history import DeliveryHistory
from quire.views.operations import Operations
from quire.views.packets import Entry, GroupPacket
from quire.views.records import Record, Started
from quire.views.view import Participant, Position, Tie, View

IN_VIEWS = ("single-phase", "causal-vector", "fifo", "hierarchy")
"""The protocols whose groups can change their membership."""
FIXED_UNLESS_ASKED = ("hierarchy",)
"""Those of them whose groups stay fixed unless a setting asks for something that only changing groups have."""


Mode = Literal["normal", "frozen", "joining", "left", "closed"]
"""normal: messages are ordered and delivered. frozen: a view change is under way. joining: no member, or no longer one, and
asking to join. left: no member, by its own wish; it only tells others how its last view ended. closed: the group has ended."""


class GroupSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that are the same at all members of a group."""

    founders: tuple[Participant, ...]
    protocol: str
    options: Mapping[str, object] = {}
    uniform: bool = True
    """Uniform delivery: whether a message is delivered anywhere only once every later view is sure to have it."""
    journal: bool = False
    tie: Tie = "senior"
    causal: bool = True
    total: bool = True
    outstanding: int = 1 << 16
    outstanding_bytes: int = 1 << 26
    """The send window: how many messages, and bytes, a member may have sent that not every member has delivered."""
    run_max: int = 1 << 13
    run_bytes: int = 1 << 20
    """How many messages, and bytes, are sent together at most."""
    history: int = 1 << 20
    history_bytes: int = 1 << 24
    """How many delivered messages, and bytes, are kept for processes that catch up."""
    history_bytes_wanted: int = 1 << 28
    """How many bytes are kept while a process is catching up."""
    near: int = 1 << 16
    """How many messages a process that catches up may be behind when it asks to join."""
    part_bytes: int = 1 << 20
    """The size of the parts in which a state is transferred."""
    found_together: bool = False
    """Whether the first view needs all founders: it does where no founder can know that it was not started before."""
    founding_patience: int = 10
    """How often the timer runs before a quorum of the founders begins without the others."""
    promise_patience: int = 14
    """How often the timer runs before a majority that has promised goes on without a member that is not suspected. During a
    view change the timer runs often, so this takes about as long as it takes to suspect a silent process."""
    patience: int = 3
    """How often it runs after that before a failed ballot is given up, and how much later each next member begins one."""


def check_may_change(options: msgspec.Struct) -> None:
    """Raise BadInput where these options of a protocol are for a group whose members are known beforehand."""
    if isinstance(options, HierarchyOptions) and options.description:
        raise BadInput("a description numbers the sites of a fixed group; where members change, each names its cluster instead")


class Core:
    def __init__(self, settings: GroupSettings, me: Participant, session: str, view: View) -> None:
        self.settings = settings
        self.me = me
        self.session = session
        self.enter(view)
        self.mode: Mode = "joining"
        self.names: set[str] = {founder.name for founder in settings.founders}
        """All processes that were ever heard of."""
        self.heard: dict[str, int] = {}
        """The latest incarnation of each name from which a packet came."""
        self.suspects: set[str] = set()
        self.linked: set[str] | None = None
        """The processes with which there are connections; None where there are always connections with all."""
        self.table: dict[str, int] = {}
        """For each session, the number of its last operation that was executed. It is part of the replicated state."""
        self.operations = Operations(session)
        self.position = Position(view.epoch, (0,) * len(view.members))
        self.begin_history(self.position)
        self.closing = self.leaving = False
        self.out: list[Effect] = []
        self._saved = self._synced = 0
        self._wanted = self._asked = 0
        """The number of the last record that something waits for, and of the last one for which a sync was asked."""
        self._waiting: deque[tuple[int, Send]] = deque()

    def enter(self, view: View) -> None:
        self.view = view
        """The view that this process is in, or the last one that it was in."""
        self.ranks = {(member.name, member.incarnation): rank for rank, member in enumerate(view.members)}
        """The ranks of its members, by name and incarnation."""

    # The journal.

    def save(self, record: Record) -> int:
        """Write a record, if there is a journal, and have it synced at the end of the input. Returns its number."""
        self._wanted = self.note(record)
        return self._wanted

    def note(self, record: Record) -> int:
        """Write a record for which nothing waits: it becomes durable with the next one that is synced."""
        if not self.settings.journal:
            return 0
        self._saved += 1
        self.out.append(Save(self._saved, record))
        return self._saved

    def want_sync(self) -> None:
        """Something waits for everything that was written so far."""
        self._wanted = self._saved

    def ask_for_sync(self) -> None:
        """Ask for a sync, if something waits for a record for which none was asked yet."""
        if self._wanted > self._asked:
            self._asked = self._saved
            self.out.append(Sync(self._saved))

    def written(self) -> int:
        """How many records were written so far."""
        return self._saved

    def is_durable(self, number: int) -> bool:
        return number <= self._synced

    def continue_after(self, records: int) -> None:
        """The journal has so many records, all of them durable."""
        self._saved = self._synced = self._wanted = self._asked = records

    def synced(self, number: int) -> None:
        self._synced = max(self._synced, number)
        while self._waiting and self._waiting[0][0] <= self._synced:
            self.out.append(self._waiting.popleft()[1])

    def take_effects(self) -> list[Effect]:
        """Take out and return the effects since the last call."""
        effects, self.out = self.out, []
        return effects

    # Packets.

    def send(self, packet: GroupPacket, to: Collection[str], incarnation: int | None = None) -> None:
        names = tuple(sorted(set(to) - {self.me.name}))
        if names:
            self.out.append(Send(packet, names, () if incarnation is None else (incarnation,) * len(names)))

    def send_when_durable(self, packet: GroupPacket, to: Collection[str]) -> None:
        """Send a packet when everything that was written so far is durable."""
        names = tuple(sorted(set(to) - {self.me.name}))
        if self._synced >= self._saved:
            self.send(packet, names)
        elif names:
            self.want_sync()
            self._waiting.append((self._saved, Send(packet, names)))

    # Who is who.

    def is_here(self, name: str, incarnation: int) -> bool:
        """Whether this incarnation of a process is a member of the view."""
        return (name, incarnation) in self.ranks

    def is_myself_in_view(self) -> bool:
        return self.is_here(self.me.name, self.me.incarnation)

    def trusted(self) -> set[str]:
        """The members that this process does not suspect, itself included."""
        return {name for name in self.view.names() if name not in self.suspects or name == self.me.name}

    def why_no_quorum(self) -> str:
        """Why the trusted members are no quorum; empty where they are one."""
        trusted = self.trusted()
        if self.mode not in ("normal", "frozen") or self.view.is_quorum(trusted, self.settings.tie):
            return ""
        names = ", ".join(self.view.names())
        return f"only {', '.join(sorted(trusted))} of {names} can be reached, which is not a majority"

    def awaited(self) -> set[str]:
        """The members that can be expected to promise. Without a journal, a process that has restarted cannot."""
        gone = (
            set()
            if self.settings.journal
            else {member.name for member in self.view.members if self.heard.get(member.name, 0) > member.incarnation}
        )
        return self.trusted() - gone | {self.me.name}

    def can_reach(self, names: Collection[str]) -> bool:
        """Whether this process has a connection with all of these."""
        return self.linked is None or self.linked.issuperset(name for name in names if name != self.me.name)

    # What is delivered.

    @property
    def position(self) -> Position:
        """How far this process has delivered."""
        return Position(self._epoch, tuple(self._delivered))

    @position.setter
    def position(self, position: Position) -> None:
        self._epoch, self._delivered = position.epoch, list(position.delivered)
        self._index = sum(self._delivered)

    def deliver(self, entry: Entry) -> None:
        run, rank, session = entry.run, entry.rank, entry.session
        if entry.epoch != self._epoch:
            self.position = Position(entry.epoch, (0,) * entry.members)
        index, end = self._index, run.first + run.count
        self._index = index + end - self._delivered[rank]
        self._delivered[rank] = end
        self.table[session] = entry.number + run.count - 1
        self.history.add(entry)
        self.out.append(Deliver(entry, index))
        if session == self.session:
            self.settle()

    def read_is_ready(self, token: int) -> None:
        self.out.append(ReadReady(token))

    def settle(self) -> None:
        """Report which operations of this process are executed, according to the table."""
        number = self.table.get(self.session, 0)
        if self.operations.settle(number):
            self.out.append(Settled(self.session, number))
        if self.settings.uniform:
            self.operations.release(number)

    def started(self, *, founds: bool) -> Started:
        """The identity of this process, as a record for the journal."""
        me = self.me
        return Started(me.incarnation, self.session, me.name, me.weight, founds, me.cluster)

    def has_moved(self) -> bool:
        """Whether this process wants to be in another cluster than the one that the view has it in."""
        rank = self.view.rank(self.me.name)
        return rank is not None and self.view.members[rank].cluster != self.me.cluster

    def cross_boundary(self) -> None:
        """A view has begun: every later view has what was executed before it."""
        self.settle()
        self.operations.release(self.operations.settled)
        self.operations.send_again()

    def begin_history(self, position: Position) -> None:
        """Start the history at this position: nothing is kept of what was delivered before."""
        self.history = DeliveryHistory(position, self.settings.history, self.settings.history_bytes)

    def rewind(self, position: Position, table: dict[str, int]) -> None:
        """The application's state is replaced by that at a position."""
        self.position = position
        self.table = dict(table)
        self.begin_history(position)
        self.operations.rewind(self.table.get(self.session, 0))
        self.settle()
