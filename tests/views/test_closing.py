"""How a group ends without losing anything.

Each test is a schedule that goes wrong without one rule; `make mutants` takes the rule away. Those with the name of
a file `golden/v2_min_*.json` play its situation.
"""

from __future__ import annotations

from quire.views.packets import Data, Prepare
from tests.views.stage import Stage


def test_a_group_ends_when_everything_is_sent() -> None:
    """m1 closes the group while something that it submitted waits for the next view."""
    stage = Stage(2, uniform=True)
    stage.found()
    stage.ballot("m0")
    stage.pass_on("m0", "m1", Prepare)
    stage.submit("m1")
    for name in stage.founders:
        stage.close(name)
    stage.promise("m0", "m1")
    stage.settle()
    assert [stage.member(name).core.mode for name in stage.founders] == ["closed"] * 2
    assert [stage.log(name) for name in stage.founders] == [[("m1.1", 1)]] * 2


def test_close_aware() -> None:
    """m1 has promised before it hears that the group closes, so what it has submitted since is still to be sent."""
    stage = Stage(2, uniform=True)
    stage.found()
    stage.ballot("m1")
    stage.submit("m1")
    stage.close("m0")
    stage.settle()
    assert [stage.member(name).core.mode for name in stage.founders] == ["closed"] * 2
    assert [stage.log(name) for name in stage.founders] == [[("m1.1", 1)]] * 2


def test_close_all() -> None:
    """m0 and m1 close the group while m2 cannot be reached. They end without it, and it learns what became of its own."""
    stage = Stage(3, uniform=True)
    stage.found()
    stage.part(["m2"], ["m0", "m1"])
    stage.submit("m2")
    stage.close("m0")
    stage.close("m1")
    stage.suspect("m0", "m2")
    stage.promise("m0", "m1")
    stage.vote("m0", "m1")
    assert stage.member("m0").core.view.names() == ("m0", "m1")
    stage.settle()
    assert [stage.member(name).core.mode for name in stage.founders] == ["closed"] * 3
    assert stage.log("m0") == []


def test_whoever_has_ended_answers_still() -> None:
    """m0 and m1 have ended, and m0 is gone. m2 lacks a message without which it cannot end."""
    stage = Stage(3, uniform=True)
    stage.found()
    stage.submit("m1")
    stage.pass_on("m1", "m0", Data)
    for name in stage.founders:
        stage.close(name)
    stage.promise("m0", "m1", "m2")
    stage.vote("m0", "m1")
    stage.pass_on("m0", "m1")
    assert [stage.member(name).core.mode for name in ("m0", "m1")] == ["closed", "closed"]
    stage.crash_silently("m0")
    stage.settle()
    assert stage.member("m2").core.mode == "closed"
    assert stage.log("m2") == [("m1.1", 1)]
