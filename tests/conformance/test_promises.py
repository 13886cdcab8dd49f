"""Every protocol, in every variant, keeps what it promises, and is caught not keeping what it does not promise.

A failure of a random schedule prints the command that replays it alone.
"""

from __future__ import annotations

import os
from collections import Counter
from itertools import pairwise
from random import Random
from typing import Union

import msgspec
import pytest

from quire.model.errors import ProtocolViolation, QuireError
from quire.model.messages import MessageId
from quire.model.orders import OF_ANY_MESSAGES, RELIABLE, Guarantee
from quire.model.packets import Packet
from quire.protocols.hierarchy.notes import Control
from tests.kit.oracles import ORACLES
from tests.kit.schedules import broken_promise, random_plan, run_plan
from tests.kit.state import freeze
from tests.kit.variants import Variant, variants
from tests.kit.world import World

SEED = os.environ.get("QUIRE_SEED")
SEEDS = range(100) if SEED is None else [int(SEED)]

every_variant = pytest.mark.parametrize("variant", variants(), ids=str)
every_causal = pytest.mark.parametrize("variant", [v for v in variants() if Guarantee.CAUSAL in v.promises], ids=str)
every_other_than_causal = pytest.mark.parametrize(
    "variant", [v for v in variants() if Guarantee.CAUSAL not in v.promises], ids=str
)
every_survivor = pytest.mark.parametrize("variant", [v for v in variants() if v.kind.changes_views], ids=str)


def random_world(variant: Variant, seed: int, *, crash: bool = False) -> World:
    random = Random(seed)
    plan = random_plan(random, crash=crash)
    return run_plan(plan, variant.factory(), random, reordering=variant.reordering)


def replay(request: pytest.FixtureRequest, seed: int) -> str:
    return f"replay: QUIRE_SEED={seed} make test PYTEST_ARGS='\"{request.node.nodeid}\"'"


def check_random_schedules(variant: Variant, request: pytest.FixtureRequest, *, crash: bool) -> list[World]:
    worlds = []
    for seed in SEEDS:
        try:
            world = random_world(variant, seed, crash=crash)
        except (AssertionError, QuireError) as error:
            pytest.fail(f"{error!r}\n{replay(request, seed)}")
        wrong = broken_promise(world, variant.promises)
        if wrong:
            pytest.fail(f"{wrong}\n{replay(request, seed)}")
        worlds.append(world)
    return worlds


@every_variant
def test_a_random_schedule_breaks_no_promise(variant: Variant, request: pytest.FixtureRequest) -> None:
    worlds = check_random_schedules(variant, request, crash=False)
    if SEED is None:
        assert any(world.held_back_most for world in worlds)
        assert any(senders_alternate(world) for world in worlds)
        assert any(has_causes_at_two_others(world) for world in worlds)
        assert any(concurrent(world) for world in worlds)


@every_survivor
def test_survivors_of_a_crash_agree_on_a_random_schedule(variant: Variant, request: pytest.FixtureRequest) -> None:
    worlds = check_random_schedules(variant, request, crash=True)
    if SEED is None:
        assert any(world.flushed for world in worlds)
        assert any(crashed_message_was_lost(world) for world in worlds)


@every_variant
def test_a_member_delivers_its_own_messages_and_so_does_everybody_else(variant: Variant) -> None:
    world = World(3, variant.factory())
    world.submit(1, [b"a", b"bc", b"d"])
    world.drain()
    for member in range(3):
        assert world.log(member) == [MessageId(1, 0), MessageId(1, 1), MessageId(1, 2)]


@every_variant
def test_a_group_of_one_delivers_at_once(variant: Variant) -> None:
    world = World(1, variant.factory())
    world.submit(0, [b"a", b"b"])
    world.submit(0, [b"c"])
    assert world.log(0) == [MessageId(0, 0), MessageId(0, 1), MessageId(0, 2)]


@every_causal
def test_an_answer_waits_for_its_question_that_comes_late_from_a_third_member(variant: Variant) -> None:
    world = question_and_answer(variant)
    question, answer = MessageId(0, 0), MessageId(1, 0)
    assert world.log(2) in ([], [question], [question, answer])
    world.drain()
    assert all(world.log(member) == [question, answer] for member in range(3))


def test_an_answer_is_held_back_while_its_question_is_under_way() -> None:
    world = question_and_answer(Variant("causal-vector", {}))
    assert world.log(2) == []
    assert world.protocols[2].held_back() == 1


@every_other_than_causal
def test_a_protocol_that_is_not_causal_delivers_an_answer_before_its_question(variant: Variant) -> None:
    world = question_and_answer(variant)
    assert world.log(2) == [MessageId(1, 0)]
    assert ORACLES[Guarantee.CAUSAL](world.history()) == "member 2 delivered 1:0 before 0:0, which happened before it"


def question_and_answer(variant: Variant) -> World:
    """Member 0 asks, member 1 delivers that and answers. What member 0 sends to member 2 comes as late as it can.

    Under a total order, member 1 cannot deliver the question before member 2 has acknowledged it.
    """
    world = World(3, variant.factory())
    world.submit(0, [b"question"])
    world.drain(leave=[(0, 2)])
    while not world.log(1):
        world.take(0, 2)
        world.drain(leave=[(0, 2)])
    world.submit(1, [b"answer"])
    world.drain(leave=[(0, 2)])
    return world


MISSING = [
    (variant, guarantee)
    for variant in variants()
    for guarantee in OF_ANY_MESSAGES
    if guarantee not in variant.promises and guarantee not in RELIABLE
]


