"""What members know of each other, what they keep for each other, and how much: less than a bound, and never too little.

Each test is a schedule that goes wrong without one rule; `make mutants` takes the rule away. Those with the name of
a file `golden/views_min_*.json` or `golden/v2_min_*.json` play its situation.
"""

from __future__ import annotations

from quire.views.packets import Accept, Data, Fetch, Fill, Prepare, Promise
from tests.views.stage import Stage


def test_have_frozen() -> None:
    """m1 has promised to m2 that it does not hold the second message of m4, and gets it after that. Were it to say so, m4
    would deliver it, and be left out of a view without it."""
    stage = Stage(5, uniform=True, options={"lookahead": 4})
    stage.found()
    stage.submit("m4")
    stage.settling.drain()
    stage.submit("m4")
    stage.pass_on("m4", "m3", Data)
    stage.tick("m3")
    stage.pass_on("m3", "m4")
    stage.hasty = True
    stage.promise("m0", "m1", "m3")
    stage.ballot("m2")
    for name in ("m0", "m1"):
        stage.pass_on("m2", name, Prepare)
    stage.pass_on("m0", "m3", Fetch)
    stage.pass_on("m3", "m0", Fill)
    stage.pass_on("m0", "m1", Accept)
    assert stage.member("m1").membership.ordering.unstable.count[4] == 2
    stage.tick("m1")
    stage.pass_on("m1", "m4")
    for name in ("m0", "m1"):
        stage.pass_on(name, "m2", Promise)
    stage.vote("m2", "m0", "m1")
    assert stage.observer.views[3].names() == ("m0", "m1", "m2")
    stage.settle()


def test_split_fill() -> None:
    """A run that others lack comes to them as it was sent: as one, however it is fetched."""
    stage = Stage(3)
    stage.found()
    stage.submit("m1", [b"x", b"y"])
    stage.promise("m0", "m2", "m1")
    stage.pass_on("m0", "m1")
    stage.pass_on("m1", "m0")
    stage.pass_on("m0", "m2", Accept)
    sent, *held = (list(stage.member(name).membership.ordering.unstable.within((0, 2, 0))) for name in ("m1", "m0", "m2"))
    assert held == [sent, sent]
    assert [data.run.count for data in sent] == [2]
    stage.settle()
    assert stage.log("m2") == [("m1.1", 1), ("m1.1", 2)]


def test_no_more_is_sent_than_others_have_room_for() -> None:
    stage = Stage(2, outstanding=2, run_max=1)
    stage.found()
    for _ in range(5):
        stage.submit("m0")
    assert len(stage.under_way(Data)) == 2
    stage.settle()
    assert len(stage.log("m1")) == 5


def test_a_full_window_opens_without_the_timer() -> None:
    stage = Stage(3, outstanding=8, run_max=2)
    stage.found()
    for name in stage.founders:
        stage.submit(name, [b"x"] * 50)
    stage.settling.drain()
    assert {len(stage.log(name)) for name in stage.founders} == {150}


def test_long_messages_fill_the_window_sooner_which_opens_without_the_timer_too() -> None:
    stage = Stage(3, outstanding_bytes=1000, run_bytes=300)
    stage.found()
    stage.submit("m0", [bytes(400)] * 20)
    assert stage.under_way(Data).count(("m0", "m1")) == 3
    stage.settling.drain()
    assert {len(stage.log(name)) for name in stage.founders} == {20}


def test_a_run_has_no_more_bytes_than_it_may_have_or_one_message() -> None:
    stage = Stage(2, run_max=100, run_bytes=300)
    stage.found()
    stage.submit("m0", [bytes(100)] * 7 + [bytes(500)] + [b"x"])
    runs = [data.run.count for data in stage.member("m0").membership.ordering.unstable.within((9, 0))]
    assert runs == [3, 3, 1, 1, 1]
    stage.settle()
    assert len(stage.log("m1")) == 9


def test_what_was_submitted_bit_by_bit_while_the_window_was_full_leaves_together() -> None:
    stage = Stage(2, outstanding=1, run_max=10)
    stage.found()
    for _ in range(12):
        stage.submit("m0")
    stage.pass_on("m0", "m1")
    stage.pass_on("m1", "m0")
    assert [data.run.count for data in stage.member("m0").membership.ordering.unstable.within((12, 0))][-1] == 10
    stage.settling.drain()
    assert len(stage.log("m1")) == 12


def test_floor() -> None:
    """m2 hears nothing from m1, but m0 knows how much of its messages everybody has delivered, and says so with the next."""
    stage = Stage(3, protocol="fifo", outstanding=2, run_max=1)
    stage.found()
    stage.blocked.add(("m1", "m2"))
    for _ in range(6):
        stage.submit("m0")
        stage.settling.drain()
        for name in ("m1", "m2"):
            stage.tick(name)
        stage.settling.drain()
    assert len(stage.log("m2")) == 6
    assert stage.member("m2").membership.ordering.unstable.messages(0) <= 2


def test_trim_quorum() -> None:
    """What m0 sent was delivered by most, and m0 is gone: m1 has it still for m2."""
    stage = Stage(3, protocol="fifo")
    stage.found()
    stage.submit("m0")
    stage.pass_on("m0", "m1", Data)
    stage.tick("m0")
    stage.pass_on("m0", "m1")
    assert stage.log("m1") == [("m0.1", 1)]
    stage.crash_silently("m0", ["m2"])
    stage.settle()
    assert stage.log("m2") == [("m0.1", 1)]


