"""Situations in which random runs have found something wrong."""

from __future__ import annotations

from typing import Any

import pytest

from quire.views.packets import AskState, Data, Join, Stale
from tests.views.stage import Stage


def test_whoever_sends_holds_it_only_when_it_is_durable() -> None:
    stage = Stage(2, uniform=True, journal=True)
    stage.found()
    stage.submit("m0")
    stage.sync("m0")
    stage.pass_on("m0", "m1", Data)
    stage.sync("m1")
    assert stage.log("m1") == []
    stage.sync("m0")
    stage.pass_on("m0", "m1")
    assert stage.log("m1") == [("m0.1", 1)]


@pytest.mark.parametrize("protocol", ["single-phase", "causal-vector", "fifo"])
def test_a_group_of_one_delivers_what_is_durable(protocol: str) -> None:
    stage = Stage(1, protocol=protocol, uniform=True, journal=True)
    stage.found()
    stage.submit("m0")
    stage.sync("m0")
    assert stage.log("m0") == []
    stage.sync("m0")
    assert stage.log("m0") == [("m0.1", 1)]
    stage.crash("m0")
    stage.restart("m0")
    stage.settle()
    assert stage.log("m0") == [("m0.1", 1)]


@pytest.mark.parametrize("protocol", ["single-phase", "causal-vector", "fifo"])
def test_a_group_of_one_keeps_nothing_for_others(protocol: str) -> None:
    stage = Stage(1, protocol=protocol, outstanding=2)
    stage.found()
    for _ in range(20):
        stage.submit("m0")
    assert len(stage.log("m0")) == 20
    assert stage.member("m0").membership.ordering.unstable.messages(0) == 0


def test_a_joiner_of_more_weight_than_the_others_have_comes_in_with_as_much_as_they_have() -> None:
    stage = Stage(2, joiners=1, weights=[1, 1, 5])
    stage.found()
    stage.start("j0", founds=False)
    stage.settle()
    assert [(member.name, member.weight) for member in stage.member("j0").core.view.members] == [
        ("m0", 1),
        ("m1", 1),
        ("j0", 2),
    ]
    assert stage.member("j0").core.view.epoch == 3


def _leave_out(stage: Stage) -> None:
    """m0 and m2 found the group, and m0 goes on alone. m2 learns what it did since, and asks to be back. Then m1 is started,
    the third founder, which has heard of nothing."""
    for name in ("m0", "m2"):
        stage.start(name, founds=True)
    stage.settling.rounds(6)
    stage.suspect("m0", "m2")
    stage.promise("m0")
    stage.submit("m0")
    assert [stage.observer.views[epoch].names() for epoch in (2, 3)] == [("m0", "m2"), ("m0",)]
    for _ in range(20):
        stage.pass_on("m0", "m2")
        if stage.under_way(Join):
            break
        stage.tick("m2")
        stage.pass_on("m2", "m0")
    assert stage.log("m2") == [("m0.1", 1)]
    stage.start("m1", founds=True)
    stage.trust("m2", "m1")
    stage.part(["m1"], ["m0", "j0"])


def _ask(stage: Stage, name: str, donor: str) -> None:
    stage.tick(name)
    stage.pass_on(name, donor)
    stage.pass_on(donor, name)


def test_whoever_is_behind_does_not_send_anybody_back() -> None:
    """m2 knows of views of which m1 has not heard. It asks m1 next, which cannot help it, and does no harm."""
    stage = Stage(3, uniform=True)
    _leave_out(stage)
    stage.part(["m0"], ["m2"])
    for _ in range(6):
        _ask(stage, "m2", "m1")
    assert stage.log("m2") == [("m0.1", 1)]
    stage.settle()


def test_whoever_was_given_an_older_state_since_it_asked_asks_anew() -> None:
    """m2 has asked m0 to be back. Then j0, which does not have enough of the past, has it begin again, and m1, which has heard
    of nothing, gives it an old state. When m0 lets it in, with what came after its first state, that is not enough."""
    stage = Stage(3, joiners=1, uniform=True)
    _leave_out(stage)
    stage.part(["m2"], ["m0", "m1", "j0"])
    stage.submit("m0")
    stage.start("j0", founds=False)
    stage.settling.rounds(6)
    assert stage.member("m0").core.view.names() == ("m0", "j0")
    stage.blocked -= {(one, other) for one in stage.processes for other in stage.processes if "m2" in (one, other)}
    stage.pass_on("m2", "m0")
    stage.pass_on("m0", "m2", Stale)
    stage.part(["m2"], ["m0", "m1"])
    for _ in range(9):
        _ask(stage, "m2", "j0")
        if ("m2", "j0") in stage.under_way(AskState):
            break
    stage.blocked.clear()
    stage.part(["m1", "m2"], ["m0", "j0"])
    for _ in range(9):
        _ask(stage, "m2", "m1")
    assert stage.log("m2") == []
    stage.promise("m0", "j0")
    stage.vote("m0", "j0")
    assert stage.member("m0").core.view.names() == ("m0", "j0", "m2")
    stage.blocked -= {("m0", "m2")}
    stage.pass_on("m0", "m2")
    stage.settle()
    assert stage.log("m2") == stage.log("m0") == [("m0.1", 1), ("m0.1", 2)]


def _be_left_out_with_a_snapshot(stage: Stage) -> None:
    """m2 alone has delivered something, of which j0 has it take a snapshot. The others go on without it, and m2 comes back."""
    stage.found()
    stage.part(["m2"], ["m0", "m1"])
    stage.submit("m2")
    assert stage.log("m2") == [("m2.1", 1)]
    stage.start("j0", founds=False)
    for _ in range(3):
        # Each is asked once.
        stage.tick("j0")
        for name in stage.founders:
            stage.pass_on("j0", name)
    stage.part(["j0"], stage.founders)
    stage.suspect("m0", "m2")
    stage.promise("m0", "m1")
    stage.vote("m0", "m1")
    assert stage.observer.views[3].names() == ("m0", "m1")
    stage.blocked -= {(one, other) for one in stage.founders for other in stage.founders}
    stage.settling.rounds(6)
    assert stage.member("m2").core.view.names() == ("m0", "m1", "m2")


