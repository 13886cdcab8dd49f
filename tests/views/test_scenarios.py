"""The situations for which the rules of views are made, step by step: with the rules every promise is kept.

They are the scripts of `golden/views_scenarios.json` and `golden/v2_scenarios.json`, told by what happens instead of by how
many packets a link has had. `make mutants` takes each rule away, and requires that its scenario fails.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from quire.simulation.membership.observer import Violation
from quire.views.packets import Accept, Data, Fetch, Fill, Prepare, Promise, Vote
from tests.views.stage import Stage

GOLDEN = Path(__file__).parents[1] / "golden"


def test_causal_hole() -> None:
    _play_causal_hole([1, 1, 1, 1, 1])


def test_causal_hole_runs() -> None:
    _play_causal_hole([2, 2, 2, 1, 3])


def _play_causal_hole(counts: list[int]) -> None:
    """m4 has delivered what only it has of m3, and sends to m0 only; both die. So m0 has an effect without its cause."""
    stage = Stage(5)
    stage.found()
    for name, count in zip(("m0", "m1", "m2"), counts, strict=False):
        stage.submit(name, [b"x"] * count)
        stage.pass_on(name, "m4")
    stage.submit("m3", [b"x"] * counts[3])
    stage.pass_on("m3", "m4")
    assert ("m3.1", counts[3]) in stage.log("m4")
    stage.submit("m4", [b"x"] * counts[4])
    stage.pass_on("m4", "m0", Data)
    stage.crash_silently("m3")
    stage.crash_silently("m4")
    stage.settle()
    expected = [(f"m{rank}.1", number + 1) for rank in range(3) for number in range(counts[rank])]
    assert [stage.log(name) for name in ("m0", "m1", "m2")] == [expected] * 3


def test_two_members() -> None:
    """Two that cannot reach each other: the senior goes on alone, and the other waits."""
    stage = Stage(2)
    stage.found()
    stage.part(["m0"], ["m1"])
    for name, other in (("m0", "m1"), ("m1", "m0")):
        stage.submit(name)
        stage.suspect(name, other)
        stage.ballot(name)
    stage.submit("m0")
    assert stage.member("m0").core.view.names() == ("m0",)
    assert (stage.member("m1").core.mode, stage.member("m1").core.view.epoch) == ("frozen", 2)
    stage.settle()
    assert sorted(stage.log("m0")) == sorted(stage.log("m1")) == [("m0.1", 1), ("m0.1", 2), ("m1.1", 1)]


def test_two_members_of_whom_neither_goes_on_alone_where_ties_are_strict() -> None:
    stage = Stage(2, tie="strict")
    stage.found()
    stage.part(["m0"], ["m1"])
    for name, other in (("m0", "m1"), ("m1", "m0")):
        stage.suspect(name, other)
        stage.ballot(name)
    assert [stage.member(name).core.mode for name in ("m0", "m1")] == ["frozen", "frozen"]
    stage.settle()
    assert stage.member("m1").core.view.names() == ("m0", "m1")


def test_forgotten_promise() -> None:
    """m1 promises to m0 and then to m2, is started again, and hears what m0 proposes: its later promise binds it still."""
    stage = Stage(3, journal=True)
    stage.found()
    for leader in ("m0", "m2"):
        stage.ballot(leader)
        stage.sync(leader)
        stage.pass_on(leader, "m1", Prepare)
        stage.sync("m1")
    stage.crash("m1")
    stage.restart("m1")
    stage.hasty = True
    for leader in ("m0", "m2"):
        stage.pass_on("m1", leader)
        stage.sync(leader)
        stage.pass_on(leader, "m1")
        stage.sync("m1")
        stage.pass_on("m1", leader)
    stage.settle()
    assert stage.observer.views[3].names() == ("m1", "m2")


def test_old_incarnation_in_view() -> None:
    """m2 is started again while it is voted into a view. It is not the process that the view names, so it waits for the
    next one."""
    stage = Stage(3, journal=True)
    stage.found()
    stage.ballot("m0")
    stage.sync("m0")
    for name in ("m1", "m2"):
        stage.pass_on("m0", name, Prepare)
        stage.sync(name)
        stage.pass_on(name, "m0", Promise)
    stage.crash("m2")
    stage.sync("m0")
    stage.pass_on("m0", "m1", Accept)
    stage.sync("m1")
    stage.pass_on("m1", "m0", Vote)
    stage.pass_on("m0", "m1")
    stage.submit("m0")
    stage.sync("m0")
    stage.restart("m2")
    stage.tick("m0")
    stage.pass_on("m0", "m2")
    assert stage.observer.views[3].incarnation("m2") == 1
    assert (stage.member("m2").core.mode, stage.member("m2").core.view.epoch) == ("frozen", 3)
    stage.submit("m0")
    stage.sync("m0")
    stage.pass_on("m0", "m2")
    stage.settle()
    assert stage.log("m2") == [("m0.1", 1), ("m0.1", 2)]


def test_fill_before_accept() -> None:
    """Only m0 has what m4 sent before it died. The others vote for a cut with it, m0 decides and dies: they have it now."""
    stage = Stage(5)
    stage.found()
    stage.submit("m4", [b"x", b"x"])
    stage.pass_on("m4", "m0", Data)
    stage.crash_silently("m4")
    stage.ballot("m0")
    for name in ("m1", "m2", "m3"):
        stage.pass_on("m0", name, Prepare)
        stage.pass_on(name, "m0", Promise)
    for name in ("m1", "m2"):
        stage.pass_on("m0", name, Accept)
        stage.pass_on(name, "m0", Vote)
    assert stage.log("m0") == [("m4.1", 1), ("m4.1", 2)]
    stage.crash_silently("m0")
    stage.settle()
    assert [stage.log(name) for name in ("m1", "m2", "m3")] == [[("m4.1", 1), ("m4.1", 2)]] * 3


def test_uniform_gate() -> None:
    """A message that nobody else has is not delivered: its sender may die with it."""
    stage = Stage(3, uniform=True)
    stage.found()
    stage.submit("m0")
    assert stage.log("m0") == []
    stage.crash_silently("m0")
    stage.settle()
    assert stage.log("m1") == []


def _pull(stage: Stage) -> None:
    """m4 is dead, and m0 leads a ballot."""
    stage.crash_silently("m4")
    stage.ballot("m0")
    for name in ("m1", "m2", "m3"):
        stage.pass_on("m0", name, Prepare)
        stage.pass_on(name, "m0", Promise)


def test_pull_holder_dies() -> None:
    """The one who alone holds some runs dies before it hands them on: the others are a quorum, and go on without them."""
    stage = Stage(5, uniform=True)
    stage.found()
    stage.submit("m4", [b"x"] * 3)
    stage.pass_on("m4", "m3", Data)
    _pull(stage)
    stage.pass_on("m0", "m3", Fetch)
    stage.crash_silently("m3")
    stage.settle()
    assert stage.observer.views[3].names() == ("m0", "m1", "m2")
    assert stage.log("m0") == []


def test_pull_second_holder() -> None:
    """The one who is asked for runs dies, and another has them, too."""
    stage = Stage(5, uniform=True)
    stage.found()
    stage.submit("m0")
    for name in ("m1", "m2", "m3", "m4"):
        stage.pass_on("m0", name)
    stage.submit("m4", [b"x"] * 3)
    stage.pass_on("m4", "m2", Data)
    stage.pass_on("m4", "m3", Data)
    _pull(stage)
    stage.crash_silently("m2")
    stage.pass_on("m0", "m3", Fetch)
    stage.pass_on("m3", "m0", Fill)
    stage.settle()
    assert stage.observer.views[3].names() == ("m0", "m1", "m3")
    assert stage.log("m0") == [("m0.1", 1), ("m4.1", 1), ("m4.1", 2), ("m4.1", 3)]


def test_late_founder() -> None:
    """Two of three founders begin. The third finds that they have, and comes in with all that they did."""
    stage = Stage(3, uniform=True)
    for name in ("m1", "m0"):
        stage.start(name, founds=True)
    stage.settling.tell_the_truth()
    stage.ballot("m0")
    for _ in range(3):
        stage.pass_on("m0", "m1")
        stage.pass_on("m1", "m0")
    assert stage.observer.views[2].names() == ("m0", "m1")
    stage.submit("m0", [b"x", b"x"])
    stage.submit("m1")
    stage.start("m2", founds=True)
    stage.tick("m2")
    stage.pass_on("m2", "m0")
    stage.pass_on("m0", "m2")
    assert stage.member("m2").core.mode == "joining"
    stage.settle()
    assert stage.log("m2") == stage.log("m0")
    assert sorted(stage.log("m2")) == [("m0.1", 1), ("m0.1", 2), ("m1.1", 1)]


def _found_by_two_and_restart_one(*, founds_again: bool) -> Stage:
    """m0 founds with m1, which is started again, and then hears of m2, who has heard of nothing."""
    stage = Stage(3)
    for name in stage.founders:
        stage.start(name, founds=True)
    stage.part(["m0"], ["m2"])
    stage.suspect("m0", "m2")
    stage.suspect("m2", "m0")
    stage.ballot("m0")
    stage.pass_on("m0", "m1", Prepare)
    stage.pass_on("m1", "m0", Promise)
    stage.pass_on("m0", "m1", Accept)
    stage.pass_on("m1", "m0", Vote)
    assert stage.observer.views[2].names() == ("m0", "m1")
    stage.crash("m1")
    stage.start("m1", founds=founds_again)
    stage.ballot("m2")
    for _ in range(3):
        stage.pass_on("m2", "m1")
        stage.pass_on("m1", "m2")
    return stage


def test_founder_twice() -> None:
    """A founder without a memory that is started again founds no more."""
    stage = _found_by_two_and_restart_one(founds_again=False)
    assert stage.member("m2").core.view.epoch == 1
    stage.settle()
    assert set(stage.member("m2").core.view.names()) == {"m0", "m1", "m2"}


def test_a_founder_that_founds_twice_parts_the_group() -> None:
    with pytest.raises(Violation, match="one view per epoch"):
        _found_by_two_and_restart_one(founds_again=True)


def test_read_minority() -> None:
    """m2, m3 and m4 have gone on to a view in which something is executed; m4 does not know yet. What m0, m1 and m4 hold
    together is not enough for a read, because m4 has promised to be in that view."""
    stage = Stage(5, uniform=True)
    stage.found()
    stage.part(["m0", "m1"], ["m2", "m3"])
    for name in ("m0", "m1"):
        stage.suspect("m2", name)
    stage.ballot("m2")
    for name in ("m3", "m4"):
        stage.pass_on("m2", name, Prepare)
        stage.pass_on(name, "m2", Promise)
    for name in ("m3", "m4"):
        stage.pass_on("m2", name, Accept)
        stage.pass_on(name, "m2", Vote)
    stage.pass_on("m2", "m3")
    assert stage.observer.views[3].names() == ("m2", "m3", "m4")
    stage.submit("m2")
    stage.pass_on("m2", "m3")
    stage.pass_on("m3", "m2")
    assert stage.log("m2") == [("m2.1", 1)]
    stage.read("m0", 1)
    for name in ("m1", "m4"):
        stage.pass_on("m0", name)
        stage.pass_on(name, "m0")
    assert stage.observer.reads == 0
    stage.settle()


def test_read_held() -> None:
    """m4 has executed something that m1 and m2 hold, and do not know yet to be safe. A read that asks these sees it."""
    stage = Stage(5, uniform=True, options={"lookahead": 4})
    stage.found()
    stage.submit("m4")
    stage.settling.drain()
    stage.submit("m4")
    for name in ("m1", "m2"):
        stage.pass_on("m4", name)
        stage.tick(name)
        stage.pass_on(name, "m4")
    assert [len(stage.log(name)) for name in ("m4", "m1", "m2")] == [2, 1, 1]
    stage.read("m0", 1)
    for name in ("m1", "m2"):
        stage.pass_on("m0", name)
        stage.pass_on(name, "m0")
    assert stage.observer.reads == 0
    stage.settle()
    assert stage.observer.reads == 1


def test_close_unaware() -> None:
    """m0 has reported before it heard that the group closes, and takes an operation after that: the group ends with it."""
    stage = Stage(3, uniform=True)
    stage.found()
    stage.ballot("m1")
    stage.pass_on("m1", "m0", Prepare)
    stage.close("m2")
    stage.submit("m0", [b"x", b"x"])
    stage.pass_on("m1", "m2", Prepare)
    for name in ("m0", "m2"):
        stage.pass_on(name, "m1", Promise)
    for name in ("m0", "m2"):
        stage.pass_on("m1", name, Accept)
        stage.pass_on(name, "m1", Vote)
    stage.settle()
    assert [stage.member(name).core.mode for name in stage.founders] == ["closed"] * 3
    assert [stage.log(name) for name in stage.founders] == [[("m0.1", 1), ("m0.1", 2)]] * 3


def test_rejoin_boundary() -> None:
    """m0 has delivered, alone, what the others will never have in that view. It comes back with their state, not its own."""
    stage = Stage(3)
    stage.found()
    stage.part(["m0"], ["m1", "m2"])
    stage.submit("m0")
    assert stage.log("m0") == [("m0.1", 1)]
    stage.submit("m1")
    stage.pass_on("m1", "m2")
    for name in ("m1", "m2"):
        stage.suspect(name, "m0")
    stage.ballot("m1")
    for _ in range(3):
        stage.pass_on("m1", "m2")
        stage.pass_on("m2", "m1")
    assert stage.observer.views[3].names() == ("m1", "m2")
    stage.submit("m2")
    stage.settle()
    assert stage.log("m0") == stage.log("m1") == [("m1.1", 1), ("m2.1", 1), ("m0.1", 1)]


def test_every_scenario_of_the_specification_is_played() -> None:
    named = {name for file in ("views_scenarios", "v2_scenarios") for name in json.loads((GOLDEN / f"{file}.json").read_text())}
    assert named == {name.removeprefix("test_") for name in globals() if name.removeprefix("test_") in named}


def test_every_shrunk_run_of_the_specification_is_played() -> None:
    """They are bound to the steps of another program. Their situations are played in the tests that have their names."""
    named = {json.loads(path.read_text())["name"].removeprefix("min_") for path in GOLDEN.glob("v*_min_*.json")}
    # What a name ends with is the configuration of a run.
    expected = {re.sub("_(sp|h5u)$", "", name) for name in named}
    written = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    assert len(expected) == 15
    assert {name for name in expected if f"\ndef test_{name}() -> None:\n" in written} == expected
