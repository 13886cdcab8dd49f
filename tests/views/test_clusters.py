"""Hierarchies in groups that change: what agents had not passed on is delivered all the same, and the tree follows the view.

Each test is a schedule that goes wrong without one rule; `make mutants` takes the rule away.
"""

from __future__ import annotations

import pytest

from quire.model.errors import BadInput, ProtocolViolation
from quire.views.liveness import Liveness
from quire.views.packets import Data, Prepare
from quire.views.timing import Timing
from tests.views.stage import Stage

NORTH_AND_SOUTH = ("north", "north", "south", "south", "south")
NAMES = ("m0", "m1", "m2", "m3", "m4")


def founded(inside: str = "matrix", **settings: object) -> Stage:
    """m0 and m2 are the agents."""
    clusters = settings.pop("clusters", NORTH_AND_SOUTH)
    stage = Stage(len(clusters), protocol="hierarchy", clusters=clusters, options={"inside": inside}, **settings)  # type: ignore[arg-type]
    stage.found()
    return stage


def clusters_of(stage: Stage, name: str) -> dict[str, str]:
    return {member.name: member.cluster for member in stage.member(name).core.view.members}


def test_a_message_goes_to_the_members_of_a_cluster_and_only_agents_carry_it_to_another() -> None:
    stage = founded()
    stage.submit("m1")
    assert stage.under_way(Data) == [("m1", "m0")]
    stage.pass_on("m1", "m0")
    assert stage.under_way(Data) == [("m0", "m2")]
    stage.pass_on("m0", "m2")
    assert sorted(stage.under_way(Data)) == [("m2", "m3"), ("m2", "m4")]
    stage.settle()
    assert all(stage.log(name) == [("m1.1", 1)] for name in NAMES)


@pytest.mark.parametrize("inside", ["matrix", "coordinator"])
@pytest.mark.parametrize("reached", ["nobody else", "an agent", "one more"])
def test_what_a_lost_agent_had_not_passed_on_everybody_delivers_and_the_next_senior_follows(inside: str, reached: str) -> None:
    stage = founded(inside)
    stage.submit("m1")
    stage.pass_on("m1", "m0")
    if reached != "nobody else":
        stage.pass_on("m0", "m2")
    if reached == "one more":
        stage.pass_on("m2", "m3")
    lost = "m0" if reached == "nobody else" else "m2"
    stage.crash_silently(lost)
    stage.settle()
    left = [name for name in NAMES if name != lost]
    assert all(stage.log(name) == [("m1.1", 1)] for name in left)
    sender, agents = ("m4", ("m2", "m1")) if lost == "m0" else ("m4", ("m3", "m0"))
    stage.submit(sender)
    stage.pass_on("m4", agents[0])
    assert agents in stage.under_way(Data)
    stage.settle()
    assert all(stage.log(name)[1:] == [("m4.1", 1)] for name in left)


def test_an_answer_without_its_question_is_not_in_the_cut() -> None:
    """m3 answers what m4 sent, and both are lost. Only the answer has come to m2, which holds it back."""
    stage = founded()
    stage.submit("m4")
    stage.pass_on("m4", "m3")
    stage.submit("m3")
    stage.pass_on("m3", "m2")
    assert not stage.log("m2")
    stage.crash_silently("m4")
    stage.crash_silently("m3")
    stage.settle()
    assert stage.log("m0") == stage.log("m1") == stage.log("m2") == []


def test_the_rest_of_a_view_is_delivered_with_questions_before_answers() -> None:
    """m3 answers m4. The others have neither when the view ends, and m3 comes before m4 in it."""
    stage = founded()
    stage.submit("m4")
    stage.pass_on("m4", "m3")
    stage.submit("m3")
    for name in NAMES[:3]:
        stage.ballot(name)
    stage.settle()
    assert all(stage.log(name) == [("m4.1", 1), ("m3.1", 1)] for name in NAMES)


def test_a_member_that_moves_is_elsewhere_from_the_next_view_on() -> None:
    stage = founded()
    stage.submit("m1")
    stage.pass_on("m1", "m0")
    stage.move("m1", "south")
    stage.submit("m0")
    stage.settle()
    assert clusters_of(stage, "m4") == dict(zip(NAMES, ("north", "south", "south", "south", "south"), strict=True))
    # It is senior to m2, and so the agent now.
    stage.submit("m4")
    assert sorted(stage.under_way(Data)) == [("m4", "m1"), ("m4", "m2"), ("m4", "m3")]
    stage.pass_on("m4", "m1")
    assert ("m1", "m0") in stage.under_way(Data)
    stage.settle()
    assert all(sorted(stage.log(name)) == [("m0.1", 1), ("m1.1", 1), ("m4.1", 1)] for name in NAMES)


def test_whoever_moves_after_it_has_reported_moves_with_the_view_after_the_next() -> None:
    stage = founded()
    stage.ballot("m0")
    stage.pass_on("m0", "m4", Prepare)
    stage.move("m4", "north")
    stage.settle()
    assert stage.observer.views[3].clusters()[4] == "south"
    assert clusters_of(stage, "m0")["m4"] == "north"


def test_a_new_cluster_comes_with_its_first_member_and_goes_with_its_last() -> None:
    stage = Stage(3, joiners=1, protocol="hierarchy", clusters=("north", "north", "south", "west"))
    stage.found()
    stage.start("j0", founds=False)
    stage.settle()
    assert clusters_of(stage, "m1")["j0"] == "west"
    stage.submit("j0")
    assert sorted(stage.under_way(Data)) == [("j0", "m0"), ("j0", "m2")]
    stage.leave("j0")
    stage.settle()
    assert clusters_of(stage, "m1") == {"m0": "north", "m1": "north", "m2": "south"}
    assert all(stage.log(name) == [("j0.1", 1)] for name in ("m0", "m1", "m2"))


