"""What all parts of a member share: who it is, what it has done, and what it asks to be done."""

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
"""The protocols whose groups can change."""
FIXED_UNLESS_ASKED = ("hierarchy",)
"""Those of them whose groups are fixed where nothing is asked for that only a group that changes has."""


Mode = Literal["normal", "frozen", "joining", "left", "closed"]
"""normal: messages are ordered and delivered. frozen: the next view is being agreed upon. joining: no member (any more).
left: no member, as it wished; it only tells others how its last view ended. closed: the group has ended."""


class GroupSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What is the same at all members of a group."""

    founders: tuple[Participant, ...]
    protocol: str
    options: Mapping[str, object] = {}
    uniform: bool = True
    """Whether nothing is delivered anywhere that a later view could be without."""
    journal: bool = False
    tie: Tie = "senior"
    causal: bool = True
    total: bool = True
    outstanding: int = 1 << 16
    outstanding_bytes: int = 1 << 26
    """How many of its messages, and bytes, a member may have sent that not everybody has delivered."""
    run_max: int = 1 << 13
    run_bytes: int = 1 << 20
    """How many messages, and bytes, leave together at most."""
    history: int = 1 << 20
    history_bytes: int = 1 << 24
    """How many delivered messages, and bytes, are kept for those who catch up."""
    history_bytes_wanted: int = 1 << 28
    """How many bytes, while somebody does so."""
    near: int = 1 << 16
    """How many messages somebody who catches up may be behind when it asks to be a member."""
    part_bytes: int = 1 << 20
    """How large the parts are in which a state is handed on."""
    found_together: bool = False
    """Whether the first view needs all founders: where none of them can know that it was not started before."""
    founding_patience: int = 10
    """How often the timer runs before a quorum of the founders begins without the others."""
    promise_patience: int = 14
    """How often the timer runs before a majority that has promised goes on without somebody whom nobody suspects. In haste the
    timer runs often, so that this takes about as long as it takes to suspect somebody who is silent."""
    patience: int = 3
    """How often it runs after that before a ballot that came to nothing is tried again, and others join in."""


def check_may_change(options: msgspec.Struct) -> None:
    """Raise BadInput where a protocol has these options, so that it is for a group whose members are known beforehand."""
    if isinstance(options, HierarchyOptions) and options.description:
        raise BadInput("a description numbers the sites of a fixed group; where members change, each names its cluster instead")


class Core:
    def __init__(self, settings: GroupSettings, me: Participant, session: str, view: View) -> None:
        self.settings = settings
        self.me = me
        self.session = session
        self.view = view
        """The view that this process is in, or was in last."""
        self._indexed: View | None = None
        self._ranks: dict[tuple[str, int], int] = {}
        """Of the members of the view, by their names and incarnations."""
        self.mode: Mode = "joining"
        self.names: set[str] = {founder.name for founder in settings.founders}
        """Everybody who was ever heard of."""
        self.heard: dict[str, int] = {}
        """The latest incarnation of each name from which something came."""
        self.suspects: set[str] = set()
        self.linked: set[str] | None = None
        """With whom there are connections; None where there is always one."""
        self.table: dict[str, int] = {}
        """Of each session, the number of its last operation that was executed: part of the state that all share."""
        self.operations = Operations(session)
        self.begin_history(Position(view.epoch, (0,) * len(view.members)))
        self.position = Position(view.epoch, (0,) * len(view.members))
        """How far this process has come."""
        self.closing = self.leaving = False
        self.out: list[Effect] = []
        self._saved = self._synced = 0
        self._wanted = self._asked = 0
        """The last records that something waits for, and for which a sync was asked."""
        self._waiting: deque[tuple[int, Send]] = deque()

    # The journal.

    def save(self, record: Record) -> int:
        """Write a record, if there is a journal, and have it synced. Returns its number."""
        self._wanted = self.note(record)
        return self._wanted

    def note(self, record: Record) -> int:
        """Write a record for which nothing waits: it becomes durable with the next for which something does."""
        if not self.settings.journal:
            return 0
        self._saved += 1
        self.out.append(Save(self._saved, record))
        return self._saved

    def want_sync(self) -> None:
        """Something waits for everything that was written so far."""
        self._wanted = self._saved

    def ask_for_sync(self) -> None:
        """Ask for what is wanted and was not asked for yet."""
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
        """Everything that was asked for since the last time."""
        effects, self.out = self.out, []
        return effects

    # Packets.

    def send(self, packet: GroupPacket, to: Collection[str], incarnation: int | None = None) -> None:
        names = tuple(sorted(set(to) - {self.me.name}))
        if names:
            self.out.append(Send(packet, names, incarnation))

    def send_when_durable(self, packet: GroupPacket, to: Collection[str]) -> None:
        """Send a packet when everything that was written so far is durable."""
        names = tuple(sorted(set(to) - {self.me.name}))
        if self._synced >= self._saved:
            self.send(packet, names)
        elif names:
            self.want_sync()
            self._waiting.append((self._saved, Send(packet, names)))

    # Who is who.

    def rank_of(self, name: str, incarnation: int) -> int | None:
        """The position of this very process in the view; None where it is not in it."""
        if self._indexed is not self.view:
            self._indexed = self.view
            self._ranks = {(member.name, member.incarnation): rank for rank, member in enumerate(self.view.members)}
        return self._ranks.get((name, incarnation))

    def is_here(self, name: str, incarnation: int) -> bool:
        """Whether this very process is a member of the view."""
        return self.rank_of(name, incarnation) is not None

    def is_myself_in_view(self) -> bool:
        return self.is_here(self.me.name, self.me.incarnation)

    def trusted(self) -> set[str]:
        """The members that nobody here suspects."""
        return {name for name in self.view.names() if name not in self.suspects or name == self.me.name}

    def why_no_quorum(self) -> str:
        """Why those who are trusted may not decide for all; empty where they may."""
        trusted = self.trusted()
        if self.mode not in ("normal", "frozen") or self.view.is_quorum(trusted, self.settings.tie):
            return ""
        names = ", ".join(self.view.names())
        return f"only {', '.join(sorted(trusted))} of {names} can be reached, which is not a majority"

    def awaited(self) -> set[str]:
        """The members who can be expected to promise. Without a journal, a process that was started again cannot."""
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

    def deliver(self, entry: Entry) -> None:
        before = self.position.delivered if entry.epoch == self.position.epoch else (0,) * entry.members
        index = sum(before)
        self.position = Position(entry.epoch, (*before[: entry.rank], entry.run.end, *before[entry.rank + 1 :]))
        self.table[entry.session] = entry.number + entry.run.count - 1
        self.history.add(entry)
        self.out.append(Deliver(entry, index))
        if entry.session == self.session:
            self.settle()

    def read_is_ready(self, token: int) -> None:
        self.out.append(ReadReady(token))

    def settle(self) -> None:
        """Tell of the operations of this process that the table knows to be executed."""
        number = self.table.get(self.session, 0)
        if self.operations.settle(number):
            self.out.append(Settled(self.session, number))
        if self.settings.uniform:
            self.operations.release(number)

    def started(self, *, founds: bool) -> Started:
        """Who this process is, for the journal."""
        me = self.me
        return Started(me.incarnation, self.session, me.name, me.weight, founds, me.cluster)

    def has_moved(self) -> bool:
        """Whether the view has this process in another cluster than it wants to be in."""
        rank = self.view.rank(self.me.name)
        return rank is not None and self.view.members[rank].cluster != self.me.cluster

    def cross_boundary(self) -> None:
        """A view has begun: whatever was executed before it is in every later one."""
        self.settle()
        self.operations.release(self.operations.settled)
        self.operations.send_again()

    def begin_history(self, position: Position) -> None:
        """Nothing is kept of what was delivered before this position."""
        self.history = DeliveryHistory(position, self.settings.history, self.settings.history_bytes)

    def rewind(self, position: Position, table: dict[str, int]) -> None:
        """The application's state is replaced by that at a position."""
        self.position = position
        self.table = dict(table)
        self.begin_history(position)
        self.operations.rewind(self.table.get(self.session, 0))
        self.settle()