def test_a_snapshot_of_a_member_that_was_left_out_is_given_to_nobody() -> None:
    """What m2 has delivered alone is in no view. Its snapshot of that must not pass for one of an earlier view."""
    stage = Stage(3, joiners=1, protocol="causal-vector")
    _be_left_out_with_a_snapshot(stage)
    stage.blocked.clear()
    stage.part(["j0"], ["m0", "m1"])
    for _ in range(9):
        _ask(stage, "j0", "m2")
    stage.settle()
    assert stage.log("j0") == [("m2.1", 1)]


def test_a_snapshot_that_comes_after_its_member_was_left_out_is_given_to_nobody() -> None:
    """As above, and the application of m2 takes its time."""
    stage = _SlowSnapshots(3, joiners=1, protocol="causal-vector")
    _be_left_out_with_a_snapshot(stage)
    stage.give("m2")
    stage.blocked.clear()
    stage.part(["j0"], ["m0", "m1"])
    for _ in range(9):
        _ask(stage, "j0", "m2")
        stage.give("m2")
    stage.settle()
    assert stage.log("j0") == [("m2.1", 1)]


class _SlowSnapshots(Stage):
    """Snapshots of m2 are handed back when the test says so."""

    def __init__(self, founders: int, **settings: Any) -> None:
        super().__init__(founders, **settings)
        self._taken: list[bytes] = []

    def _checkpointed(self, name: str, state: bytes) -> None:
        if name == "m2":
            self._taken.append(state)
        else:
            super()._checkpointed(name, state)

    def give(self, name: str) -> None:
        taken, self._taken = self._taken, []
        for state in taken:
            super()._checkpointed(name, state)


def _sync_and_pass_on(stage: Stage, one: str, other: str, times: int = 6) -> None:
    """Everything passes between these two, and is durable."""
    for _ in range(times):
        for source, to in ((one, other), (other, one)):
            stage.sync(source)
            stage.pass_on(source, to)


def test_whoever_was_excluded_and_has_caught_up_does_not_take_part_in_its_old_view_after_a_restart() -> None:
    """m2 votes for view 3, ends, and is restarted in view 2. Meanwhile m0 and m1 have gone on to view 5. m2 learns what they
    delivered, asks to be a member again, and ends once more. Then m3, which was cut off in view 3, knows how view 2 ended."""
    stage = Stage(4, uniform=True, journal=True)
    stage.found()
    stage.promise("m0", "m1", "m2", "m3")
    stage.vote("m0", "m1", "m2", "m3")
    for name in ("m1", "m2", "m3"):
        stage.pass_on("m0", name)
    for name in ("m0", "m1", "m3"):
        stage.sync(name)
    stage.crash("m2", {}, kept=0)
    stage.part(["m2"], ["m0", "m1", "m3"])
    stage.part(["m3"], ["m0", "m1"])
    for _ in range(2):
        for name in ("m0", "m1"):
            stage.suspect(name, "m2")
            stage.suspect(name, "m3")
        stage.promise("m0", "m1")
        stage.vote("m0", "m1")
        _sync_and_pass_on(stage, "m0", "m1")
        stage.submit("m0")
        _sync_and_pass_on(stage, "m0", "m1")
    assert stage.member("m0").core.view.epoch == 5
    delivered = stage.log("m0")
    assert len(delivered) == 2

    stage.blocked -= {("m0", "m2"), ("m2", "m0")}
    stage.restart("m2")
    assert (stage.member("m2").core.mode, stage.member("m2").core.view.epoch) == ("frozen", 2)
    while not stage.under_way(Join):
        stage.tick("m2")
        _sync_and_pass_on(stage, "m2", "m0", times=1)
    assert stage.log("m2") == delivered
    stage.crash_silently("m2")
    stage.part(["m2"], ["m0", "m1"])
    stage.blocked -= {("m2", "m3"), ("m3", "m2")}
    stage.restart("m2")
    for _ in range(6):
        stage.tick("m2")
        stage.tick("m3")
        _sync_and_pass_on(stage, "m2", "m3", times=1)
    assert (stage.member("m2").core.mode, stage.log("m2")) == ("joining", delivered)
    stage.blocked.clear()
    stage.settle()
    assert stage.log("m2") == delivered


def test_how_a_view_ended_is_known_until_the_next_one_is_durable_at_all() -> None:
    """All three are in view 3, and hear from each other there. That is durable at m2 alone when m0 and m1 end. They are
    restarted in view 2, and need to know how that ended."""
    stage = Stage(3, uniform=True, journal=True)
    stage.found()
    stage.promise("m0", "m1", "m2")
    stage.vote("m0", "m1", "m2")
    for name in ("m1", "m2"):
        stage.pass_on("m0", name)
    stage.sync("m2")
    for name in stage.founders:
        stage.tick(name)
    for one in stage.founders:
        for other in stage.founders:
            if one != other:
                stage.pass_on(one, other)
    assert {stage.member(name).core.view.epoch for name in stage.founders} == {3}
    for name in ("m0", "m1"):
        stage.crash(name, {}, kept=0)
    for name in ("m0", "m1"):
        stage.restart(name)
        assert (stage.member(name).core.mode, stage.member(name).core.view.epoch) == ("frozen", 2)
    stage.settle()
    assert set(stage.member("m2").core.view.names()) == set(stage.founders)
