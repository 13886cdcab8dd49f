"""Recovery of a replica without a state: it gets one from the others or, in a new store, begins with an empty one.

From the others it gets whatever would make it refuse a vote. A replica that lost its disk comes back under an incarnation that
no earlier life had, and announces nothing but that until it knows enough. The others answer with their states, piece by piece,
and from the first piece on tell all replicas its incarnation, so that its old votes no longer count beside new ones of theirs.
It knows enough when, in each group that it belongs to, so many of the others have answered that they intersect every majority
that includes it.

A new store looks the same to each of its replicas: none has anything. So they found it in two steps. A replica that hears from
all others that they have nothing records that it founds the store; one that hears from all others that they found it begins,
and one that founds it and hears of another that has begun begins too. So none votes before all have recorded that they had not
voted yet, and a replica that has not even recorded that, while another has begun, has lost its disk.

Without a journal a store cannot be founded like that, because a restarted replica looks like a new one. So the driver of a
replica has to know that it is new, and tells it to begin at once; one that is not gets its state from the others, or waits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from quire.protocols.node import Send
from quire.protocols.transactions import records
from quire.protocols.transactions.durable import Durable, Holds
from quire.protocols.transactions.pieces import START, PieceReader, Place
from quire.protocols.transactions.quorum_packets import Recover, Snapshot
from quire.protocols.transactions.records import Piece
from quire.protocols.transactions.votes import Incarnations, Stage, Stance, majority, valid


class _Sender:
    """What has arrived from one of the other replicas."""

    def __init__(self) -> None:
        self.stage: Stage | None = None
        """How far it has come; None: it has not answered."""
        self.place: Place | None = START
        """Which piece comes next; None: all are here."""
        self.stance = Stance(0, {})
        self.pieces: list[Piece] = []


class Informant:
    """Sends this replica's state to those that lost their disks: each gets one reading of it per process."""

    def __init__(self) -> None:
        self._readings: dict[int, PieceReader] = {}

    def answer(self, state: Durable, asker: int, asks: Recover) -> Snapshot:
        if asks.place == START or asker not in self._readings:
            self._readings[asker] = PieceReader(state)
        piece, following = self._readings[asker].read(asks.place)
        if following is None:
            del self._readings[asker]
        return Snapshot(state.incarnation, dict(state.known), asks.incarnation, asks.place, piece, following, state.stage)


class Recovery:
    """The recovery of one replica. It reads the replica's `state` to see how far it has got."""

    def __init__(self, me: int, state: Durable, others: tuple[int, ...], groups: Collection[tuple[int, ...]]) -> None:
        self._me = me
        self._state = state
        self._groups = groups
        self._senders = {other: _Sender() for other in others}

    def asks(self) -> list[Send]:
        """Ask all replicas for what has not arrived, and ask those that had not begun whether that has changed."""
        return [self._ask(each) for each, sender in self._senders.items() if sender.place is not None]

    def _ask(self, whom: int) -> Send:
        place = self._senders[whom].place
        return Send(Recover(self._state.incarnation, self._state.stage, START if place is None else place), (whom,))

    def hear(self, source: int, asks: Recover) -> list[Send]:
        """Another replica asks. If it has got further, it may know what is missing here."""
        known = self._senders[source].stage
        return [self._ask(source)] if known is not None and asks.stage > known else []

    def take(self, source: int, snapshot: Snapshot) -> list[Send]:
        """A piece has arrived; returns what to ask for next."""
        state, sender = self._state, self._senders.get(source)
        if sender is None or snapshot.asker != state.incarnation:
            return []
        if state.stage is Stage.BLANK and (latest := snapshot.known.get(self._me, 0)) > state.incarnation:
            state.incarnation = latest + 1
            self._senders = {other: _Sender() for other in self._senders}
            return self.asks()
        if sender.pieces and snapshot.incarnation != sender.stance.incarnation:
            # It has lost its disk meanwhile: what it said before may be forgotten there.
            sender = self._senders[source] = _Sender()
        if snapshot.stage is not Stage.BEGUN:
            sender.stage = snapshot.stage
            return []
        if snapshot.place != sender.place:
            return []
        sender.stage, sender.stance = snapshot.stage, Stance(snapshot.incarnation, snapshot.known)
        sender.pieces.append(snapshot.piece)
        sender.place = snapshot.following
        return [] if sender.place is None else [self._ask(source)]

    def advance(self, holds: Holds, *, kept: bool) -> Durable:
        """Go as far as possible; returns the state with which to continue. `kept`: whether its changes are written."""
        state = self._state
        if kept and self._founds():
            state.stage = Stage.FOUNDING
            known = (records.Known(*each) for each in state.known.items())
            state.changes = [records.Emptied(), records.Founds(state.incarnation), *known]
        if self._begins():
            state.stage = Stage.BEGUN
            state.note(records.Began(state.incarnation))
            return state
        learnt = self._result(holds)
        if learnt is None:
            return state
        learnt.changes = [records.Emptied(), *PieceReader(learnt), records.Began(learnt.incarnation)] if kept else None
        return learnt

    def _founds(self) -> bool:
        """Whether the store is new: neither this replica nor any other has a state."""
        stages = [sender.stage for sender in self._senders.values()]
        return self._state.stage is Stage.BLANK and all(stage in (Stage.BLANK, Stage.FOUNDING) for stage in stages)

    def _begins(self) -> bool:
        """Whether the store is founded, and this replica, as one of its founders, may begin with an empty state."""
        stages = [sender.stage for sender in self._senders.values()]
        founded = Stage.BEGUN in stages or all(stage is Stage.FOUNDING for stage in stages)
        return self._state.stage is Stage.FOUNDING and founded

    def _result(self, holds: Holds) -> Durable | None:
        """The state with which to continue after a disk was lost; None if too little is known yet."""
        told = {each: sender for each, sender in self._senders.items() if sender.place is None}
        counted = valid({each: sender.stance for each, sender in told.items()}, {})
        if self._state.stage is not Stage.BLANK or not enough(counted, self._me, self._groups):
            return None
        states = [sender.pieces for each, sender in told.items() if each in counted]
        return union(self._state.incarnation, self._me, self._state.known, states, holds)


def enough(senders: Collection[int], me: int, groups: Iterable[tuple[int, ...]]) -> bool:
    """Whether these states include every vote that this replica can have given: in each of its groups, enough others to
    intersect every majority with it."""
    for group in groups:
        others = sum(replica in senders for replica in group if replica != me)
        if me in group and others < len(group) - majority(len(group)) + 1:
            return False
    return True


def union(incarnation: int, me: int, known: Incarnations, states: Iterable[Iterable[Piece]], holds: Holds) -> Durable:
    """The state of a replica that lost its own. Prewrites in it delay readers, but are not votes of this replica."""
    state = Durable(incarnation=incarnation, known=dict(known))
    read = [piece for pieces in states for piece in pieces]
    for piece in read:
        state.add(piece, holds)
    # One replica may have sent a prewrite, or a ballot, after another had sent how that transaction ended.
    for piece in read:
        for t, decision in piece.decided:
            state.decide(t, decision, holds)
    state.decided = {t: decision for t, decision in state.decided.items() if t >= state.horizon}
    state.closed = state.horizon
    state.known[me] = incarnation
    state.gone.discard(me)
    # A ballot of an earlier incarnation is never used again: the incarnation is part of it.
    state.ballots.clear()
    state.cap = max((cell.rts.tid for cell in state.cells.values()), default=0)
    return state
