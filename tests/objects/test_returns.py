"""Members that come back: they get the states of their objects, nothing is run twice or missed, and nobody is stuck."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable

import pytest

from quire.model.errors import WindowFull
from quire.model.messages import NUMBER_MAX
from quire.objects.call import Call
from quire.objects.placing import place
from quire.protocols.node import NOTHING, Effect, Send
from quire.protocols.objects.declarations import Catalogue, ObjectType, Placed
from quire.protocols.objects.departures import union
from quire.protocols.objects.errors import HostLost
from quire.protocols.objects.node import ObjectNode
from quire.protocols.objects.notices import CaughtUp, Refused, Returned, Started, StateCame, StateWanted
from quire.protocols.objects.packets import Data, Heartbeat, Instance, Part, Request, Stamp
from quire.protocols.objects.returns import Said
from quire.simulation.objects import Crash, Return, Root, simulate_objects
from quire.simulation.randomness import stream
from tests.kit.effort import runs
from tests.objects.accounts import BaseAccount
from tests.objects.crashing import broken_agreement
from tests.objects.kit import closure, order_violations
from tests.objects.returning import (
    ReturningExecution,
    ReturnPlan,
    active_orphans,
    differing_replicas,
)
from tests.objects.test_swarm import KINDS

A, B, BACK = range(3)
RUN = ObjectType({"run": frozenset(("run",))})
OBJECTS = {"shared": Placed(RUN, (A, B, BACK)), "a": Placed(RUN, (A,)), "back": Placed(RUN, (BACK,))}
LIFE = 7
"""The number of the process that comes back."""


def node(member: int) -> ObjectNode:
    """One of those who go on: the last member is gone."""
    made = ObjectNode(member, Catalogue(3, OBJECTS))
    made.install(0, union([made.fence((BACK,))]))
    return made


def said(clock: int = 0, **sent: int) -> Said:
    return Said(clock, {A: sent.get("a", 0), B: sent.get("b", 0), BACK: 0}, ("back",))


def request(
    source: int, number: int, *targets: str, clock: int | None = None, chain: Iterable[Instance] = (), age: int = 1
) -> Request:
    root = Instance(source, 0, "", source)
    stamp = number if clock is None else clock
    return Request(number, stamp, root, number, (), (*chain, root), Stamp(age, source), targets, "run", b"")


def kinds(effects: Iterable[Effect]) -> list[type]:
    return [type(effect) for effect in effects if not isinstance(effect, Send)]


def admitting(clock: int = 0, **sent: int) -> ObjectNode:
    """The first of those who go on, when all have said how they stand."""
    donor = node(A)
    donor.admit({BACK: LIFE})
    donor.admitted(0, {A: donor.stands(), B: said(clock, **sent), BACK: Said(0, {})})
    return donor


def heartbeat(clock: int, life: int = 0, last: int = 0, row: tuple[int, ...] = (0, 0, 0)) -> Heartbeat:
    return Heartbeat(0, last, clock, 0, row, life=life)


def test_the_first_of_those_who_have_a_state_hands_it_over_and_the_others_do_not() -> None:
    donor, other = node(A), node(B)
    for each in (donor, other):
        each.admit({BACK: LIFE})
    stand = {A: donor.stands(), B: other.stands(), BACK: Said(0, {})}
    assert list(donor.admitted(0, stand)) == [StateWanted("shared", (BACK,))]
    assert list(other.admitted(0, stand)) == []
    [send] = donor.hand_over(0, "shared", (BACK,), b"state")
    assert isinstance(send, Send)
    assert isinstance(send.packet, Data)
    assert (send.to, send.packet.life, send.packet.to_life) == ((BACK,), 0, LIFE)
    assert isinstance(send.packet.content, Part)
    assert kinds(donor.wake(10)) == [], "it is handed over once"


def test_a_state_is_handed_over_when_everything_that_was_sent_before_has_come_and_is_run() -> None:
    donor = admitting(clock=5, a=1)
    assert kinds(donor.receive(1, B, Data(1, 0, request(B, 5, "shared")))) == [], "its turn has not come"
    [started] = [effect for effect in donor.receive(2, BACK, heartbeat(9, LIFE)) if isinstance(effect, Started | StateWanted)]
    assert isinstance(started, Started), "it runs, so the state may change"
    assert StateWanted in kinds(donor.finish(3, started.instance, "ok")), "now everything is in the state"


def test_a_state_is_not_handed_over_before_what_was_sent_has_come() -> None:
    donor = node(A)
    donor.admit({BACK: LIFE})
    assert StateWanted not in kinds(donor.admitted(0, {A: donor.stands(), B: said(5, a=1), BACK: Said(0, {})}))
    assert StateWanted not in kinds(donor.wake(10_000_000))


def test_whoever_comes_back_begins_with_the_latest_clock_and_so_do_all() -> None:
    back = ObjectNode(BACK, Catalogue(3, OBJECTS))
    back.begin_life(LIFE, {A: 0, B: 0})
    effects = back.admitted(0, {A: said(3), B: said(8), BACK: back.stands()})
    assert back.exchange.clock == 8
    assert kinds(effects) == [], "it lacks a state"
    assert admitting(clock=8).exchange.clock == 8


def test_whoever_comes_back_takes_part_when_it_has_all_states_and_all_are_told() -> None:
    back = ObjectNode(BACK, Catalogue(3, OBJECTS))
    back.begin_life(LIFE, {A: 0, B: 0})
    back.admitted(0, {A: said(3), B: said(8), BACK: back.stands()})
    pieces = [Part(9, 9, "shared", b"st", False), Part(10, 10, "shared", b"ate", True)]
    came = [
        effect
        for number, piece in enumerate(pieces, 1)
        for effect in back.receive(0, A, Data(number, 0, piece, to_life=LIFE))
        if not isinstance(effect, Send)
    ]
    assert came == [StateCame("shared", b"state", "")]
    with pytest.raises(WindowFull, match="has come back"):
        back.begin(0)
    assert kinds(back.restored(0, "shared")) == [CaughtUp]
    assert kinds(back.caught_up(0, BACK)) == [Returned]
    root = back.begin(0)
    assert root.number == LIFE << 32, "no other process of this member has used the number"
    with pytest.raises(HostLost):
        back.invoke(0, root, 0, ("back",), "run", b"")


def test_what_was_begun_of_a_state_by_a_member_that_is_lost_is_begun_again_by_another() -> None:
    back = ObjectNode(BACK, Catalogue(3, OBJECTS))
    back.begin_life(LIFE, {A: 0, B: 0})
    back.admitted(0, {A: said(3), B: said(8), BACK: back.stands()})
    back.receive(0, A, Data(1, 0, Part(9, 9, "shared", b"half", False), to_life=LIFE))
    back.install(0, union([back.fence((A,)), {A: ()}]))
    effects = back.receive(0, B, Data(1, 0, Part(9, 9, "shared", b"whole", True), to_life=LIFE))
    assert StateCame("shared", b"whole", "") in effects


def test_calls_to_objects_of_whoever_comes_back_wait_until_it_has_their_states() -> None:
    donor = admitting()
    root = donor.begin(0)
    assert not [effect for effect in donor.invoke(0, root, 0, ("shared",), "run", b"") if isinstance(effect, Send)]
    sent = [effect for effect in donor.caught_up(0, BACK) if isinstance(effect, Send)]
    assert sorted(to for effect in sent for to in effect.to) == [B, BACK]


def test_calls_that_wait_go_on_without_a_member_that_is_lost_again() -> None:
    donor = admitting()
    root = donor.begin(0)
    donor.invoke(0, root, 0, ("shared",), "run", b"")
    sent = [effect for effect in donor.install(0, union([donor.fence((BACK,))])) if isinstance(effect, Send)]
    assert [to for effect in sent for to in effect.to] == [B]


def test_nothing_is_stable_without_whoever_comes_back() -> None:
    donor = node(A)
    donor.admit({BACK: LIFE})
    donor.receive(0, B, Data(1, 0, request(B, 5, "a")))
    assert kinds(donor.receive(0, B, heartbeat(9, last=1))) == []
    donor.admitted(0, {A: donor.stands(), B: said(9), BACK: Said(0, {})})
    assert Started in kinds(donor.receive(0, BACK, heartbeat(9, LIFE)))


def test_nothing_is_taken_that_was_said_by_or_to_the_process_before() -> None:
    donor = admitting()
    assert donor.receive(0, BACK, Data(1, 0, request(BACK, 1, "a"))) == NOTHING
    assert donor.receive(0, B, Data(1, 0, request(B, 1, "a"), to_life=3)) == NOTHING
    assert not donor.queues["a"].copies


def test_who_takes_it_for_gone_still_says_nothing_of_what_is_delivered_of_whoever_came_back() -> None:
    donor = admitting(clock=5)
    donor.receive(0, B, heartbeat(9, row=(0, 0, NUMBER_MAX)))
    donor.receive(0, BACK, heartbeat(9, LIFE, row=(0, 0, 9)))
    assert donor.exchange.floor()[BACK] == 0


def test_what_a_lost_member_had_called_before_it_came_back_is_not_run() -> None:
    """It came after the member was admitted, and before it is known with which clock that begins."""
    donor, before = node(A), Instance(BACK, 0, "", BACK)
    donor.admit({BACK: LIFE})
    donor.receive(0, B, Data(1, 0, request(B, 5, "a", chain=(before,))))
    assert kinds(donor.receive(0, BACK, heartbeat(9, LIFE))) == []
    assert kinds(donor.receive(0, B, heartbeat(9, last=1))) == [], "on whose behalf it is cannot be told yet"
    effects = donor.admitted(0, {A: donor.stands(), B: said(9), BACK: Said(0, {})})
    assert Refused in kinds(effects)
    assert Started not in kinds(effects)


def test_what_waited_before_a_member_was_admitted_is_not_taken_for_its_own() -> None:
    donor, before = ObjectNode(A, Catalogue(3, OBJECTS)), Instance(BACK, 0, "", BACK)
    donor.receive(0, B, Data(1, 0, request(B, 4, "a")))
    # It is the older one, and so waits for the other.
    donor.receive(0, B, Data(2, 0, request(B, 5, "a", chain=(before,), age=0)))
    [started] = [each for each in donor.install(0, union([donor.fence((BACK,))])) if isinstance(each, Started)]
    donor.admit({BACK: LIFE})
    donor.receive(0, BACK, heartbeat(9, LIFE))
    assert Started not in kinds(donor.finish(0, started.instance, "ok"))
    assert Refused in kinds(donor.admitted(0, {A: donor.stands(), B: said(9), BACK: Said(0, {})}))


def test_what_whoever_came_back_calls_is_run() -> None:
    donor, now = admitting(clock=5), Instance(BACK, LIFE << 32, "", BACK)
    donor.receive(0, B, Data(1, 0, request(B, 6, "a", chain=(now,))))
    assert Started in kinds(donor.receive(0, BACK, heartbeat(9, LIFE)))


@pytest.mark.parametrize(("clock", "runs_it"), [(8, False), (9, True)])
def test_of_what_is_told_of_a_lost_member_only_what_is_younger_concerns_whoever_came_back(clock: int, *, runs_it: bool) -> None:
    back = ObjectNode(BACK, Catalogue(3, OBJECTS))
    back.begin_life(LIFE, {A: 0, B: 0})
    back.admitted(0, {A: said(3), B: said(8), BACK: back.stands()})
    back.restored(0, "shared")
    back.caught_up(0, BACK)
    agreed = union([back.fence((A,)), {A: (request(A, 1, "shared", clock=clock),)}])
    back.install(0, agreed)
    assert bool(back.queues["shared"].copies) == runs_it


def test_an_orphan_does_not_make_the_calls_that_it_had_put_off() -> None:
    donor = admitting(clock=5)
    donor.receive(0, B, Data(1, 0, request(B, 6, "a")))
    [started] = [each for each in donor.receive(0, BACK, heartbeat(9, LIFE)) if isinstance(each, Started)]
    donor.invoke(0, started.instance, 0, ("shared",), "run", b"")
    donor.install(0, union([donor.fence((B,))]))
    effects = (*donor.finish(0, started.instance, "aborted"), *donor.caught_up(0, BACK))
    assert not [effect for effect in effects if isinstance(effect, Send) and isinstance(effect.packet, Data)]
    assert not donor.activities


class Counted(BaseAccount):
    """An account, of which each member has a copy."""


def test_an_application_in_the_simulator_may_have_a_member_come_back() -> None:
    async def deposit(call: Call) -> int:
        return await call.invoke("shared", "deposit", 1)  # type: ignore[no-any-return]

    roots = [Root(member, deposit, at_ms=float(at)) for at in range(0, 200, 10) for member in (A, B)]
    found, objects = simulate_objects(
        3, {"shared": place(Counted, A, B, BACK)}, roots, seed=2, crashes=[Crash(BACK, 50)], returns=[Return(BACK, 60)]
    )
    assert sorted(found) == [*range(1, 41)]
    assert [each["shared"].balance for each in objects] == [40] * 3  # type: ignore[attr-defined]


# Random executions

RUNS = runs(40, 500)
SEED = os.environ.get("QUIRE_SWARM_SEED")


def random_plan(seed: int) -> ReturnPlan:
    random = stream(seed, "plan")
    return ReturnPlan(
        members=random.choice((3, 4)),
        roots=random.choice((5, 8, 12)),
        cyclic=seed % 3 == 0,
        conflict=random.choice((0.3, 0.6, 1.0)),
        loss=random.choice((0.0, 0.2)),
        replicas=True,
        abort=random.choice((0.0, 0.1)),
        crashes=random.choice((1, 1, 2)),
        options=KINDS[("exact", "collected", "dense")[seed % 3]],
    )


def judge(seed: int, seen: Counter[str]) -> str | None:
    """What is wrong with an execution in which members come back, if anything is."""
    execution = ReturningExecution(seed, random_plan(seed))
    if not execution.play():
        return "it is stuck"
    expected = ("as planned", "is gone with its host")
    unplanned = [error for error in execution.failed if not any(each in str(error) for each in expected)]
    if unplanned:
        return f"a call failed: {unplanned[0]!r}"
    wrong = order_violations(execution, closure(execution)) + broken_agreement(execution) + active_orphans(execution)
    wrong += differing_replicas(execution)
    seen.update({"back": len(execution.back), "begun": len(execution.began_again), "lost": execution.lost})
    return wrong[0] if wrong else None


def test_whoever_comes_back_has_what_the_others_have() -> None:
    seen: Counter[str] = Counter()
    for seed in [int(SEED)] if SEED is not None else range(RUNS):
        wrong = judge(seed, seen)
        assert wrong is None, f"{wrong}; replay: QUIRE_SWARM_SEED={seed} pytest tests/objects/test_returns.py -k whoever"
    if SEED is None:
        assert seen["back"], seen
        print(RUNS, dict(seen))
