"""Bodies that go from members to members: what has a number is at all who must deliver it, whoever comes, goes or dies."""

from __future__ import annotations

from random import Random

import pytest

from quire.model.messages import Run, pack
from quire.model.packets import Packet
from quire.protocols.node import Effects, Send
from quire.protocols.sequencing import Client, Sequencer, SequencingOptions, numbering
from quire.protocols.sequencing import bodies as module
from quire.protocols.sequencing import packets as wire
from quire.protocols.sequencing.errors import GapUnrecoverable
from quire.protocols.sequencing.events import JOIN, MESSAGES, Event
from quire.protocols.sequencing.notices import Failed
from quire.protocols.sequencing.outbox import Outstanding
from quire.protocols.sequencing.state import GroupState
from tests.sequencing.kit import MS, Service
from tests.sequencing.oracle import wrong_with
from tests.sequencing.plans import random_plan

ME, OTHER, THIRD, SEQUENCER, DIRECTORY = 0, 1, 2, 8, 9
BODY = pack([b"x"])
RUNS = 150


def client(view: tuple[int, ...] = (ME, OTHER, THIRD)) -> Client:
    made = Client(ME, (SEQUENCER,), DIRECTORY, SequencingOptions(bodies="direct"))
    made.locations["G"], made.hold.delivered["G"], made.views["G"] = SEQUENCER, 0, view
    return made


def sends(effects: Effects) -> list[tuple[Packet, tuple[int, ...]]]:
    return [(effect.packet, effect.to) for effect in effects if isinstance(effect, Send)]


def restless_links(service: Service, seed: int) -> None:
    """Every client can reach some others, and others after a while."""
    random = Random(f"links {seed}")

    def again(at_ms: int) -> None:
        for each in service.clients:
            others = range(len(service.clients))
            each.spreading.linked = frozenset(other for other in others if random.random() < 0.8)
        if at_ms < 5000:
            service.world.at((at_ms + 40) * MS, again, at_ms + 40)

    again(0)


def play(seed: int, order: str, *, links: bool) -> Service:
    plan = random_plan(seed, order, bodies="direct")
    made = Service(
        plan.options, plan.initial, clients=plan.clients, sequencers=plan.sequencers, seed=seed, faults=plan.faults
    )  # fmt: skip
    if links:
        restless_links(made, seed)
    return made.play(plan.actions).run()


@pytest.mark.parametrize("order", ["total", "hybrid", "causal-total"])
def test_nothing_is_lost_while_links_between_clients_come_and_go(order: str) -> None:
    for seed in range(RUNS):
        assert wrong_with(play(seed, order, links=True)) is None, seed


def test_numbering_what_a_newcomer_lacks_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbering, "_is_outdated", lambda *_: False)
    assert any(wrong_with(play(seed, "total", links=False)) is not None for seed in range(RUNS))


def test_not_waiting_until_everybody_keeps_the_bodies_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(self: module.Spreading, one: Outstanding, view: object) -> tuple[int, ...] | None:
        return None if one.holders is None or view is None else ()

    monkeypatch.setattr(module.Spreading, "lacking", lacking)
    assert any(wrong_with(play(seed, "total", links=False)) is not None for seed in range(RUNS))


def test_numbers_are_asked_for_when_all_members_keep_the_bodies() -> None:
    made = client()
    run = Run(ME, 0, 1, BODY)
    assert sends(made.multicast(0, "G", BODY, 1)) == [(wire.Bodies("G", 0, run), (OTHER, THIRD))]
    assert not made.receive(1, OTHER, wire.Kept("G", 0, 0))
    assert not made.receive(1, OTHER, wire.Kept("G", 0, 0))
    [(request, to)] = sends(made.receive(2, THIRD, wire.Kept("G", 0, 0)))
    assert (request, to) == (wire.DoMulticast("G", ME, 0, 0, Run(ME, 0, 1), view=0), (SEQUENCER,))


