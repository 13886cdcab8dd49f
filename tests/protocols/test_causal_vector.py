"""Causal order by vectors: the condition, what waits for what, and what is refused."""

from __future__ import annotations

from copy import deepcopy

import pytest

from quire.model.errors import BadInput, HoldBackFull, ProtocolViolation
from quire.model.messages import NUMBER_MAX, Body, Run, make_run
from quire.protocols.causal_vector import Cast, CausalVector, CausalVectorOptions, may_deliver
from quire.protocols.contract import NOTHING, Deliver, Send


def member(me: int = 0, held: int = 100) -> CausalVector:
    return CausalVector(me, 3, CausalVectorOptions(held=held))


def cast(origin: int, vector: tuple[int, ...], count: int = 1) -> Cast:
    return Cast(make_run(origin, vector[origin], [b"x"] * count), vector)


@pytest.mark.parametrize(
    ("vector", "delivered", "answer"),
    [
        ((0, 0, 0), (0, 0, 0), True),
        ((0, 2, 0), (5, 2, 7), True),
        ((0, 2, 0), (0, 1, 0), False),
        ((0, 2, 0), (0, 3, 0), False),
        ((1, 0, 0), (0, 0, 0), False),
        ((0, 0, 3), (9, 0, 2), False),
    ],
)
def test_a_run_may_be_delivered_next_after_its_senders_last_and_after_all_its_causes(
    vector: tuple[int, ...], delivered: tuple[int, ...], answer: bool
) -> None:
    assert may_deliver(1, vector, delivered) is answer


def test_an_own_run_is_delivered_at_once_and_carries_what_was_delivered_before() -> None:
    causal = member()
    causal.receive(1, cast(1, (0, 0, 0), count=3))
    run = make_run(0, 0, [b"a", b"b"])
    assert causal.submit(run) == (Send(Cast(run, (0, 3, 0))), Deliver(run))
    again = make_run(0, 2, [b"c"])
    assert causal.submit(again) == (Send(Cast(again, (2, 3, 0))), Deliver(again))


def test_an_answer_waits_for_its_question_and_both_are_delivered_together() -> None:
    causal = member()
    question, answer = cast(1, (0, 0, 0)), cast(2, (0, 1, 0))
    assert causal.receive(2, answer) == NOTHING
    assert causal.held_back() == 1
    assert causal.receive(1, question) == [Deliver(question.run), Deliver(answer.run)]
    assert causal.held_back() == 0


def test_what_waits_names_its_missing_causes() -> None:
    causal = member()
    causal.receive(2, cast(2, (0, 4, 1)))
    (waiting,) = causal.waiting()
    assert waiting.members == (1, 2)
    assert waiting.because == "it happened after 1:3, 2:0, not yet delivered here"


def test_a_release_releases_what_waits_for_it_whatever_the_order_of_members() -> None:
    causal = CausalVector(0, 4, CausalVectorOptions())
    chain = [cast(3, (0, 0, 0, 0)), cast(2, (0, 0, 0, 1)), cast(1, (0, 0, 1, 1)), cast(3, (0, 1, 1, 1))]
    for packet in reversed(chain):
        effects = causal.receive(packet.run.origin, packet)
    assert effects == [Deliver(packet.run) for packet in chain]


def test_a_repeated_run_is_dropped_whether_it_was_delivered_or_waits() -> None:
    causal = member()
    delivered, early = cast(1, (0, 0, 0)), cast(2, (0, 2, 0))
    causal.receive(1, delivered)
    causal.receive(2, early)
    before = deepcopy(vars(causal))
    assert causal.receive(1, delivered) == NOTHING
    assert causal.receive(2, early) == NOTHING
    assert vars(causal) == before


def test_a_full_hold_back_buffer_leaves_the_packet_on_its_link_but_takes_the_cause() -> None:
    causal = member(held=1)
    causal.receive(2, cast(2, (0, 1, 0)))
    with pytest.raises(HoldBackFull):
        causal.receive(2, cast(2, (0, 1, 1)))
    assert causal.held_back() == 1
    assert len(causal.receive(1, cast(1, (0, 0, 0)))) == 2


IMPOSSIBLE = {
    "its vector is too short": Cast(make_run(1, 1, [b"x"]), (0, 1)),
    "its vector is too long": Cast(make_run(1, 1, [b"x"]), (0, 1, 0, 0)),
    "its vector differs from its number": Cast(make_run(1, 1, [b"x"]), (0, 2, 0)),
    "its vector has a negative count": Cast(make_run(1, 1, [b"x"]), (0, 1, -1)),
    "its vector overflows": Cast(make_run(1, 1, [b"x"]), (0, 1, NUMBER_MAX + 1)),
    "it follows what this member never sent": Cast(make_run(1, 1, [b"x"]), (1, 1, 0)),
    "its origin is somebody else": cast(2, (0, 0, 0)),
    "part of it was delivered": cast(1, (0, 0, 0), count=2),
    "part of it waits": cast(1, (0, 4, 0)),
    "it reaches into what waits": cast(1, (0, 2, 0), count=2),
    "it differs from what waits": cast(1, (0, 3, 1), count=2),
    "its body is too short": Cast(Run(1, 1, 2, Body(b"abc", 2)), (0, 1, 0)),
}


@pytest.mark.parametrize("packet", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_a_packet_that_cannot_be_is_refused_and_changes_nothing(packet: Cast) -> None:
    causal = member()
    causal.receive(1, cast(1, (0, 0, 0)))
    causal.receive(1, cast(1, (0, 3, 0), count=2))
    before = deepcopy(vars(causal))
    with pytest.raises(ProtocolViolation):
        causal.receive(1, packet)
    assert vars(causal) == before


@pytest.mark.parametrize("run", [make_run(1, 0, [b"a"]), make_run(0, 1, [b"a"]), Run(0, 0, 0)])
def test_a_run_that_is_not_the_members_next_cannot_be_submitted(run: Run) -> None:
    with pytest.raises(BadInput):
        member().submit(run)
