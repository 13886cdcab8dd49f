"""Wrong rules, each planted alone: the checks of the swarm must notice every one that does harm."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import pytest

from quire.protocols.gate import Gate
from quire.protocols.node import NOTHING, Send
from quire.protocols.transactions import quorum_client, records, recovery
from quire.protocols.transactions.cells import Cell, Found, TooLate
from quire.protocols.transactions.durable import Durable
from quire.protocols.transactions.horizon import Horizon
from quire.protocols.transactions.packets import Done, End, Write
from quire.protocols.transactions.quorum_client import QuorumClient
from quire.protocols.transactions.quorum_packets import Decide
from quire.protocols.transactions.quorum_replica import QuorumReplica
from quire.protocols.transactions.records import Record
from quire.protocols.transactions.recovery import Recovery
from quire.protocols.transactions.replica import Post, Replica
from quire.protocols.transactions.terminator import Termination
from quire.protocols.transactions.timestamps import ZERO
from quire.protocols.transactions.votes import ABORT, FIRST, Decision, Stage

Plant = Callable[[pytest.MonkeyPatch], None]


def no_read_timestamps(patch: pytest.MonkeyPatch) -> None:
    """T3: nobody remembers who read."""
    right = Cell.prewrite

    def prewrite(self: Cell, t: Any, version: Any, value: Any, floor: Any = ZERO) -> Any:
        kept, self.rts = self.rts, ZERO
        answer = right(self, t, version, value)
        self.rts = kept
        return answer

    patch.setattr(Cell, "prewrite", prewrite)


def no_thomas_rule(patch: pytest.MonkeyPatch) -> None:
    """A write below the value is obsolete instead of dropped: still right, with more aborts."""
    right = Cell.prewrite

    def prewrite(self: Cell, t: Any, version: Any, value: Any, floor: Any = ZERO) -> Any:
        return TooLate(self.wts.writer) if self.wts.writer > t else right(self, t, version, value, floor)

    patch.setattr(Cell, "prewrite", prewrite)


def writes_take_effect_at_once(patch: pytest.MonkeyPatch) -> None:
    """T4: there is nothing to undo an aborted transaction with."""
    right = Cell.prewrite

    def prewrite(self: Cell, t: Any, version: Any, value: Any, floor: Any = ZERO) -> Any:
        answer = right(self, t, version, value, floor)
        if answer is None:
            self.install(version, value)
        return answer

    patch.setattr(Cell, "prewrite", prewrite)


def own_writes_are_not_read(patch: pytest.MonkeyPatch) -> None:
    """T2, without the abort: a read after one's own write gives the old value."""

    def read(self: Cell, t: Any) -> Any:
        if self.wts.writer > t:
            return TooLate(self.wts.writer)
        if self.blocker(t) is not None:
            return None
        self.rts = max(self.rts, t)
        return Found(self.wts, self.value)

    patch.setattr(Cell, "read", read)


def readers_do_not_wait(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Cell, "blocker", lambda self, t: None)


def commits_overwrite_younger_ones(patch: pytest.MonkeyPatch) -> None:
    def install(self: Cell, version: Any, value: Any) -> bool:
        self.wts, self.value = version, value
        return True

    patch.setattr(Cell, "install", install)


def _serve(patch: pytest.MonkeyPatch, drops: Callable[[list[Any], Any, Collection[Any]], bool]) -> None:
    """Answer the writes that the rule drops, and forget them."""
    right = Replica._serve

    def serve(self: Replica, now: int, batch: list[Any], omitted: Collection[Any]) -> list[Any]:
        outcomes: list[Any] = []
        for queued in batch:
            if isinstance(queued.request, Write) and drops(batch, queued, omitted):
                write = queued.request
                done = Done(0, 0, self._clock.tick(), write.t, write.number, write.version, None)
                outcomes.append(Post(queued.source, done))
            else:
                outcomes += right(self, now, [queued], frozenset())
        return outcomes

    patch.setattr(Replica, "_serve", serve)


def the_later_write_is_dropped(patch: pytest.MonkeyPatch) -> None:
    """T6, as printed."""

    def drops(batch: list[Any], queued: Any, omitted: Collection[Any]) -> bool:
        before = [each for each in batch[: batch.index(queued)] if each.request.key == queued.request.key]
        return bool(before) and isinstance(before[-1].request, Write)

    _serve(patch, drops)