def test_who_passes_on_a_message_says_what_it_has_itself_and_what_the_sender_said_of_its_own() -> None:
    stage = founded()
    for _ in range(2):
        stage.submit("m1")
        stage.settling.rounds(3)
    stage.submit("m3")
    stage.submit("m1")
    stage.pass_on("m3", "m2")
    stage.pass_on("m2", "m0")
    stage.pass_on("m1", "m0")
    (link,) = [link for link in stage.links if (link[0], link[2]) == ("m0", "m2")]
    (data,) = [packet for one in stage.links[link] if isinstance(packet := stage.codec.packet(one.packet), Data)]
    assert (data.run.origin, data.run.first, data.floor) == (1, 2, 2)
    assert data.causes == (0, 2, 0, 0, 0)
    assert data.known is not None
    assert data.known.held == (0, 3, 0, 1, 0)  # The sender has nothing of m3 yet.


def test_what_the_sender_knows_to_be_delivered_everywhere_is_kept_for_nobody() -> None:
    """m2 hears nothing from m4, but m1 knows what everybody has delivered, and says so with what m0 passes on."""
    stage = founded()
    stage.blocked.add(("m4", "m2"))
    for _ in range(6):
        stage.submit("m1")
        stage.settling.drain()
        for name in NAMES:
            stage.tick(name)
        stage.settling.drain()
    assert len(stage.log("m2")) == 6
    assert stage.member("m2").membership.ordering.unstable.messages(1) <= 2


def test_what_does_not_follow_on_what_came_of_its_origin_is_refused() -> None:
    stage = founded()
    for _ in range(2):
        stage.submit("m1")
    stage.pass_on("m1", "m0")
    (link,) = [link for link in stage.deliverable() if (link[0], link[2]) == ("m0", "m2")]
    stage.links[link].popleft()
    with pytest.raises(ProtocolViolation, match="message 1 of member 1, not 0"):
        stage.pass_on("m0", "m2", Data)


@pytest.mark.parametrize("inside", ["matrix", "coordinator"])
def test_a_witness_that_sends_to_its_cluster_still_tells_the_others_what_it_holds(inside: str) -> None:
    """Those of m1 are m2, which passes it on, and m3: without either nobody knows that a majority holds what m1 sent."""
    stage = founded(inside, uniform=True)
    stage.submit("m1")
    stage.settling.drain()
    assert all(stage.log(name) == [("m1.1", 1)] for name in NAMES)


def test_whoever_is_alone_has_what_it_sent_in_its_journal() -> None:
    stage = Stage(2, protocol="hierarchy", clusters=("north", "south"), journal=True, uniform=True)
    stage.found()
    stage.crash_silently("m1")
    stage.settle()
    stage.submit("m0")
    stage.settle()
    stage.crash("m0")
    stage.restart("m0")
    stage.settle()
    assert stage.log("m0") == [("m0.1", 1)]


def test_a_process_with_a_journal_is_where_it_was_when_it_is_started_again() -> None:
    stage = founded(journal=True)
    stage.move("m4", "north")
    stage.settle()
    stage.crash_silently("m4")
    stage.settle()
    stage.restart("m4")
    stage.settle()
    assert clusters_of(stage, "m0")["m4"] == "north"
    stage.shorten_journal("m4")
    stage.crash_silently("m4")
    stage.restart("m4")
    stage.settle()
    assert clusters_of(stage, "m0")["m4"] == "north"


def test_only_the_agent_is_blamed_for_what_a_cluster_behind_it_lacks() -> None:
    stage = founded(outstanding=2)
    stage.blocked.update((name, "m2") for name in NAMES)
    for _ in range(3):
        stage.submit("m1")
        for source, to in (("m1", "m0"), ("m0", "m1")):
            stage.pass_on(source, to)
        stage.tick("m0")
        stage.pass_on("m0", "m1")
    assert stage.member("m1").waits_for() == {"m2"}


def test_a_relay_is_suspected_when_it_takes_nothing_for_long_and_others_wait_for_it() -> None:
    stage, liveness = founded(), Liveness(Timing(stall_s=10.0))
    m0 = stage.member("m0")

    def suspected(now: float) -> list[str]:
        liveness.watch_progress(m0, now)
        list(liveness.changes())
        return sorted(liveness.suspected)

    stage.blocked.update((name, "m1") for name in NAMES)  # It passes on nothing, so nobody waits for it.
    stage.blocked.update((name, "m2") for name in NAMES)
    stage.submit("m0")
    stage.settling.drain()
    assert m0.slow_relays() == {"m2": 0}
    assert suspected(0.0) == suspected(9.0) == []
    stage.blocked.discard(("m0", "m2"))
    stage.settling.drain()
    stage.blocked.add(("m0", "m2"))
    stage.submit("m0")
    stage.settling.drain()
    stage.tick("m2")
    stage.pass_on("m2", "m0")
    assert m0.slow_relays() == {"m2": 1}
    assert suspected(10.0) == suspected(19.0) == []
    assert suspected(20.0) == ["m2"]
    stage.blocked.clear()
    stage.settling.drain()
    stage.settling.rounds(1)
    assert not m0.slow_relays()
    assert suspected(21.0) == []


def test_whoever_leaves_does_not_move_any_more() -> None:
    stage = founded()
    stage.leave("m4")
    with pytest.raises(BadInput, match="cannot move any more"):
        stage.move("m4", "north")
