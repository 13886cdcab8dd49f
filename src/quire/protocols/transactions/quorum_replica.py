"""The replica for majority replication (`majority`): no client and no minority of replicas can block anybody."""

from __future__ import annotations

from collections.abc import Sequence

from quire.model.errors import ProtocolViolation
from quire.model.packets import Packet
from quire.protocols.node import NOTHING, Effect, Effects, Node, Save, Send
from quire.protocols.transactions import cells
from quire.protocols.transactions.cells import Found, TooLate
from quire.protocols.transactions.claims import Claims, Wanted
from quire.protocols.transactions.coordinator import Draw
from quire.protocols.transactions.durable import Durable
from quire.protocols.transactions.gossip import Gossip
from quire.protocols.transactions.horizon import Horizon
from quire.protocols.transactions.notices import BeginAnew, GaveUp, Traced
from quire.protocols.transactions.placement import Placement
from quire.protocols.transactions.quorum_packets import (
    QUORUM_PACKETS,
    Accepted,
    Claim,
    Compared,
    Decide,
    Denied,
    Ended,
    Fetch,
    Granted,
    Have,
    Outdated,
    Prepare,
    Prewrite,
    Promised,
    Propose,
    Reach,
    Recover,
    Rejected,
    Snapshot,
)
from quire.protocols.transactions.recovery import Informant, Recovery
from quire.protocols.transactions.settings import Settings
from quire.protocols.transactions.soundness import is_sound
from quire.protocols.transactions.terminator import Termination, Terminations
from quire.protocols.transactions.timestamps import Timestamp, end_id, read_id, write_id
from quire.protocols.transactions.votes import ABORT, FIRST, Ballot, Decision, Stage, Stance
from quire.protocols.transactions.waiting import Queues, Waiting


