"""Members with a journal that are started again: what has to be durable before what is said.

Each test is a schedule that goes wrong without one rule; `make mutants` takes the rule away.
"""

from __future__ import annotations

from quire.views.packets import Accept, Data, Prepare, Promise, Vote
from tests.views.stage import Stage


def _start_again(stage: Stage, name: str) -> None:
    """It has forgotten whatever was not durable. What it had sent still arrives."""
    stage.crash(name)
    stage.restart(name)


def test_a_promise_is_durable_before_it_is_given() -> None:
    """m1 has promised to m0. Before its promise to m2 is durable, it is started again, and votes for what m0 proposes."""
    stage = Stage(3, journal=True)
    stage.found()
    for leader in ("m0", "m2"):
        stage.ballot(leader)
        stage.sync(leader)
    stage.pass_on("m0", "m1", Prepare)
    stage.sync("m1")
    stage.pass_on("m2", "m1", Prepare)
    _start_again(stage, "m1")
    stage.hasty = True
    stage.pass_on("m1", "m0", Promise)
    stage.sync("m0")
    stage.vote("m0", "m1")
    assert stage.observer.views[3].names() == ("m0", "m1")
    for _ in range(2):
        stage.pass_on("m1", "m2")
        stage.sync("m2")
        stage.pass_on("m2", "m1")
        stage.sync("m1")
    stage.settle()


def _decide_of_two(stage: Stage) -> None:
    """m0 proposes a view of m0 and m1, and its own vote is durable."""
    stage.found()
    stage.hasty = True
    stage.promise("m0", "m1")


def _decide_of_the_others(stage: Stage, leader: str, other: str) -> None:
    """Two members, of whom one was started again, try for a view without the third, which they cannot reach."""
    stage.promise(leader, other)
    stage.sync(leader)
    stage.vote(leader, other)
    stage.pass_on(leader, other)


def test_a_vote_is_remembered() -> None:
    """m0 has decided with the vote of m1, which is started again and then votes with m2: for the same."""
    stage = Stage(3, journal=True)
    _decide_of_two(stage)
    stage.vote("m0", "m1")
    assert stage.observer.views[3].names() == ("m0", "m1")
    _start_again(stage, "m1")
    stage.part(["m0"], ["m1", "m2"])
    _decide_of_the_others(stage, "m2", "m1")
    assert stage.member("m2").core.mode == "joining"
    stage.settle()


def test_a_vote_is_durable_before_it_is_given() -> None:
    """m1 is started again before its vote for what m0 proposes is durable, and votes for something else."""
    stage = Stage(3, journal=True)
    _decide_of_two(stage)
    stage.pass_on("m0", "m1", Accept)
    stage.pass_on("m1", "m0")
    _start_again(stage, "m1")
    stage.part(["m0"], ["m1", "m2"])
    _decide_of_the_others(stage, "m2", "m1")
    assert stage.observer.views[3].names() == ("m1", "m2")
    stage.settle()


def test_the_vote_of_the_leader_counts_when_it_is_durable() -> None:
    """m0 has the vote of m1, and is started again before its own is durable. It votes for something else, with m2."""
    stage = Stage(3, journal=True)
    stage.found()
    stage.hasty = True
    stage.ballot("m0")
    stage.sync("m0")
    stage.pass_on("m0", "m1", Prepare)
    stage.sync("m1")
    stage.pass_on("m1", "m0", Promise)
    stage.vote("m0", "m1")
    stage.crash_silently("m0")
    stage.restart("m0")
    stage.part(["m1"], ["m0", "m2"])
    _decide_of_the_others(stage, "m0", "m2")
    assert stage.observer.views[3].names() == ("m0", "m2")
    stage.settle()


def test_how_the_last_view_ended_is_remembered() -> None:
    """m1 knows from m0, which is gone, how the view ended; it is started again before m2 has heard."""
    stage = Stage(3, journal=True)
    stage.found()
    stage.promise("m0", "m1", "m2")
    stage.pass_on("m0", "m1", Accept)
    stage.sync("m1")
    stage.pass_on("m1", "m0", Vote)
    stage.pass_on("m0", "m1")
    stage.sync("m1")
    for name in ("m0", "m1"):
        stage.crash_silently(name)
    stage.restart("m1")
    assert (stage.member("m1").core.view.epoch, stage.member("m2").core.view.epoch) == (3, 2)
    stage.settle()
    assert stage.member("m2").core.view.names() == ("m1", "m2")


def test_what_is_not_durable_is_not_sent() -> None:
    """m0 is started again, and has forgotten what was submitted: nobody else may know of it."""
    stage = Stage(3, journal=True)
    stage.found()
    stage.submit("m0")
    stage.pass_on("m0", "m1")
    _start_again(stage, "m0")
    stage.settle()
    assert [stage.log(name) for name in stage.founders] == [[], [], []]


def test_have_undurable() -> None:
    """m0 holds what m1 sent, but not durably, and is started again. It goes on alone, so m1 must not have delivered it."""
    stage = Stage(2, journal=True, uniform=True)
    stage.found()
    stage.submit("m1")
    stage.sync("m1")
    stage.sync("m1")
    stage.pass_on("m1", "m0", Data)
    stage.tick("m0")
    stage.pass_on("m0", "m1")
    assert stage.log("m1") == []
    _start_again(stage, "m0")
    stage.part(["m0"], ["m1"])
    stage.hasty = True
    stage.promise("m0")
    assert stage.observer.views[3].names() == ("m0",)
    stage.settle()
    assert stage.log("m0") == stage.log("m1") == [("m1.1", 1)]
