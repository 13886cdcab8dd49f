"""Founding, joining and coming back: the state with which a process begins, and what of its own is sent again.

Each test is a schedule that goes wrong without one rule; `make mutants` takes the rule away. Those with the name of
a file `golden/views_min_*.json` or `golden/v2_min_*.json` play its situation.
"""

from __future__ import annotations

from quire.views.effects import Checkpoint
from quire.views.packets import AskState, Data, Join, Stale, StatePart
from quire.views.view import View
from tests.views.stage import Stage


def test_the_founding_view_carries_no_messages() -> None:
    """m0 is started long before the others, who would never get what it sent to nobody."""
    stage = Stage(3)
    stage.start("m0", founds=True)
    stage.submit("m0")
    for name in ("m1", "m2"):
        stage.start(name, founds=True)
    stage.submit("m0")
    stage.settle()
    assert [stage.log(name) for name in stage.founders] == [[("m0.1", 1), ("m0.1", 2)]] * 3


def test_a_process_that_is_started_again_is_another_incarnation() -> None:
    """m2 has lost its memory before anybody suspects it. It is not the member that the others know."""
    stage = Stage(3)
    stage.found()
    stage.crash("m2")
    stage.restart("m2")
    stage.settle()
    assert stage.member("m0").core.view.incarnation("m2") == 2


def test_no_incarnation_comes_in_twice() -> None:
    """j0 was a member and is gone, when its request to be one arrives at m1."""
    stage = Stage(2, joiners=1)
    stage.found()
    stage.start("j0", founds=False)
    stage.bring_up_to_date("j0", "m0")
    assert stage.under_way(Join) == [("j0", "m1")]
    stage.blocked.add(("j0", "m1"))
    stage.settling.rounds(3)
    assert stage.member("m1").core.view.names() == ("m0", "m1", "j0")
    stage.crash("j0")
    stage.settling.rounds(3)
    assert stage.member("m1").core.view.names() == ("m0", "m1")
    epoch = stage.member("m1").core.view.epoch
    stage.blocked.clear()
    stage.pass_on("j0", "m1")
    stage.settling.rounds(5)
    assert max(stage.observer.views) == epoch


def test_dedup() -> None:
    """m2 was left out, and does not know that what it sent was executed before that."""
    stage = Stage(3, uniform=True)
    stage.found()
    stage.submit("m2")
    stage.pass_on("m2", "m0", Data)
    stage.part(["m2"], ["m0", "m1"])
    stage.suspect("m0", "m2")
    stage.promise("m0", "m1")
    stage.vote("m0", "m1")
    assert stage.log("m0") == [("m2.1", 1)]
    stage.settle()
    assert [stage.log(name) for name in stage.founders] == [[("m2.1", 1)]] * 3


def test_whoever_joins_begins_with_what_was_delivered_before_its_view() -> None:
    """m1 has delivered something in the view of j0 when it lets j0 in."""
    stage = Stage(2, joiners=1, protocol="causal-vector")
    stage.found()
    stage.submit("m0")
    stage.settling.drain()
    stage.start("j0", founds=False)
    stage.bring_up_to_date("j0", "m1")
    stage.pass_on("j0", "m0")
    stage.promise("m0", "m1")
    stage.pass_on("m0", "m1")
    stage.submit("m1")
    assert len(stage.log("m1")) == 2
    stage.blocked.add(("m0", "j0"))
    stage.tick("m1")
    stage.pass_on("m1", "j0")
    assert stage.member("j0").core.mode == "normal"
    stage.settle()
    assert sorted(stage.log("j0")) == [("m0.1", 1), ("m1.1", 1)]


def test_feed_all() -> None:
    """m1 alone has delivered something, without which m0 goes on. j0, which asks m1, must not get it."""
    stage = Stage(2, joiners=1, protocol="causal-vector")
    stage.found()
    stage.part(["m0"], ["m1", "j0"])
    stage.start("j0", founds=False)
    while not stage.under_way(AskState):
        stage.tick("j0")
    stage.pass_on("j0", "m1")
    stage.submit("m1")
    assert stage.log("m1") == [("m1.1", 1)]
    stage.bring_up_to_date("j0", "m1")
    stage.suspect("m0", "m1")
    stage.hasty = True
    stage.promise("m0")
    assert stage.observer.views[3].names() == ("m0",)
    stage.blocked.clear()
    stage.part(["m1"], ["m0", "j0"])
    stage.pass_on("j0", "m0")
    stage.settling.rounds(3)
    assert stage.observer.views[4].names() == ("m0", "j0")
    stage.settle()


