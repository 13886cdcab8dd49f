"""The durable state of a replica: what it must still know after a crash."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from quire.protocols.transactions import records
from quire.protocols.transactions.cells import Cell, Prewrite, TooLate
from quire.protocols.transactions.records import AnyRecord, Piece, Record
from quire.protocols.transactions.timestamps import LATEST_PNO, ZERO, Timestamp
from quire.protocols.transactions.votes import FIRST, Ballot, Decision, Incarnations, Stage, merge

Accept = tuple[Ballot, Decision]
Holds = Callable[[str], bool]
"""Whether this replica holds a key."""


class Durable(msgspec.Struct):
    """The durable state of a replica. Each change is one record, which is written before the replica sends anything that
    depends on it."""

    stage: Stage = Stage.BEGUN
    incarnation: int = 0
    known: Incarnations = {}
    gone: set[int] = set()
    """The replicas that were given up: they must lose their disks before they come back."""
    cells: dict[str, Cell] = {}
    promised: dict[Timestamp, Ballot] = {}
    accepted: dict[Timestamp, Accept] = {}
    ballots: dict[Timestamp, Ballot] = {}
    """The latest ballot of its own for each transaction; used once, even across a crash."""
    decided: dict[Timestamp, Decision] = {}
    prewritten: dict[Timestamp, set[str]] = {}
    """The keys with a prewrite of each transaction."""
    cap: int = 0
    """No transaction with a larger number has read here."""
    floor: Timestamp = ZERO
    """Everything below it counts as read, whatever the cells say."""
    closed: Timestamp = ZERO
    """Below it, no transaction is taken that is not known."""
    horizon: Timestamp = ZERO
    """Below it, every transaction has ended everywhere, and how is forgotten."""
    changes: list[Record] | None = None
    """What was changed and is not handed over to be written yet; None: nobody writes."""

    def take_changes(self) -> list[Record]:
        if not self.changes:
            return []
        changes, self.changes = self.changes, []
        return changes

    def note(self, *changes: Record) -> None:
        """Have this record written."""
        if self.changes is not None:
            self.changes += changes

    def cell(self, key: str) -> Cell:
        return self.cells.setdefault(key, Cell())

    # Changes

    def prewrite(self, t: Timestamp, key: str, prewrite: Prewrite) -> TooLate | None:
        """Accept a write, or say why not."""
        cell = self.cell(key)
        before = cell.prewrites.get(t)
        refusal = cell.prewrite(t, prewrite.version, prewrite.value, self.floor)
        if refusal is None and cell.prewrites[t] is not before:
            self.prewritten.setdefault(t, set()).add(key)
            self.note(records.Prewrote(t, key, prewrite.version, prewrite.value))
        return refusal

    def has_read(self, t: Timestamp, step: int) -> None:
        """The transaction reads here. Read timestamps are kept in memory only; an upper bound for them is on disk."""
        if t.tid > self.cap:
            self.cap = t.tid + step
            self.note(records.Capped(self.cap))

    def promise(self, t: Timestamp, ballot: Ballot) -> None:
        if self.promised.get(t) != ballot:
            self.promised[t] = ballot
            self.note(records.Promises(t, ballot))

    def accept(self, t: Timestamp, ballot: Ballot, decision: Decision) -> None:
        if ballot > FIRST:
            self.promised[t] = ballot
        if self.accepted.get(t) != (ballot, decision):
            self.accepted[t] = ballot, decision
            self.note(records.Accepts(t, ballot, decision))

    def use_ballot(self, t: Timestamp, ballot: Ballot) -> None:
        self.ballots[t] = ballot
        self.note(records.Tries(t, ballot))

    def decide(self, t: Timestamp, decision: Decision, holds: Holds) -> list[str]:
        """Install what a transaction wrote, or remove it. Returns the keys that it touched here."""
        self.decided[t] = decision
        self.promised.pop(t, None)
        self.accepted.pop(t, None)
        self.ballots.pop(t, None)
        touched = sorted(self.prewritten.pop(t, ()))
        for key in touched:
            del self.cells[key].prewrites[t]
        for key, (version, value) in decision.writes.items():
            if holds(key):
                self.cell(key).install(version, value)
                touched += [] if key in touched else [key]
        self.note(records.Decided(t, decision))
        return touched

    def know(self, replica: int, incarnation: int) -> None:
        """Another replica lost its disk: the votes of its earlier incarnations do not count any more, and if it was given
        up, it is back."""
        if incarnation > self.known.get(replica, 0):
            self.known[replica] = incarnation
            self.gone.discard(replica)
            self.note(records.Known(replica, incarnation))

    def give_up(self, replica: int) -> None:
        self.gone.add(replica)
        self.note(records.GivenUp(replica))

    def close(self, closed: Timestamp) -> None:
        if closed > self.closed:
            self.closed = closed
            self.note(records.Closed(closed))

    def forget(self, horizon: Timestamp) -> None:
        """All transactions below this have ended everywhere."""
        if horizon > self.horizon:
            self.horizon = horizon
            self.decided = {t: decision for t, decision in self.decided.items() if t >= horizon}
            self.note(records.Forgot(horizon))

    # Questions

    def is_closed_to(self, t: Timestamp) -> bool:
        """Whether the transaction comes too late to be voted on: nothing of it was here when everything that old was closed."""
        return t < self.closed and not (t in self.prewritten or t in self.promised or t in self.accepted)

    def undecided(self) -> list[Timestamp]:
        """The transactions of which this replica holds something."""
        return sorted(self.prewritten.keys() | self.promised.keys() | self.accepted.keys())

    def without_read_timestamps(self) -> Durable:
        """What a restart leaves of the state when read timestamps were kept in memory only: everything up to the bound
        counts as read."""
        cells = {key: Cell(cell.wts, cell.value, ZERO, dict(cell.prewrites)) for key, cell in self.cells.items()}
        return msgspec.structs.replace(self, cells=cells, floor=max(self.floor, Timestamp(self.cap, LATEST_PNO)))

    # From the disk

    def apply(self, record: AnyRecord, holds: Holds) -> None:
        """Repeat a change that was written. A state that already includes it stays the same, provided that all later changes
        are repeated too."""
        match record:
            case records.Founds(incarnation=incarnation):
                self.stage, self.incarnation = Stage.FOUNDING, incarnation
            case records.Began(incarnation=incarnation):
                self.stage, self.incarnation = Stage.BEGUN, incarnation
            case records.Known(replica=replica, incarnation=incarnation):
                self.know(replica, incarnation)
            case records.GivenUp(replica=replica):
                self.give_up(replica)
            case records.Prewrote(t=t, key=key, version=version, value=value):
                self._hold(t, key, Prewrite(version, value))
            case records.Capped(cap=cap):
                self.cap = max(self.cap, cap)
            case records.Promises(t=t, ballot=ballot):
                self.promise(t, ballot)
            case records.Accepts(t=t, ballot=ballot, decision=decision):
                self.accept(t, ballot, decision)
            case records.Tries(t=t, ballot=ballot):
                self.use_ballot(t, ballot)
            case records.Decided(t=t, decision=decision):
                self.decide(t, decision, holds)
            case records.Closed(closed=closed):
                self.close(closed)
            case records.Forgot(horizon=horizon):
                self.forget(horizon)
            case records.Piece():
                self.add(record, holds)

    def add(self, piece: Piece, holds: Holds) -> None:
        """Add what a piece of another state has beyond this one: of everything, the latest."""
        for key, cell in piece.cells.items():
            if not holds(key):
                continue
            mine = self.cell(key)
            mine.install(cell.wts, cell.value)
            mine.rts = max(mine.rts, cell.rts)
            for t, prewrite in cell.prewrites.items():
                self._hold(t, key, prewrite)
        for t, ballot in piece.promised:
            self.promised[t] = max(ballot, self.promised.get(t, ballot))
        for t, ballot, decision in piece.accepted:
            if t not in self.accepted or ballot > self.accepted[t][0]:
                self.accepted[t] = ballot, decision
        for t, ballot in piece.ballots:
            self.ballots[t] = max(ballot, self.ballots.get(t, ballot))
        for t, decision in piece.decided:
            self.decide(t, decision, holds)
        if piece.rest is not None:
            self._add_rest(piece.rest)

    def _add_rest(self, rest: records.Rest) -> None:
        merge(self.known, rest.known)
        self.gone |= set(rest.gone)
        self.cap = max(self.cap, rest.cap)
        self.floor = max(self.floor, rest.floor)
        self.close(rest.closed)
        self.forget(rest.horizon)

    def _hold(self, t: Timestamp, key: str, prewrite: Prewrite) -> None:
        mine = self.cell(key).prewrites
        if t not in mine or prewrite.version > mine[t].version:
            mine[t] = prewrite
            self.prewritten.setdefault(t, set()).add(key)


def restored(written: Iterable[AnyRecord], holds: Holds) -> Durable | None:
    """The state that these records give; None if nothing was begun, or not completely. Read timestamps were kept in memory
    only."""
    state = Durable(stage=Stage.BLANK)
    for record in written:
        if isinstance(record, records.Emptied):
            state = Durable(stage=Stage.BLANK)
        else:
            state.apply(record, holds)
    return None if state.stage is Stage.BLANK else state.without_read_timestamps()
