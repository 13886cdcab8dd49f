"""The suite is worth something only if it catches wrong protocols: each of these is wrong in one rule.

Every fault must be caught by random schedules, or, where it is named so, by exploring all schedules of a small world.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest

from quire.model.errors import QuireError
from quire.model.messages import Run
from quire.model.orders import implied_by
from quire.model.packets import Packet
from quire.protocols import causal_vector
from quire.protocols.causal_vector import CausalVector
from quire.protocols.contract import Deliver, Effect, Effects, Links, Protocol
from quire.protocols.fifo import Fifo
from quire.protocols.registry import PROTOCOLS, read_options
from quire.protocols.single_phase import SinglePhase
from quire.protocols.two_phase import Key, Propose, TwoPhase
from tests.kit.explore import BrokenPromiseError, Explorer
from tests.kit.schedules import broken_promise, random_plan, run_plan
from tests.kit.world import Factory
from tests.protocols.faults import CRASH_FAULTS, FAULTS

SEEDS = 3000


class DeliversOnReceipt(Fifo):
    """Nothing is held back."""

    def receive(self, source: int, packet: Packet) -> Effects:
        run = packet.carried()
        assert run is not None
        if run.end <= self.next[source]:
            return ()
        self.next[source] = run.end
        return (Deliver(run),)


class ForgetsWhatItSaw(Fifo):
    """A repeated packet is delivered again."""

    def receive(self, source: int, packet: Packet) -> Effects:
        run = packet.carried()
        assert run is not None
        return (Deliver(run),) if run.end <= self.next[source] else super().receive(source, packet)


class KeepsEarlyRuns(Fifo):
    """What was held back is not released by the run that it waited for."""

    def _deliver_from(self, run: Run) -> Effects:
        self.next[run.origin] = run.end
        return (Deliver(run),)


class IgnoresOtherOrigins(CausalVector):
    """A run waits only for the earlier ones of its own sender."""

    def receive(self, source: int, packet: Packet) -> Effects:
        assert isinstance(packet, causal_vector.Cast)
        vector = [0] * self.members
        vector[source] = packet.vector[source]
        return super().receive(source, causal_vector.Cast(packet.run, tuple(vector)))


class ReleasesOnce(CausalVector):
    """One pass over what is held back, from the first origin to the last, although a release may release others."""

    def _release(self) -> list[Deliver]:
        released = []
        for origin, early in enumerate(self.early):
            if early and causal_vector.may_deliver(origin, early[0].vector, self.delivered):
                run = early.pop(0).run
                self.held -= run.count
                self.delivered[origin] = run.end
                released.append(Deliver(run))
        return released


class TakesFirstProposal(TwoPhase):
    """The first timestamp that anybody proposes is final."""

    def _on_propose(self, source: int, proposal: Propose) -> Effects:
        asked = self.asked.get(proposal.number)
        if asked is None:
            return ()
        self.asked[proposal.number] = type(asked)(frozenset({source}), asked.largest)
        return super()._on_propose(source, proposal)


class ForgetsFinalTimestamps(TwoPhase):
    """A final timestamp does not advance the clock, so a later run may be given an earlier place."""

    def _settle(self, origin: int, number: int, key: Key) -> list[Effect]:
        clock = self.clock
        try:
            return super()._settle(origin, number, key)
        finally:
            self.clock = clock
            self.queue.sort()

    def _enqueue(self, run: Run) -> Key:
        key = super()._enqueue(run)
        self.queue.sort()
        return key


class DeliversFinalAtOnce(TwoPhase):
    """A run is delivered as soon as its own key is final, whatever may come before it."""

    def _settle(self, origin: int, number: int, key: Key) -> list[Effect]:
        queued = self.queued.pop((origin, number))
        self.queue.remove((queued.key, (origin, number)))
        self.undelivered[origin] -= queued.run.count
        self.clock = max(self.clock, key[0])
        return [Deliver(queued.run, key)]


class IgnoresWhoProposed(TwoPhase):
    """Each member tells equal timestamps apart by its own id, not by that of the proposer."""

    def _settle(self, origin: int, number: int, key: Key) -> list[Effect]:
        return super()._settle(origin, number, (key[0], self.me))


BASELINE_FAULTS: list[type[Protocol]] = [
    DeliversOnReceipt,
    ForgetsWhatItSaw,
    KeepsEarlyRuns,
    IgnoresOtherOrigins,
    ReleasesOnce,
    TakesFirstProposal,
    ForgetsFinalTimestamps,
    DeliversFinalAtOnce,
    IgnoresWhoProposed,
]


def faulty(kind: type[Protocol], options: dict[str, object]) -> Factory:
    (name,) = (entry.name for entry in PROTOCOLS.values() if issubclass(kind, entry.protocol))
    checked = read_options(name, options)
    make: Callable[..., Any] = kind
    return lambda me, members: make(me, members, checked)


def first_seed_that_catches(kind: type[Protocol], options: dict[str, object], *, crash: bool = False) -> int | None:
    for seed in range(SEEDS):
        random = Random(seed)
        plan = random_plan(random, crash=crash)
        try:
            world = run_plan(plan, faulty(kind, options), random, reordering=kind.links == Links.RELIABLE)
        except (AssertionError, QuireError, TypeError):
            # Two runs with one key, which a heap cannot tell apart, are a TypeError.
            return seed
        if broken_promise(world, implied_by(kind.promises)):
            return seed
    return None


@pytest.mark.parametrize("kind", BASELINE_FAULTS)
def test_a_fault_in_a_baseline_is_caught(kind: type[Protocol]) -> None:
    assert first_seed_that_catches(kind, {}) is not None


@pytest.mark.parametrize(("kind", "options"), FAULTS.items())
def test_a_fault_in_single_phase_is_caught(kind: type[SinglePhase], options: dict[str, object]) -> None:
    assert first_seed_that_catches(kind, options, crash=kind in CRASH_FAULTS) is not None


@contextmanager
def caught_with_a_schedule() -> Iterator[None]:
    with pytest.raises(BrokenPromiseError) as caught:
        yield
    assert caught.value.moves, "there is always a schedule to show"


def test_exploring_all_schedules_shows_the_moves_that_break_causality() -> None:
    with caught_with_a_schedule():
        Explorer(faulty(IgnoresOtherOrigins, {}), [(1,), (1,), ()]).explore()


def test_exploring_all_schedules_shows_the_moves_that_break_the_total_order() -> None:
    with caught_with_a_schedule():
        Explorer(faulty(DeliversFinalAtOnce, {}), [(1,), (1,)]).explore()


def test_exploring_all_schedules_shows_the_moves_that_leave_something_undelivered() -> None:
    with caught_with_a_schedule():
        Explorer(faulty(KeepsEarlyRuns, {}), [(1, 1), ()]).explore()