def test_what_every_member_has_delivered_is_not_kept_to_be_sent_again() -> None:
    stage = Stage(3, uniform=False)
    stage.found()
    stage.submit("m0", [b"x"] * 50)
    stage.settling.drain()
    for name in stage.founders:
        stage.tick(name)
    stage.settling.drain()
    stage.tick("m0")
    assert len(stage.log("m2")) == 50
    assert stage.member("m0").core.operations.kept() == ()


def test_what_only_its_sender_has_delivered_is_kept_to_be_sent_again() -> None:
    """m0 has delivered its message when the others, who never got it, go on without m0."""
    stage = Stage(3, protocol="fifo", uniform=False)
    stage.found()
    stage.part(["m0"], ["m1", "m2"])
    stage.submit("m0")
    stage.tick("m0")
    assert stage.log("m0") == [("m0.1", 1)]
    stage.hasty = True
    stage.promise("m1", "m2")
    stage.vote("m1", "m2")
    stage.settle()
    assert stage.log("m1") == [("m0.1", 1)]


def test_what_is_held_and_not_delivered_takes_room() -> None:
    """m1 holds what m2 sends, and waits for a word of m0 before it can deliver it."""
    stage = Stage(3, outstanding=2, run_max=1)
    stage.found()
    stage.blocked.add(("m0", "m1"))
    for _ in range(6):
        stage.submit("m2")
        stage.settling.drain()
        for name in ("m0", "m1"):
            stage.tick(name)
        stage.settling.drain()
    assert stage.log("m1") == []
    assert stage.member("m1").membership.ordering.unstable.messages(2) == 2
    stage.settle()
    assert len(stage.log("m1")) == 6


def test_times_that_were_given_away_are_not_used() -> None:
    """m0 has acknowledged with times to come, and sends: at a time after them."""
    stage = Stage(2, options={"lookahead": 4})
    stage.found()
    stage.submit("m1")
    stage.settling.drain()
    stage.submit("m0")
    stage.settling.drain()
    assert stage.log("m0") == stage.log("m1") == [("m1.1", 1), ("m0.1", 1)]


def test_what_is_left_of_a_view_comes_in_the_order_of_rotating_ranks() -> None:
    """At time 1 m1 comes before m0. m1 knows so, and delivers; m0 delivers the same only when the view ends."""
    stage = Stage(2, options={"ids": "rotating"})
    stage.found()
    stage.submit("m0")
    stage.submit("m1")
    stage.pass_on("m0", "m1")
    assert stage.log("m1") == [("m1.1", 1), ("m0.1", 1)]
    stage.promise("m0", "m1")
    stage.settle()
    assert stage.log("m0") == [("m1.1", 1), ("m0.1", 1)]


class TestWhoHoldsAMemberUp:
    """Where nothing moves, a member says who is to blame, so that they can be suspected; and only as long as it is so."""

    def test_somebody_whose_clock_is_missing(self) -> None:
        stage = Stage(3)
        stage.found()
        stage.submit("m2")
        stage.pass_on("m2", "m0", Data)
        stage.pass_on("m0", "m2")
        assert stage.member("m2").waits_for() == {"m1"}
        stage.settling.drain()
        assert stage.member("m2").waits_for() == set()

    def test_those_who_have_not_said_that_they_hold_it(self) -> None:
        stage = Stage(3, protocol="fifo", uniform=True)
        stage.found()
        stage.submit("m0")
        assert stage.member("m0").waits_for() == {"m1", "m2"}
        stage.settling.drain()
        assert stage.member("m0").waits_for() == set()

    def test_somebody_who_has_not_delivered_what_fills_the_window(self) -> None:
        stage = Stage(3, protocol="fifo", outstanding=2, run_max=1)
        stage.found()
        for _ in range(3):
            stage.submit("m0")
        stage.pass_on("m0", "m1")
        stage.tick("m1")
        stage.pass_on("m1", "m0")
        assert stage.member("m0").waits_for() == {"m2"}
        stage.pass_on("m0", "m2")
        stage.tick("m2")
        stage.pass_on("m2", "m0")
        assert stage.member("m0").waits_for() == set()


def test_what_is_kept_for_those_who_catch_up_has_a_bound_in_bytes() -> None:
    stage = Stage(2, history_bytes=1000)
    stage.found()
    start = stage.member("m0").core.position
    for _ in range(10):
        stage.submit("m0", [bytes(90)])
        stage.settle()
    kept = stage.member("m0").core.history
    assert kept.since(start) is not None
    for _ in range(10):
        stage.submit("m0", [bytes(90)])
        stage.settle()
    assert kept.since(start) is None


def test_what_a_joiner_needs_is_kept_while_it_asks_and_forgotten_when_nobody_does() -> None:
    stage = Stage(2, joiners=1, history_bytes=1000)
    stage.found()
    stage.start("j0", founds=False)
    for name in ("j0", "m0", "m1") * 2:
        stage.tick(name)
        stage.settling.drain()
    donor = next(name for name in stage.founders if stage.member(name).membership.donor.is_wanted())
    since = stage.member(donor).core.position
    stage.crash_silently("j0")
    stage.submit(donor, [bytes(90)] * 20)
    stage.settling.drain()
    assert stage.member(donor).core.history.since(since) is not None
    for _ in range(100):
        stage.tick(donor)
    assert stage.member(donor).core.history.since(since) is None
    assert not stage.member(donor).membership.donor.is_wanted()