def test_a_state_is_that_of_its_position() -> None:
    """m1 has a snapshot from before, because somebody else asked for it."""
    stage = Stage(2, joiners=2)
    stage.found()
    stage.start("j1", founds=False)
    stage.tick("j1")
    stage.pass_on("j1", "m1")
    stage.crash_silently("j1")
    stage.submit("m0")
    stage.settling.drain()
    assert stage.log("m1") == [("m0.1", 1)]
    stage.start("j0", founds=False)
    stage.settle()
    assert stage.log("j0") == [("m0.1", 1)]


def test_parts_of_two_snapshots_make_no_state() -> None:
    """m0 and m1 have delivered the same, in different orders. j0 gets one half of its state from each, or so it seems."""
    stage = Stage(2, joiners=2, part_bytes=8, protocol="causal-vector")
    stage.found()
    for name in ("m0", "m1"):
        stage.submit(name)
    stage.settling.rounds(2)
    assert stage.log("m0") == stage.log("m1")[::-1]
    stage.start("j1", founds=False)
    for donor in ("m1", "m0"):
        # Each takes a snapshot, because somebody else asks for it.
        stage.tick("j1")
        stage.pass_on("j1", donor)
    stage.crash_silently("j1")
    stage.start("j0", founds=False)
    stage.tick("j0")
    stage.pass_on("j0", "m1")
    stage.pass_on("m1", "j0", StatePart)
    stage.crash_silently("m1")
    stage.settle()
    assert sorted(stage.log("j0")) == [("m0.1", 1), ("m1.1", 1)]


def test_gone() -> None:
    """More was delivered since the snapshot of j0 than anybody keeps."""
    stage = Stage(2, joiners=1, history=2)
    stage.found()
    stage.start("j0", founds=False)
    stage.tick("j0")
    stage.pass_on("j0", "m1")
    stage.tick("j0")
    stage.tick("j0")
    stage.pass_on("j0", "m1")
    stage.pass_on("m1", "j0", StatePart)
    for _ in range(5):
        stage.submit("m0")
        stage.settling.drain()
    stage.settle()
    assert stage.log("j0") == [("m0.1", number) for number in range(1, 6)]


def test_rejoin_log() -> None:
    """m2 has delivered what it sent itself and nobody else has. It comes back to the state of the others, not to its own."""
    stage = Stage(3, protocol="causal-vector")
    stage.found()
    stage.part(["m2"], ["m0", "m1"])
    stage.submit("m2")
    assert stage.log("m2") == [("m2.1", 1)]
    stage.suspect("m0", "m2")
    stage.promise("m0", "m1")
    stage.vote("m0", "m1")
    stage.submit("m0")
    stage.settle()
    assert sorted(stage.log("m2")) == sorted(stage.log("m0")) == [("m0.1", 1), ("m2.1", 1)]


def test_a_member_that_has_answered_is_given_time_before_another_has_to_make_a_copy_of_its_state() -> None:
    stage = Stage(2, joiners=1)
    stage.found()
    stage.start("j0", founds=False)
    member = stage.member("j0")
    learner = member.membership.learner
    learner.tick()
    first = learner._donor
    learner.state_came(first, StatePart(2, member.core.position, 0, 0, b"", {}))
    for _ in range(1 + stage.settings.patience):
        learner.tick()
        assert learner._donor == first
    learner.tick()
    assert learner._donor != first
    learner.tick()
    assert learner._donor == first, "whoever never answered is not waited for"


def test_a_member_that_was_left_out_gives_no_copy_of_the_state_that_it_had() -> None:
    """m2 delivers at once what the group then goes on without, and a copy of that was made for somebody."""
    stage = Stage(3, uniform=False)
    stage.found()
    m2 = stage.member("m2")
    m2.membership.donor.state_asked("j0", AskState(m2.core.view.epoch, None, 0))
    m2.checkpointed(b"old")
    after = View(m2.core.view.epoch + 1, m2.core.view.members[:2], m2.core.view.latest)
    m2.receive("m0", 1, Stale(after.epoch, after))
    assert m2.core.mode == "joining"
    m2.membership.donor.state_asked("j0", AskState(m2.core.view.epoch, None, 0))
    assert any(isinstance(effect, Checkpoint) for effect in m2.core.out)