class QuorumReplica(Node):
    """`state`: what an earlier process of this replica, which ended before `now`, left on disk. `lost`: the disk is lost, or
    never existed, and this incarnation, which no earlier process had, must ask the others before it may answer anything.
    `kept`: whether the driver makes its records durable."""

    packets = QUORUM_PACKETS

    def __init__(
        self,
        address: int,
        placement: Placement,
        settings: Settings,
        draw: Draw,
        state: Durable | None = None,
        lost: int | None = None,
        now: int = 0,
        *,
        kept: bool = False,
    ) -> None:
        super().__init__(address)
        self._placement = placement
        self._settings = settings
        self._kept = kept
        if state is None:
            state = Durable() if lost is None else Durable(stage=Stage.BLANK, incarnation=lost)
        self.state = state
        state.changes = [] if kept and state.stage is not Stage.BLANK else None
        self._others = others = tuple(replica for replica in placement.replicas if replica != address)
        self._waiting = Queues()
        self._claims = Claims(settings.lease_ns)
        self._latest = 0
        self._terminations = Terminations(address, len(placement.replicas), settings.lease_ns, draw)
        self._gossip = Gossip(address, placement.replicas, settings.gossip_ns)
        self._horizon = Horizon(address, placement.replicas, settings.remembered)
        self._reach_at: int | None = None
        self._informant = Informant()
        groups = placement.groups() | {placement.replicas}
        self._recovery = None if state.stage is Stage.BEGUN else Recovery(address, state, others, groups)
        self._ask_at = now
        self._take_up(now)

    @property
    def recovering(self) -> bool:
        return self._recovery is not None

    def begin(self, now: int) -> None:
        """Take part at once, with an empty state: the store is new, and this replica has never taken part in it."""
        if self._recovery is not None:
            self.state.stage = Stage.BEGUN
            self._begun(now)

    def receive(self, now: int, source: int, packet: Packet) -> Effects:
        return self._with_records(self._take(now, source, packet))

    def _with_records(self, effects: Effects) -> Effects:
        """Records come before everything that tells others about their contents."""
        changes = self.state.take_changes()
        return [*map(Save, changes), *effects] if changes else effects

    def _take(self, now: int, source: int, packet: Packet) -> Effects:
        if isinstance(packet, Snapshot):
            return self._recover(now, source, packet)
        if not is_sound(packet, source, self.address, self._placement):
            raise ProtocolViolation(source, f"{type(packet).__name__} may not be sent by it, or not like this")
        if isinstance(packet, Recover):
            return self._tell_lost(now, source, packet)
        if self.recovering:
            return NOTHING
        if source in self.state.gone:
            return [Send(Outdated(self.state.known.get(source, 0)), (source,))]
        self._gossip.heard(now, source)
        match packet:
            case Fetch() | Prewrite():
                return self._request(now, source, packet)
            case Claim(t=t, instead_of=before, wanted=wanted):
                return self._claim(now, t, before, wanted)
            case Prepare() | Propose():
                return self._take_ballot(now, source, packet)
            case Promised() | Accepted() | Rejected():
                return self._count(now, source, packet)
            case Decide(t=t, decision=decision) | Ended(t=t, decision=decision):
                return self._learn(now, t, decision)
            case Have(decided=decided):
                return self._compare(source, decided)
            case Compared(has=has, lacks=lacks):
                self._gossip.has(source, has)
                known = ((t, self.state.decided.get(t)) for t in lacks)
                return [Send(Decide(t, decision), (source,)) for t, decision in known if decision is not None]
            case Reach(closed=closed, settled=settled, answer=answer):
                self._horizon.heard(source, closed, settled)
                mine = self._reach(answer=True)
                return [] if answer else [Send(mine, (source,))]
            case Outdated(incarnation=incarnation):
                is_meant = self.state.incarnation <= incarnation
                return [BeginAnew() if is_meant else Send(Recover(self.state.incarnation, Stage.BEGUN), (source,))]
        raise AssertionError(packet)

    def holds(self, key: str) -> bool:
        """Whether this replica holds a key."""
        return self.address in self._placement.of(key)

    def owes(self, replica: int) -> bool:
        """Whether another replica may still lack a decision that is known here."""
        return self._gossip.owes(replica)

    def gone(self, replica: int) -> None:
        """Another replica will never come back with its state: nobody waits for it, and nothing of it is accepted."""
        self.state.give_up(replica)
        self._gossip.gone(replica)
        self._horizon.gone(replica)

    def _give_up_hopeless(self) -> list[Effect]:
        """Give up replicas that stay away for so long that too much would have to be kept for them."""
        hopeless = self._gossip.hopeless(self._settings.owed_max)
        for replica in hopeless:
            self.gone(replica)
        return list(map(GaveUp, hopeless))

    # Reads and writes

    def _request(self, now: int, source: int, packet: Fetch | Prewrite) -> Effects:
        self._latest = max(self._latest, packet.t.tid)
        self._claims.heard(now, packet.t)
        if packet.t in self._terminations:
            self._terminations.hold(now, packet.t)
        answer = self._serve(now, source, packet)
        if answer is None:
            self._waiting.put(Waiting(source, packet))
        return answer or NOTHING

    def _serve(self, now: int, source: int, packet: Fetch | Prewrite) -> Effects | None:
        """The answer, or None if the request has to wait."""
        if packet.t in self.state.decided:
            return [self._ended(source, packet.t)]
        if self._claims.hold_up(packet.t, packet.key, writes=isinstance(packet, Prewrite)):
            return None
        return self._prewrite(now, source, packet) if isinstance(packet, Prewrite) else self._fetch(source, packet)

    def _claim(self, now: int, t: Timestamp, before: Timestamp | None, wanted: Wanted) -> Effects:
        over = t in self.state.decided or t < self.state.horizon
        return self._freed(now, self._claims.put(now, t, before, Wanted() if over else wanted))

    def _freed(self, now: int, claimed: Wanted) -> Effects:
        """Nothing has to wait for this any more."""
        return [effect for key in claimed.among(self._waiting) for effect in self._look_again(now, key)]

    def _prewrite(self, now: int, source: int, packet: Prewrite) -> Effects:
        t, state = packet.t, self.state
        if state.is_closed_to(t):
            return [Send(Denied(*self._stance(), t, packet.number, state.closed, self._latest), (source,))]
        if t in state.promised:
            # Somebody is ending it: a vote now could come too late to count.
            return NOTHING
        mine = state.cell(packet.key).prewrites.get(t)
        refusal = state.prewrite(t, packet.key, cells.Prewrite(packet.version, packet.value))
        if refusal is not None:
            return [Send(Denied(*self._stance(), t, packet.number, refusal.hint, self._latest), (source,))]
        self._terminations.hold(now, t)
        granted = Send(Granted(*self._stance(), t, packet.number, None, None), (source,))
        if mine is not None and mine.version >= packet.version:
            return [granted]
        size = len(packet.value or b"")
        return [Traced("deliver", write_id(packet.version), "w", t, packet.key, size=size), granted]

    def _fetch(self, source: int, fetch: Fetch) -> Effects | None:
        match self.state.cell(fetch.key).read(fetch.t):
            case Found(version=version, value=value):
                self.state.has_read(fetch.t, self._settings.cap_step)
                traced = Traced("deliver", read_id(fetch.t, fetch.number), "r", fetch.t, fetch.key)
                return [traced, Send(Granted(*self._stance(), fetch.t, fetch.number, version, value), (source,))]
            case TooLate(hint=hint):
                return [Send(Denied(*self._stance(), fetch.t, fetch.number, hint, self._latest), (source,))]
        return None

    def _stance(self) -> Stance:
        return Stance(self.state.incarnation, dict(self.state.known))

    def _ended(self, source: int, t: Timestamp) -> Send:
        return Send(Ended(*self._stance(), t, self.state.decided[t]), (source,))

    # Decisions

    def _take_ballot(self, now: int, source: int, packet: Prepare | Propose) -> Effects:
        t, ballot, state = packet.t, packet.ballot, self.state
        if t in state.decided:
            return [self._ended(source, t)]
        if t < state.horizon and ballot > FIRST:
            # Whoever holds something of it undecided was never told of an end, so there was none. Who was is just late.
            return [Send(Ended(*self._stance(), t, ABORT), (source,))]
        if t < state.horizon:
            return NOTHING  # How it ended is forgotten.
        if ballot < state.promised.get(t, FIRST) or (ballot == FIRST and state.is_closed_to(t)):
            return [Send(Rejected(*self._stance(), t, ballot), (source,))]
        if isinstance(packet, Prepare):
            state.promise(t, ballot)
            answer: Packet = Promised(*self._stance(), t, ballot, state.accepted.get(t))
        else:
            state.accept(t, ballot, packet.decision)
            answer = Accepted(*self._stance(), t, ballot)
        self._terminations.hold(now, t)
        return [Send(answer, (source,))]

    def _learn(self, now: int, t: Timestamp, decision: Decision) -> Effects:
        if t in self.state.decided or (t < self.state.horizon and t not in self._terminations):
            return NOTHING
        effects: list[Effect] = []
        for key, (version, value) in decision.writes.items():
            mine = self.state.cell(key).prewrites.get(t) if self.holds(key) else None
            if self.holds(key) and (mine is None or mine.version < version):
                effects.append(Traced("deliver", write_id(version), "w", t, key, size=len(value or b"")))
        touched = self.state.decide(t, decision, self.holds)
        effects.append(Traced("deliver", end_id(t), "commit" if decision.commit else "abort", t))
        self._terminations.drop(t)
        self._gossip.decided(now, t)
        if self._reach_at is None and self._horizon.is_wanted(self.state):
            self._reach_at = now
        for key in touched:
            effects += self._look_again(now, key)
        effects += self._freed(now, self._claims.drop(t))
        return effects + self._give_up_hopeless()

    def _look_again(self, now: int, key: str) -> Effects:
        effects: list[Effect] = []
        for waiting in self._waiting.take(key):
            answer = self._serve(now, *waiting)
            if answer is None:
                self._waiting.put(waiting)
            effects += answer or NOTHING
        return effects

    def _compare(self, source: int, decided: Sequence[Timestamp]) -> Effects:
        self._gossip.has(source, decided)
        has = tuple(t for t in decided if t in self.state.decided or t < self.state.horizon)
        lacks = tuple(t for t in decided if t not in self.state.decided and t >= self.state.horizon)
        return [Send(Compared(has, lacks), (source,))]

    def _reach(self, *, answer: bool) -> Reach:
        """Drop what may be dropped; returns what the others must know for that."""
        return Reach(*self._horizon.advance(self.state, self._gossip.unsure()), answer)

    # Ending what a silent client left behind

    def _try_to_end(self, now: int, termination: Termination) -> Effects:
        t, state = termination.t, self.state
        highest = max(state.promised.get(t, FIRST), state.ballots.get(t, FIRST))
        ballot = Ballot(highest.round + 1, state.incarnation, self.address)
        state.use_ballot(t, ballot)
        self._terminations.start(now, termination, ballot)
        return self._tell_all(now, Prepare(t, ballot))

    def _count(self, now: int, source: int, packet: Promised | Accepted | Rejected) -> Effects:
        termination, state, replicas = self._terminations.get(packet.t), self.state, len(self._placement.replicas)
        if termination is None or isinstance(packet, Rejected):
            return NOTHING
        if isinstance(packet, Promised):
            proposal = termination.promise(source, packet, replicas, state.known)
            return NOTHING if proposal is None else self._tell_all(now, Propose(packet.t, packet.ballot, proposal))
        stance = Stance(packet.incarnation, packet.known)
        decision = termination.accept(source, packet.ballot, stance, replicas, state.known)
        return NOTHING if decision is None else self._tell_all(now, Decide(packet.t, decision))

    def _tell_all(self, now: int, packet: Prepare | Propose | Decide) -> Effects:
        """Send this to the others, and apply it here as they will."""
        effects: list[Effect] = [Send(packet, self._others)] if self._others else []
        for effect in self._take(now, self.address, packet):
            if isinstance(effect, Send) and effect.to == (self.address,):
                effects += self._take(now, self.address, effect.packet)
            else:
                effects.append(effect)
        return effects

    # After the disk was lost

    def _tell_lost(self, now: int, source: int, packet: Recover) -> Effects:
        """Another replica lost its disk: send what is known here, from the position that it asks for."""
        # From now on whatever is said here carries the new incarnation, so that its old votes are void beside it.
        self.state.know(source, packet.incarnation)
        if source not in self.state.gone:
            self._horizon.back(source)
            self._gossip.back(now, source, self.state.decided)
        self._gossip.heard(now, source)
        asks = [] if self._recovery is None else self._recovery.hear(source, packet)
        return [Send(self._informant.answer(self.state, source, packet), (source,)), *asks]

    def _recover(self, now: int, source: int, snapshot: Snapshot) -> Effects:
        if self._recovery is None:
            return NOTHING
        asks = self._recovery.take(source, snapshot)
        return [*asks, *self._try_to_begin(now)]

    def _try_to_begin(self, now: int) -> Effects:
        """Take part, if enough is known for that."""
        assert self._recovery is not None
        before = self.state.stage
        self.state = self._recovery.advance(self.holds, kept=self._kept)
        if self.state.stage is Stage.BEGUN:
            self._begun(now)
            return NOTHING
        return NOTHING if self.state.stage is before else self._recovery.asks()

    def _begun(self, now: int) -> None:
        self._recovery, self._informant = None, Informant()
        self._take_up(now)

    def _take_up(self, now: int) -> None:
        """Begin with a state that comes from elsewhere."""
        for replica in self.state.gone:
            self._gossip.gone(replica)
            self._horizon.gone(replica)
        for t in self.state.undecided():
            self._terminations.hold(now, t)
        for t in self.state.decided:
            self._gossip.decided(now, t)

    # Time

    def wake(self, now: int) -> Effects:
        return self._with_records(self._do_what_is_due(now))

    def _do_what_is_due(self, now: int) -> Effects:
        if self._recovery is not None:
            if self._ask_at > now:
                return NOTHING
            self._ask_at = now + self._settings.repeat_ns
            asks = self._recovery.asks()
            return [*asks, *self._try_to_begin(now)]
        effects: list[Effect] = []
        for termination in self._terminations.late(now):
            if termination.t in self._terminations:
                effects += self._try_to_end(now, termination)
        if self._reach_at is not None and self._reach_at <= now:
            reach = self._reach(answer=False)
            effects += [Send(reach, self._others)] if self._others else NOTHING
            self._reach_at = now + self._settings.gossip_ns if self._horizon.is_wanted(self.state) else None
        return [*effects, *self._freed(now, self._claims.void(now)), *self._gossip.wake(now)]

    def due(self) -> int | None:
        if self.recovering:
            return self._ask_at
        times = (self._terminations.due(), self._gossip.due(), self._claims.due(), self._reach_at)
        return min((at for at in times if at is not None), default=None)

    def idle(self) -> bool:
        return not self.recovering and not self._terminations and not self._waiting and self._gossip.idle()

    def waiting_keys(self) -> dict[str, int]:
        """For each key, how many requests wait for an older transaction to end."""
        return self._waiting.lengths()
