"""From one view to the next: what a promise binds to, what is cut, who is in, and what is kept for those who have not heard.

Each test is a schedule that goes wrong without one rule; `make mutants` takes the rule away. Those with the name of
a file `golden/views_min_*.json` or `golden/v2_min_*.json` play its situation.
"""

from __future__ import annotations

from quire.views.packets import Accept, Data, Decide, Prepare, Promise, Vote
from tests.views.stage import Stage


def test_freeze() -> None:
    """Whoever has promised sends nothing more in its view: what it reported would not be all."""
    stage = Stage(2)
    stage.found()
    stage.ballot("m0")
    stage.pass_on("m0", "m1", Prepare)
    stage.submit("m1")
    assert not stage.under_way(Data)
    stage.settle()
    assert stage.log("m0") == stage.log("m1") == [("m1.1", 1)]


def test_a_ballot_that_comes_to_nothing_does_not_thaw_its_leader() -> None:
    """m0 has promised to m1, leads a ballot of its own, and gives it up. Its first promise is used all the same."""
    stage = Stage(3)
    stage.found()
    stage.ballot("m1")
    for name in ("m0", "m2"):
        stage.pass_on("m1", name, Prepare)
    agreement = stage.member("m0").membership.agreement
    led = []
    for _ in range(40):
        stage.tick("m0")
        led.append(agreement.campaign is not None)
        if led[-2:] == [True, False]:
            break
    assert led[-2:] == [True, False]
    stage.submit("m0")
    for name in ("m0", "m2"):
        stage.pass_on(name, "m1", Promise)
    stage.vote("m1", "m2")
    stage.pass_on("m1", "m0")
    assert stage.observer.views[3].names() == ("m0", "m1", "m2")
    stage.settle()
    assert stage.log("m1") == [("m0.1", 1)]


def test_the_cut_has_what_anybody_reports() -> None:
    """Only m0 has what it sent. It goes on, so everybody delivers it."""
    stage = Stage(3)
    stage.found()
    stage.submit("m0")
    stage.part(["m0"], ["m2"])
    stage.ballot("m1")
    stage.suspect("m1", "m2")
    stage.pass_on("m1", "m0", Prepare)
    stage.pass_on("m0", "m1")
    stage.pass_on("m1", "m0")
    stage.pass_on("m0", "m1")
    stage.vote("m1", "m0")
    assert stage.observer.views[3].names() == ("m0", "m1")
    assert stage.log("m1") == [("m0.1", 1)]
    stage.settle()


def test_whoever_reports_nothing_is_not_in_the_next_view() -> None:
    stage = Stage(3)
    stage.found()
    stage.part(["m0", "m1"], ["m2"])
    stage.submit("m2")
    stage.suspect("m0", "m2")
    stage.promise("m0", "m1")
    stage.vote("m0", "m1")
    assert stage.observer.views[3].names() == ("m0", "m1")
    stage.settle()


def test_use_accepted() -> None:
    """m0 has voted for a view of both, which is decided as soon as its vote arrives. So m0 cannot decide anything else."""
    stage = Stage(2)
    stage.found()
    stage.promise("m1", "m0")
    stage.pass_on("m1", "m0", Accept)
    stage.hasty = True
    stage.ballot("m0")
    stage.pass_on("m0", "m1", Vote)
    assert stage.observer.views[3].names() == ("m0", "m1")
    stage.settle()


def test_accept_stale() -> None:
    """m1 has promised to m0 and then to m2: it does not vote for what m0 proposes."""
    stage = Stage(3)
    stage.found()
    for leader in ("m0", "m2"):
        stage.ballot(leader)
        stage.pass_on(leader, "m1", Prepare)
    stage.hasty = True
    for leader in ("m0", "m2"):
        stage.pass_on("m1", leader, Promise)
        stage.pass_on(leader, "m1", Accept)
        stage.pass_on("m1", leader)
    assert stage.observer.views[3].names() == ("m1", "m2")
    stage.settle()


