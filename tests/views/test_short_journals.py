"""What a journal begins with when it was shortened says the same as everything that was dropped; and who founds a group."""

from __future__ import annotations

import msgspec

from quire.simulation.membership.world import World
from quire.views.core import GroupSettings
from quire.views.effects import Checkpoint, Send
from quire.views.packets import AskState
from quire.views.view import Participant


def world(**chosen: object) -> World:
    people = [Participant(name, 1) for name in "abc"]
    return World(GroupSettings(founders=tuple(people), protocol="single-phase", founding_patience=2, **chosen), people)  # type: ignore[arg-type]


def settle(world: World, rounds: int = 8) -> None:
    for _ in range(rounds):
        for name, process in world.processes.items():
            if process.running:
                world.tick(name)
                world.sync(name)
        while links := world.deliverable():
            world.arrive(links[0])


def logs(world: World) -> list[list[tuple[str, int]]]:
    return [process.log for process in world.processes.values() if process.running]


def test_a_member_restarts_from_a_short_journal_and_has_everything() -> None:
    group = world(journal=True)
    for name in "abc":
        group.start(name, founds=True)
    settle(group)
    for name in "abc":
        group.submit(name, [b"before"] * 3)
    settle(group)
    long = len(group.processes["a"].journal)
    for name in "abc":
        group.shorten_journal(name)
    assert len(group.processes["a"].journal) == 2 < long
    group.submit("a", [b"after"] * 2)
    settle(group)
    before = [list(log) for log in logs(group)]
    for name in "abc":
        group.crash(name)
    for name in "abc":
        group.restart(name)
    settle(group)
    assert logs(group) == before
    assert len(before[0]) == 11
    group.submit("a", [b"and on"])
    settle(group)
    assert logs(group) == [[*log, ("a.1", 6)] for log in before]


def test_operations_that_nobody_has_executed_yet_survive_in_a_short_journal() -> None:
    group = world(journal=True)
    for name in "abc":
        group.start(name, founds=True)
    settle(group)
    group.submit("a", [b"unsent"] * 2)
    group.shorten_journal("a")
    group.crash("a", lost={"b": 99, "c": 99})
    group.restart("a")
    settle(group)
    assert logs(group)[0][-2:] == [("a.1", 1), ("a.1", 2)]
    assert logs(group)[0] == logs(group)[1] == logs(group)[2]


def test_what_is_held_and_not_delivered_survives_in_a_short_journal() -> None:
    """b holds a message of a, and a is lost for ever."""
    group = world(journal=True, uniform=True)
    for name in "abc":
        group.start(name, founds=True)
    settle(group)
    group.submit("a", [b"for b alone"])
    group.sync("a")
    while links := [link for link in group.deliverable() if (link[0], link[2]) == ("a", "b")]:
        group.arrive(links[0])
    group.crash("a", lost={"b": 99, "c": 99})
    assert group.processes["b"].log == []
    group.shorten_journal("b")
    group.crash("b", lost={"a": 99, "c": 99})
    group.restart("b")
    for name in "bc":
        group.suspect(name, "a")
    settle(group, 20)
    assert logs(group) == [[("a.1", 1)]] * 2


def test_founders_that_cannot_know_whether_they_were_started_before_begin_together() -> None:
    for together, begins in ((False, True), (True, False)):
        group = world(found_together=together)
        group.start("a", founds=True)
        group.start("b", founds=True)
        for name in "ab":
            group.suspect(name, "c")
        settle(group)
        member = group.processes["a"].member
        assert member is not None
        assert (member.core.mode == "normal") == begins
        group.start("c", founds=True)
        for name in "ab":
            group.trust(name, "c")
        settle(group, 20)
        assert {len(view.members) for view in group.observer.views.values()} >= {3}


def test_a_snapshot_is_of_the_moment_in_which_it_was_asked_for() -> None:
    group = world(uniform=True)
    group.start("a", founds=True)
    group.start("b", founds=True)
    settle(group)
    member = group.processes["a"].member
    assert member is not None
    donor = member.membership.donor
    group.submit("a", [b"before"])
    settle(group)
    donor.state_asked("c", AskState(member.core.view.epoch, None, 0))
    asked = member.core.position
    assert [type(effect) for effect in member.core.out] == [Checkpoint, Send]
    member.core.out.clear()
    group.submit("a", [b"after"])
    settle(group)
    assert member.core.position != asked
    donor.checkpointed(msgspec.msgpack.encode([("a.1", 1)]))
    group.start("c", founds=False)
    settle(group, 20)
    assert logs(group)[2] == logs(group)[0] == [("a.1", 1), ("a.1", 2)]
