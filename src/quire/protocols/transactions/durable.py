"""What a replica must still know after a crash, and how it is put together again after its disk was lost."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

import msgspec

from quire.protocols.transactions.cells import Cell, Prewrite, TooLate
from quire.protocols.transactions.quorum_packets import Snapshot
from quire.protocols.transactions.timestamps import LATEST_PNO, ZERO, Timestamp
from quire.protocols.transactions.votes import Ballot, Decision, Incarnations, majority, merge

Accept = tuple[Ballot, Decision]


class Durable(msgspec.Struct):
    """Written before anything that depends on it leaves the replica."""

    incarnation: int = 0
    known: Incarnations = {}
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

    def cell(self, key: str) -> Cell:
        return self.cells.setdefault(key, Cell())

    def prewrite(self, t: Timestamp, key: str, prewrite: Prewrite) -> TooLate | None:
        """Take a write, or say why not."""
        refusal = self.cell(key).prewrite(t, prewrite.version, prewrite.value, self.floor)
        if refusal is None:
            self.prewritten.setdefault(t, set()).add(key)
        return refusal

    def is_closed_to(self, t: Timestamp) -> bool:
        """Whether it comes too late to take part in it: nothing of it was here when everything so old was closed."""
        return t < self.closed and not (t in self.prewritten or t in self.promised or t in self.accepted)

    def forget(self, horizon: Timestamp) -> None:
        """Every transaction below has ended everywhere."""
        if horizon > self.horizon:
            self.horizon = horizon
            self.decided = {t: decision for t, decision in self.decided.items() if t >= horizon}

    def undecided(self) -> list[Timestamp]:
        """The transactions of which something is held here."""
        return sorted(self.prewritten.keys() | self.promised.keys() | self.accepted.keys())

    def without_read_timestamps(self) -> Durable:
        """What is left of it where read timestamps were kept in memory alone: all up to the cap counts as read."""
        cells = {key: Cell(cell.wts, cell.value, ZERO, dict(cell.prewrites)) for key, cell in self.cells.items()}
        return msgspec.structs.replace(self, cells=cells, floor=max(self.floor, Timestamp(self.cap, LATEST_PNO)))

    def snapshot(self, asker: int) -> Snapshot:
        return Snapshot(
            self.incarnation,
            dict(self.known),
            asker,
            self.floor,
            self.horizon,
            {key: Cell(cell.wts, cell.value, cell.rts, dict(cell.prewrites)) for key, cell in self.cells.items()},
            list(self.promised.items()),
            [(t, *accepted) for t, accepted in self.accepted.items()],
            list(self.decided.items()),
        )

    def decide(self, t: Timestamp, decision: Decision, holds: Callable[[str], bool]) -> list[str]:
        """Install what a transaction wrote, or remove it; returns the keys that it touched here."""
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
        return touched


def enough(senders: Collection[int], me: int, groups: Iterable[tuple[int, ...]]) -> bool:
    """Whether these states hold every vote that this replica can have given: in each group that it belongs to, so many
    of the others that they meet every majority with it."""
    for group in groups:
        others = sum(replica in senders for replica in group if replica != me)
        if me in group and others < len(group) - majority(len(group)) + 1:
            return False
    return True


def union(incarnation: int, me: int, snapshots: Collection[Snapshot], holds: Callable[[str], bool]) -> Durable:
    """The state of a replica that lost its own. Prewrites among it hold up readers, but are not votes of this replica."""
    state = Durable(incarnation=incarnation, known={me: incarnation})
    for snapshot in snapshots:
        merge(state.known, snapshot.known)
        state.floor = max(state.floor, snapshot.floor)
        for key, cell in snapshot.cells.items():
            if not holds(key):
                continue
            mine = state.cell(key)
            mine.install(cell.wts, cell.value)
            mine.rts = max(mine.rts, cell.rts)
            for t, prewrite in cell.prewrites.items():
                if t not in mine.prewrites or prewrite.version > mine.prewrites[t].version:
                    mine.prewrites[t] = prewrite
                    state.prewritten.setdefault(t, set()).add(key)
        for t, ballot in snapshot.promised:
            state.promised[t] = max(ballot, state.promised.get(t, ballot))
        for t, ballot, decision in snapshot.accepted:
            if t not in state.accepted or ballot > state.accepted[t][0]:
                state.accepted[t] = ballot, decision
    for snapshot in snapshots:
        for t, decision in snapshot.decided:
            state.decide(t, decision, holds)
    state.forget(max(snapshot.horizon for snapshot in snapshots))
    state.closed = state.horizon
    # A ballot of an earlier incarnation is never used again: the incarnation is part of it.
    state.cap = max((cell.rts.tid for cell in state.cells.values()), default=0)
    return state