def the_earlier_write_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    """T7: also where the later one has not committed, and never will."""
    right = Replica.end

    def end(self: Replica, end: End) -> list[Any]:
        for key in end.keys:
            if (key, end.t) in self._spare:
                self.cells[key].prewrites.pop(end.t, None)
        return right(self, end)

    patch.setattr(Replica, "end", end)


def replicas_vote_one_by_one(patch: pytest.MonkeyPatch) -> None:
    """Read one, write one: quorums need not meet."""
    patch.setattr(quorum_client, "majority", lambda replicas: 1)


def accepted_values_are_ignored(patch: pytest.MonkeyPatch) -> None:
    right = Termination.promise

    def promise(self: Termination, *arguments: Any) -> Any:
        if right(self, *arguments) is None:
            return None
        self.proposed = ABORT
        return ABORT

    patch.setattr(Termination, "promise", promise)


def promises_are_broken(patch: pytest.MonkeyPatch) -> None:
    """The client's ballot is accepted although a later one was promised."""
    right = QuorumReplica._take_ballot

    def take(self: QuorumReplica, now: int, source: int, packet: Any) -> Any:
        if packet.ballot == FIRST:
            self.state.promised.pop(packet.t, None)
        return right(self, now, source, packet)

    patch.setattr(QuorumReplica, "_take_ballot", take)


def the_client_decides_alone(patch: pytest.MonkeyPatch) -> None:
    right = QuorumClient._commit

    def commit(self: QuorumClient, now: int, call: int, transaction: Any, until_ns: int) -> Any:
        effects = right(self, now, call, transaction, until_ns)
        if transaction.t not in self._deciding:
            return effects
        decision = Decision(True, dict(transaction.written))
        told = Send(Decide(transaction.t, decision), self._placement.replicas)
        return [told, *self._ended(now, transaction.t, decision)]

    patch.setattr(QuorumClient, "_commit", commit)