def test_pull_noquorum() -> None:
    """m4 has delivered what m2 and m3 hold, too. m0 has the promises of m1 and m3, and m3 falls silent: what m0 and m1 hold
    together may lack something that was delivered."""
    stage = Stage(5, uniform=True, options={"lookahead": 4})
    stage.found()
    stage.submit("m4")
    stage.settling.drain()
    stage.submit("m4")
    for name in ("m2", "m3"):
        stage.pass_on("m4", name, Data)
        stage.tick(name)
        stage.pass_on(name, "m4")
    assert len(stage.log("m4")) == 2
    stage.hasty = True
    stage.promise("m0", "m1", "m3")
    stage.suspect("m0", "m3")
    stage.pass_on("m0", "m2", Prepare)
    stage.pass_on("m2", "m0", Promise)
    for name in ("m1", "m2"):
        stage.pass_on("m0", name)
        stage.pass_on(name, "m0")
    stage.settle()
    assert stage.log("m0") == [("m4.1", 1), ("m4.1", 2)]


def test_what_is_left_of_an_earlier_view_is_dropped() -> None:
    """m1 has gone on to the next view, with all that m0 sent in the last one, when it arrives from m0 itself."""
    stage = Stage(3)
    stage.found()
    stage.submit("m0")
    stage.promise("m2", "m1", "m0")
    stage.pass_on("m2", "m0")
    stage.pass_on("m0", "m2")
    stage.vote("m2", "m0", "m1")
    stage.pass_on("m2", "m1")
    assert stage.log("m1") == [("m0.1", 1)]
    stage.pass_on("m0", "m1")
    stage.pass_on("m2", "m0")
    stage.submit("m0")
    stage.settle()
    assert stage.log("m1") == [("m0.1", 1), ("m0.1", 2)]


def test_how_a_view_ended_is_kept_until_all_have_gone_on() -> None:
    """m2 hears from m1 what m0 decided, and lacks a message of the cut, which m0 took with it. m1 has it still."""
    stage = Stage(3)
    stage.found()
    stage.submit("m1")
    stage.pass_on("m1", "m0", Data)
    stage.promise("m0", "m1", "m2")
    stage.vote("m0", "m1")
    stage.pass_on("m0", "m1")
    stage.crash_silently("m0")
    stage.settle()
    assert stage.log("m2") == [("m1.1", 1)]


def test_whoever_leaves_stays_until_others_know() -> None:
    """m3 and m4 leave, by a view that is m0's alone. m4 ends before m0 has heard; m3 can say so, and nobody else."""
    stage = Stage(5)
    stage.found()
    for name in ("m3", "m4"):
        stage.leave(name)
    stage.hasty = True
    stage.promise("m4", "m3", "m0")
    stage.vote("m4", "m3", "m0")
    stage.pass_on("m4", "m3", Decide)
    assert [stage.member(name).core.mode for name in ("m3", "m4")] == ["left", "left"]
    for name in ("m4", "m1", "m2"):
        stage.crash_silently(name)
    stage.settling.rounds(3)
    assert (stage.member("m0").core.mode, stage.member("m0").core.view.names()) == ("normal", ("m0",))


def test_whoever_joins_can_say_how_the_view_before_ended() -> None:
    """m0 lets j0 in, and is gone before m1 has heard: j0 and m1 are a majority, and only j0 knows."""
    stage = Stage(2, joiners=1)
    stage.found()
    stage.start("j0", founds=False)
    stage.bring_up_to_date("j0", "m1")
    stage.pass_on("j0", "m0")
    stage.promise("m0", "m1")
    assert stage.observer.views[3].names() == ("m0", "m1", "j0")
    stage.pass_on("m0", "j0")
    assert stage.member("j0").core.mode == "normal"
    stage.crash_silently("m0", ["m1"])
    stage.settle()
    assert set(stage.member("m1").core.view.names()) == {"m1", "j0"}


def test_what_comes_before_a_view_begins_waits_for_it() -> None:
    """j0 is in a view, and hears from m1 in it before m0 lets it in."""
    stage = Stage(2, joiners=1)
    stage.found()
    stage.start("j0", founds=False)
    stage.bring_up_to_date("j0", "m1")
    stage.pass_on("j0", "m0")
    stage.promise("m0", "m1")
    stage.pass_on("m0", "m1")
    stage.submit("m1")
    stage.pass_on("m1", "j0", Data)
    assert stage.member("j0").core.mode == "joining"
    stage.pass_on("m0", "j0")
    assert stage.member("j0").core.mode == "normal"
    stage.submit("m1")
    stage.pass_on("m1", "j0", Data)
    stage.settle()
    assert stage.log("j0") == [("m1.1", 1), ("m1.1", 2)]
