"""The world itself: what can happen next, what is recorded, and how a crash goes."""

from __future__ import annotations

from copy import deepcopy

from quire.model.messages import MessageId
from tests.kit.state import clone, freeze
from tests.kit.variants import Variant
from tests.kit.world import End, Freeze, Take, World

FIFO = Variant("fifo", {})
SINGLE_PHASE = Variant("single-phase", {})


def test_only_the_head_of_a_channel_can_be_taken_unless_links_reorder() -> None:
    for reordering, steps in ((False, [Take(0, 1)]), (True, [Take(0, 1, 0), Take(0, 1, 1)])):
        world = World(2, FIFO.factory(), reordering=reordering)
        world.submit(0, [b"a"])
        world.submit(0, [b"b"])
        assert world.steps() == steps


def test_a_packet_that_is_taken_again_stays_on_its_channel() -> None:
    world = World(2, FIFO.factory(), reordering=True)
    world.submit(0, [b"a"])
    world.take(0, 1, again=True)
    assert world.steps() == [Take(0, 1)]
    world.take(0, 1)
    assert world.log(1) == [MessageId(0, 0)]


def test_the_past_of_a_message_is_all_that_its_sender_knew_of_also_through_others() -> None:
    world = World(3, FIFO.factory())
    world.submit(0, [b"a"])
    world.take(0, 1)
    world.submit(1, [b"b", b"c"])
    world.take(1, 2)
    world.submit(2, [b"d"])
    assert world.log(2) == [MessageId(1, 0), MessageId(1, 1), MessageId(2, 0)]
    assert world.past[MessageId(1, 1)] == {MessageId(0, 0), MessageId(1, 0)}
    assert world.past[MessageId(2, 0)] == {MessageId(0, 0), MessageId(1, 0), MessageId(1, 1)}


def test_a_crash_loses_the_tail_and_the_flush_brings_it_to_all_survivors_that_anyone_holds_it_for() -> None:
    world = World(3, SINGLE_PHASE.factory())
    world.submit(2, [b"a"])
    world.submit(2, [b"b"])
    world.crash(2, {0: 2, 1: 1})
    assert world.steps() == [Take(2, 1), Freeze(0), Freeze(1)]
    world.take(2, 1)
    world.freeze(0)
    world.freeze(1)
    assert world.steps() == [End(0), End(1)], "who is frozen takes nothing more"
    world.end(0)
    world.end(1)
    assert world.flushed == 1
    assert world.log(0) == world.log(1) == [MessageId(2, 0)]
    assert set(world.history().logs) == {0, 1}


def test_a_copied_state_is_equal_and_independent() -> None:
    for variant in (FIFO, SINGLE_PHASE, Variant("single-phase", {"acks": "point-to-point"}), Variant("two-phase", {})):
        world = World(2, variant.factory())
        world.submit(1, [b"a"])
        protocol = world.protocols[0]
        copy = clone(protocol)
        assert freeze(copy) == freeze(protocol) == freeze(deepcopy(protocol))
        copy.receive(1, world.channels[1, 0][0])
        assert freeze(copy) != freeze(protocol)
