"""What is said to messages that come: as seldom as possible, and never so seldom that anybody would wait for a timer."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from quire.model.errors import ProtocolViolation
from quire.model.payloads import Messages
from quire.views.effects import Write
from quire.views.packets import Known
from tests.kit.effort import runs
from tests.views.calm import Calm, everywhere, group

OPTIONS = [
    {"lookahead": 0}, {"lookahead": 8}, {"ids": "rotating"}, {"batches": "run-length"},
    {"batches": "run-length", "lookahead": 64}, {"acks": "basic"}, {"acks": "point-to-point", "lookahead": 4},
]  # fmt: skip


def arrive_in_any_order(world: Calm, choose: random.Random) -> None:
    """Everything that is on its way arrives, one after the other or together, and no time passes."""
    while True:
        while ends := world.readable():
            world.arrive(choose.choice(ends), choose.randint(1, 3), ends_turn=choose.random() < 0.5)
        for name in world.processes:
            world.end_turn(name)
        if not world.readable():
            return


@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(map(str, options.values())))
def test_whatever_is_sent_is_delivered_without_a_timer(options: dict[str, object], uniform: bool) -> None:
    for seed in range(runs(15, 500)):
        choose = random.Random(seed)
        names = "abcd"[: choose.randint(2, 4)]
        world, sent = group(names, options=options, uniform=uniform), 0
        world.settle()
        before = world.now
        for _ in range(choose.randint(1, 8)):
            for _ in range(choose.randint(1, 4)):
                count = choose.randint(1, 3)
                world.submit(choose.choice(names), [b"x"] * count)
                sent += count
            if choose.random() < 0.5 and (ends := world.readable()):
                world.arrive(choose.choice(ends), ends_turn=choose.random() < 0.5)
        arrive_in_any_order(world, choose)
        assert world.now == before
        assert everywhere(world, names, sent), (seed, names)


@pytest.mark.parametrize("uniform", [False, True])
def test_members_that_all_send_seldom_answer(uniform: bool) -> None:
    """Their messages say as much, and what waits behind one that waits for others needs no answer yet."""
    names, each = "abcdefgh", 10
    world, packets, choose = group(names, uniform=uniform), Counter[str](), random.Random(1)
    world.settle()
    for name in names:
        world.process(name).on_packet = lambda sent: packets.update([type(sent.packet).__name__] * sent.copies)

    def send_on() -> None:
        """Whoever has delivered its own message sends the next one."""
        for name in names:
            operations = world.member(name).core.operations
            if operations.settled == operations.last < each:
                world.submit(name, [b"x"])

    send_on()
    while ends := world.readable():
        world.arrive(choose.choice(ends))
        send_on()
    assert everywhere(world, names, each * len(names))
    answers = packets["Control"] + packets["Have"]
    assert answers <= (2 if uniform else 1) * packets["Data"], packets


@pytest.mark.parametrize("uniform", [False, True])
def test_whoever_goes_on_after_its_own_message_answers_the_others_with_the_next(uniform: bool) -> None:
    names, each = "abcdefgh", 10
    world, left, choose = group(names, uniform=uniform), Counter[str](), random.Random(1)
    world.settle()
    for name in names:
        world.submit(name, [b"x"])
    left["Data"] += len(names)
    while ends := world.readable():
        name = choose.choice(ends).name
        for end in ends:
            if end.name == name:
                world.arrive(end, 3, ends_turn=False)
        member, process = world.member(name), world.process(name)
        process.on_packet = lambda sent: left.update([type(sent.packet).__name__])
        world._run(name, process.end_turn(world.now, may_wait=True))
        operations = member.core.operations
        while operations.settled == operations.last < each:
            world.submit(name, [b"x"])
        if member.waits:
            world._run(name, process.end_turn(world.now))
    assert everywhere(world, names, each * len(names))
    assert left["Data"] == each * len(names)
    assert left["Control"] + left["Have"] <= left["Data"] // (3 if uniform else 4), left


def test_the_members_that_follow_are_written_to_first() -> None:
    """They are the ones that acknowledge, and where all send, they wait for it to send their next messages."""
    world = group("abcd")
    world.settle()
    effects = world.process("b").submit(world.now, Messages.of([b"x"]))
    written = [number for effect in effects if isinstance(effect, Write) for number, _ in effect.frames]
    assert [world.network.ends[number].other.name for number in written] == ["c", "d", "a"]


def test_whoever_has_nothing_to_wait_for_answers_at_once() -> None:
    """Its application was told nothing of its own, so that it is not likely to send just now."""
    world = group("abc", options={"lookahead": 0}, uniform=True)
    world.settle()
    world.submit("a", [b"x"])
    for end in world.readable():
        if end.name == "b":
            world.arrive(end, ends_turn=False)
    effects = world.process("b").end_turn(world.now, may_wait=True)
    assert "Write" in {type(effect).__name__ for effect in effects}
    assert not world.member("b").waits


def test_who_tells_of_another_number_of_members_than_there_are_is_refused() -> None:
    world = group("abc")
    world.settle()
    knowledge = world.member("a").membership.ordering.knowledge
    with pytest.raises(ProtocolViolation, match="counts for another number of members"):
        knowledge.learn(1, Known((1, 1), (0, 0, 0)))
    assert knowledge.held[1] == [0, 0, 0]


def test_a_member_holds_what_it_has_sent_whatever_it_said_before() -> None:
    """What it says with a message is what it had before that."""
    world = group("abc")
    world.settle()
    knowledge = world.member("a").membership.ordering.knowledge
    knowledge.came(1, 5)
    knowledge.learn(1, Known((2, 4, 1), (2, 3, 0)))
    assert (knowledge.held[1], knowledge.delivered[1]) == ([2, 5, 1], (2, 3, 0))