def test_a_newcomer_gets_the_bodies_too() -> None:
    made = client((ME, OTHER))
    made.multicast(0, "G", BODY, 1)
    made.receive(1, OTHER, wire.Kept("G", 0, 0))
    joined = made.receive(2, SEQUENCER, Event("G", 1, JOIN, THIRD, 1, members=(ME, OTHER, THIRD)))
    assert [(packet.name, to) for packet, to in sends(joined)] == [("BODY", (THIRD,))]
    assert not made.receive(3, THIRD, wire.Kept("G", 0, 0))  # Of an earlier membership.
    [(request, _)] = sends(made.receive(3, THIRD, wire.Kept("G", 1, 0)))
    assert isinstance(request, wire.DoMulticast)
    assert request.view == 1


def test_what_was_given_to_members_before_a_join_is_not_numbered_after_it() -> None:
    sequencer = Sequencer(SEQUENCER, (SEQUENCER,), DIRECTORY, SequencingOptions(bodies="direct"))
    state = sequencer.groups["G"] = GroupState("G", members={ME: 0}, reached={ME: 0})
    sequencer.receive(0, DIRECTORY, wire.JoinAnswer("G", OTHER, 1, True))
    assert not sequencer.receive(1, ME, wire.DoMulticast("G", ME, 0, 0, Run(ME, 0, 1), view=0))
    assert (state.seq, sequencer.held) == (1, {})
    assert sequencer.receive(1, ME, wire.DoMulticast("G", ME, 0, 0, Run(ME, 0, 1), view=1))
    assert state.seq == 2
    sequencer.receive(2, ME, wire.Leave("G", ME, 1))
    assert not sequencer.receive(3, ME, wire.DoMulticast("G", ME, 1, 0, Run(ME, 1, 1), view=3))


def test_where_a_member_cannot_be_reached_messages_are_relayed_at_once() -> None:
    made = client()
    made.spreading.linked = {OTHER}
    [(request, _)] = sends(made.multicast(0, "G", BODY, 1))
    assert request == wire.DoMulticast("G", ME, 0, 0, Run(ME, 0, 1, BODY))


def test_a_member_that_does_not_answer_is_waited_for_once() -> None:
    made = client()
    made.multicast(0, "G", BODY, 1)
    made.receive(0, OTHER, wire.Kept("G", 0, 0))
    said = [packet for at in range(1, 20) for packet, _ in sends(made.wake(at * 50 * MS))]
    bodies, relayed = (sum(isinstance(each, kind) for each in said) for kind in (wire.Bodies, wire.DoMulticast))
    assert (bodies, relayed >= 1) == (module.TRIES_MAX - 1, True)
    made.spreading.silent.add(THIRD)  # As it is until the next report.
    assert [packet.name for packet, _ in sends(made.multicast(10**9, "G", BODY, 1))] == ["DO-MULTICAST"]


def test_bodies_are_kept_in_little_room_and_only_until_they_are_delivered() -> None:
    made = Client(ME, (SEQUENCER,), DIRECTORY, SequencingOptions(bodies="direct", window=2, history=2))
    made.locations["G"], made.hold.delivered["G"], made.views["G"] = SEQUENCER, 0, (ME, OTHER)
    runs = [Run(OTHER, first, 1, BODY) for first in range(3)]
    answers = [sends(made.receive(0, OTHER, wire.Bodies("G", 0, run))) for run in runs]
    assert answers == [[(wire.Kept("G", 0, 0), (OTHER,))], [(wire.Kept("G", 0, 1), (OTHER,))], []]
    made.receive(1, SEQUENCER, Event("G", 1, MESSAGES, OTHER, run=Run(OTHER, 0, 1), direct=True))
    assert not sends(made.receive(2, OTHER, wire.Bodies("G", 0, runs[0])))
    assert sends(made.receive(2, OTHER, wire.Bodies("G", 0, runs[2])))


def test_bodies_that_are_not_what_was_numbered_are_a_gap() -> None:
    made = client((ME, OTHER))
    made.receive(0, OTHER, wire.Bodies("G", 0, Run(OTHER, 0, 1, BODY)))
    [failed] = made.receive(1, SEQUENCER, Event("G", 1, MESSAGES, OTHER, run=Run(OTHER, 0, 2), direct=True))
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, GapUnrecoverable)