def nobody_ends_what_is_left_behind(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(QuorumReplica, "_try_to_end", lambda self, now, termination: _never(termination))


def _never(termination: Termination) -> Any:
    termination.until_ns = 1 << 62
    return NOTHING


def each_replica_ends_it_alone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(QuorumReplica, "_try_to_end", lambda self, now, termination: self._learn(now, termination.t, ABORT))


def a_lost_disk_is_not_asked_for(patch: pytest.MonkeyPatch) -> None:
    right = QuorumReplica.__init__

    def begin(self: QuorumReplica, *arguments: Any, **named: Any) -> None:
        right(self, *arguments, **named)
        self._recovery = None

    patch.setattr(QuorumReplica, "__init__", begin)


def learnt_ballots_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    right = recovery.union

    def union(*arguments: Any) -> Durable:
        state = right(*arguments)
        state.promised.clear()
        state.accepted.clear()
        return state

    patch.setattr(recovery, "union", union)


def learnt_prewrites_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    right = recovery.union

    def union(*arguments: Any) -> Durable:
        state = right(*arguments)
        for cell in state.cells.values():
            cell.prewrites.clear()
        state.prewritten.clear()
        return state

    patch.setattr(recovery, "union", union)


def read_timestamps_are_lost(patch: pytest.MonkeyPatch) -> None:
    """A restart forgets them without the cap."""
    right = Durable.without_read_timestamps

    def forget(self: Durable) -> Durable:
        state = right(self)
        state.floor = ZERO
        return state

    patch.setattr(Durable, "without_read_timestamps", forget)


def each_replica_forgets_alone(patch: pytest.MonkeyPatch) -> None:
    """What is closed here is forgotten, whatever the others know."""
    right = Horizon.advance

    def advance(self: Horizon, state: Durable, unsure: Any) -> Any:
        said = right(self, state, unsure)
        state.forget(state.closed)
        return said

    patch.setattr(Horizon, "advance", advance)


def decisions_are_forgotten_before_all_know(patch: pytest.MonkeyPatch) -> None:
    right = Horizon.advance
    patch.setattr(Horizon, "advance", lambda self, state, unsure: right(self, state, ()))


def nothing_is_closed(patch: pytest.MonkeyPatch) -> None:
    """What comes from below the horizon is taken for new."""
    patch.setattr(Durable, "is_closed_to", lambda self, t: False)


def a_lost_disk_opens_what_was_closed(patch: pytest.MonkeyPatch) -> None:
    right = recovery.union

    def union(*arguments: Any) -> Durable:
        state = right(*arguments)
        state.closed = ZERO
        return state

    patch.setattr(recovery, "union", union)


def answers_leave_before_they_are_durable(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Gate, "admit", lambda self, effects: list(effects))


def _unwritten(patch: pytest.MonkeyPatch, *kinds: type[Record]) -> None:
    """Records of these kinds never come to the disk."""
    right = Durable.note

    def note(self: Durable, *changes: Record) -> None:
        right(self, *(change for change in changes if not isinstance(change, kinds)))

    patch.setattr(Durable, "note", note)


def prewrites_are_not_written(patch: pytest.MonkeyPatch) -> None:
    _unwritten(patch, records.Prewrote)


def what_was_accepted_is_not_written(patch: pytest.MonkeyPatch) -> None:
    _unwritten(patch, records.Accepts)


def how_far_was_read_is_not_written(patch: pytest.MonkeyPatch) -> None:
    _unwritten(patch, records.Capped)


def decisions_are_not_written(patch: pytest.MonkeyPatch) -> None:
    _unwritten(patch, records.Decided)


def what_is_closed_is_not_written(patch: pytest.MonkeyPatch) -> None:
    _unwritten(patch, records.Closed)


def a_store_is_founded_in_one_step(patch: pytest.MonkeyPatch) -> None:
    """Who hears that nobody has anything begins at once; others may then take themselves for replicas that lost their disks."""
    right = Recovery._begins

    def begins(self: Recovery) -> bool:
        return right(self) or self._state.stage is Stage.FOUNDING

    patch.setattr(Recovery, "_begins", begins)


def whoever_has_nothing_founds_a_store(patch: pytest.MonkeyPatch) -> None:
    """Also where others have begun."""
    right = Recovery._founds

    def founds(self: Recovery) -> bool:
        stages = [sender.stage for sender in self._senders.values()]
        return right(self) or (self._state.stage is Stage.BLANK and None not in stages)

    patch.setattr(Recovery, "_founds", founds)


HARMFUL: list[tuple[Plant, str, int]] = [
    (no_read_timestamps, "full", 0),
    (writes_take_effect_at_once, "full", 0),
    (own_writes_are_not_read, "full", 0),
    (readers_do_not_wait, "full", 0),
    (commits_overwrite_younger_ones, "full", 0),
    (the_later_write_is_dropped, "crowded", 0),
    (the_earlier_write_is_forgotten, "crowded", 0),
    (no_read_timestamps, "crashing", 0),
    (replicas_vote_one_by_one, "crashing", 0),
    (accepted_values_are_ignored, "crashing", 110),
    (promises_are_broken, "crashing", 140),
    (the_client_decides_alone, "crashing", 80),
    (nobody_ends_what_is_left_behind, "crashing", 0),
    (each_replica_ends_it_alone, "crashing", 0),
    (a_lost_disk_is_not_asked_for, "restless", 0),
    (learnt_ballots_are_forgotten, "restless", 850),
    (learnt_prewrites_are_forgotten, "restless", 390),
    (read_timestamps_are_lost, "restless", 530),
    (each_replica_forgets_alone, "forgetting", 0),
    (nothing_is_closed, "forgetting", 0),
    (answers_leave_before_they_are_durable, "kept", 20),
    (prewrites_are_not_written, "kept", 190),
    (what_was_accepted_is_not_written, "kept", 30),
    (how_far_was_read_is_not_written, "kept", 145),
    (decisions_are_not_written, "kept", 0),
    (what_is_closed_is_not_written, "kept", 0),
    (a_store_is_founded_in_one_step, "kept", 0),
    (whoever_has_nothing_founds_a_store, "kept", 0),
]
"""Each with the kind of plan under which it shows, and the seed from which on to look: some show rarely."""