@pytest.mark.parametrize(("variant", "guarantee"), MISSING, ids=str)
def test_what_is_not_promised_is_broken_on_some_schedule(variant: Variant, guarantee: Guarantee) -> None:
    assert any(ORACLES[guarantee](random_world(variant, seed).history()) for seed in range(100))


def test_the_weaker_orders_promise_what_their_names_say() -> None:
    missing = {(variant.protocol, guarantee) for variant, guarantee in MISSING}
    assert missing == {
        ("fifo", Guarantee.CAUSAL),
        ("fifo", Guarantee.TOTAL),
        ("fifo", Guarantee.ACYCLIC),
        ("causal-vector", Guarantee.TOTAL),
        ("causal-vector", Guarantee.ACYCLIC),
        ("hierarchy", Guarantee.TOTAL),
        ("hierarchy", Guarantee.ACYCLIC),
        ("matrix", Guarantee.TOTAL),
        ("matrix", Guarantee.ACYCLIC),
    }


@every_variant
def test_members_that_deliver_in_a_total_order_give_its_keys(variant: Variant) -> None:
    deliveries = random_world(variant, 7).deliveries[0]
    keys = [delivery.order_key for delivery in deliveries if delivery.order_key is not None]
    assert len(keys) == (len(deliveries) if Guarantee.TOTAL in variant.promises else 0)
    assert keys == sorted(set(keys))


@every_variant
def test_everything_a_protocol_sends_survives_the_wire(variant: Variant) -> None:
    decoder = msgspec.msgpack.Decoder(Union[variant.kind.packets])  # noqa: UP007
    seen: Counter[type[Packet]] = Counter()
    for seed in range(10):
        for packet in random_world(variant, seed).packets:
            seen[type(packet)] += 1
            assert decoder.decode(msgspec.msgpack.encode(packet)) == packet
    assert set(seen) <= set(variant.kind.packets)
    assert len(seen) == len(variant.kind.packets) or variant.protocol in ("single-phase", "hierarchy")


def test_every_class_of_packet_is_sent_by_some_variant() -> None:
    sent = {type(packet) for variant in variants() for seed in range(10) for packet in random_world(variant, seed).packets}
    # Control packets are for groups whose members change; the tests of hierarchies have those.
    assert sent | {Control} == {kind for variant in variants() for kind in variant.kind.packets}


class Stranger(Packet, frozen=True):
    """A packet of no protocol."""


@every_variant
@pytest.mark.parametrize("source", [-1, 0, 3, 1 << 40])
def test_a_packet_of_somebody_who_is_not_another_member_changes_nothing(variant: Variant, source: int) -> None:
    world = World(3, variant.factory())
    world.submit(1, [b"a"])
    packet = world.channels[1, 0][0]
    refuses(world, source, packet)


@every_variant
def test_a_packet_of_no_known_class_changes_nothing(variant: Variant) -> None:
    refuses(World(3, variant.factory()), 1, Stranger())


@every_variant
def test_a_run_that_another_member_passes_off_as_its_own_changes_nothing(variant: Variant) -> None:
    world = World(3, variant.factory())
    world.submit(1, [b"a"])
    refuses(world, 2, world.channels[1, 0][0])


def refuses(world: World, source: int, packet: Packet) -> None:
    before = freeze(world.protocols[0])
    with pytest.raises(ProtocolViolation):
        world.protocols[0].receive(source, packet)
    assert freeze(world.protocols[0]) == before


@every_variant
def test_whatever_waits_says_for_whom(variant: Variant) -> None:
    waited = 0
    for seed in range(20):
        random = Random(seed)
        world = World(3, variant.factory(), reordering=variant.reordering)
        for member in (0, 1, 2, 1):
            world.submit(member, [b"a"] * random.randint(1, 3))
        while steps := world.steps():
            world.perform(random.choice(steps))
            for member, protocol in enumerate(world.protocols):
                waiting = protocol.waiting()
                assert sum(wait.run.count for wait in waiting) == protocol.held_back()
                assert all(wait.members and member not in wait.members and wait.because for wait in waiting)
                waited += len(waiting)
        assert not any(protocol.waiting() for protocol in world.protocols)
    assert waited


@every_variant
def test_the_same_inputs_have_the_same_effects_and_lead_to_the_same_state(variant: Variant) -> None:
    one, other = (World(2, variant.factory()) for _ in range(2))
    for world in (one, other):
        world.submit(0, [b"a", b"b"])
        world.submit(1, [b"c"])
        world.drain()
    assert one.deliveries == other.deliveries
    assert one.packets == other.packets
    assert [freeze(protocol) for protocol in one.protocols] == [freeze(protocol) for protocol in other.protocols]


def has_causes_at_two_others(world: World) -> bool:
    """Whether some message was sent after messages of two other members: a chain through three."""
    return any(len({cause.origin for cause in past} - {message.origin}) >= 2 for message, past in world.past.items())


def senders_alternate(world: World) -> bool:
    origins = [message.origin for message in world.log(0)]
    return sum(one != other for one, other in pairwise(origins)) > len(set(origins))


def concurrent(world: World) -> bool:
    """Whether some two messages were sent with no knowledge of each other."""
    past = world.past
    return any(one not in past[other] and other not in past[one] and one != other for one in past for other in past)


def crashed_message_was_lost(world: World) -> bool:
    """Whether the crashed member had sent something that no survivor could deliver."""
    return any(message.origin == world.crashed and message not in world.log(world.survivors()[0]) for message in world.past)
