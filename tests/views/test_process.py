"""Whole processes: links that survive their connections, who is suspected and when, and who connects to whom."""

from __future__ import annotations

from itertools import permutations

import msgspec
import pytest

from quire.model.errors import BadInput
from quire.model.payloads import Messages
from quire.simulation.membership.chaos import Chaos, ChaosConfig
from quire.views.effects import Disconnect, PacketSent, ProcessEffect, Report
from quire.views.introductions import Introduction
from quire.views.packets import Decide
from quire.views.peers import Peer
from tests.views.calm import Calm


def group(founders: str = "abc", others: str = "", **changes: object) -> Calm:
    """A group that is in its first real view."""
    world = Calm(founders, others, None, **changes)
    world.until(lambda: world.agree(founders), 1.0)
    return world


def everywhere(world: Calm, names: str, count: int) -> bool:
    """Whether all of these have delivered so many operations, and the same."""
    logs = [world.processes[name].log for name in names]
    return all(len(log) == count and log == logs[0] for log in logs)


class SlowStates(Calm):
    """Members that need a while to copy their state."""

    def __init__(self, founders: str, others: str) -> None:
        self.wanted: list[tuple[str, bytes]] = []
        super().__init__(founders, others)

    def _checkpointed(self, name: str, state: bytes) -> None:
        self.wanted.append((name, state))

    def hand_over(self) -> None:
        for name, state in self.wanted:
            super()._checkpointed(name, state)


class TestFounding:
    def test_founders_begin_as_soon_as_all_are_there(self) -> None:
        world = Calm()
        assert world.until(lambda: world.agree("abc"), 1.0) < 0.3

    def test_a_founder_that_comes_later_is_asked_at_once(self) -> None:
        world = Calm("abc", started="ca")
        world.passes(0.5)
        world.start("b", founds=True)
        assert world.until(lambda: world.agree("abc"), 1.0) < 0.3

    def test_a_majority_begins_without_the_others_after_a_while(self) -> None:
        world = Calm("abc", started="ab")
        assert 1.9 < world.until(lambda: world.agree("ab"), 4.0) < 2.6

    def test_the_others_are_waited_for_as_long_when_the_majority_comes_together_late(self) -> None:
        world = Calm("abc", started="a")
        world.passes(1.3)
        world.start("b", founds=True)
        world.until(lambda: world.agree("ab"), 4.0)
        assert world.now > 1.9

    def test_a_founder_that_comes_after_that_joins(self) -> None:
        world = Calm("abc", started="ab")
        world.until(lambda: world.agree("ab"), 4.0)
        world.start("c", founds=True)
        assert world.until(lambda: world.agree("abc"), 4.0) < 1.5


class TestLinks:
    def test_what_is_submitted_is_delivered_everywhere_once(self) -> None:
        world = group()
        for name in "abc":
            world.submit(name, [b"x", b"y"])
        world.until(lambda: everywhere(world, "abc", 6), 1.0)

    @pytest.mark.parametrize("protocol", ["single-phase", "causal-vector", "fifo"])
    @pytest.mark.parametrize("uniform", [False, True])
    def test_a_lone_sender_is_told_in_time_what_is_delivered_and_never_waits_for_a_timer(
        self, protocol: str, uniform: bool
    ) -> None:
        world = group(protocol=protocol, total=protocol == "single-phase", uniform=uniform, outstanding=8, run_max=2)
        world.submit("b", [b"x"] * 100)
        world.settle()
        assert all(len(world.processes[name].log) == 100 for name in "abc")

    def test_nothing_is_lost_or_changes_when_connections_break_and_lose_what_was_written(self) -> None:
        world = group()
        for number in range(10):
            for name in "abc":
                world.submit(name, [b"x"])
            for end in list(world.network.ends.values()):
                world.network.lose(end, number % 4)
            world.passes(0.3)
        world.until(lambda: everywhere(world, "abc", 30), 1.0)
        assert max(world.observer.views) == 2

    def test_of_two_connections_that_cross_both_sides_keep_the_same_one(self) -> None:
        for order in permutations(range(4)):
            world = group("ab")
            world.settle()
            for name, other in ("ab", "ba"):
                world.dial(name, other)
                world.answer(world.network.dials[-1])
            ends = sorted(world.network.ends)[-4:]
            for place in order:
                world.arrive(world.network.ends[ends[place]])
            world.settle()
            # The one that came last to the one with the greater name, whose ends are the second and the third.
            last = max((1, 2), key=order.index)
            assert set(world.network.ends) == set(ends[:2] if last == 1 else ends[2:]), order
            world.submit("a", [b"x"])
            world.submit("b", [b"y"])
            assert world.until(lambda: everywhere(world, "ab", 2), 1.0) < 0.1, order  # noqa: B023

    def test_a_connection_that_one_side_has_lost_is_replaced_before_the_other_notices(self) -> None:
        for loser in "ab":
            world = group("ab")
            world.passes(1.0)
            for end in world.network.ends.values():
                end.ended, end.stalled = end.name == loser, end.name != loser
            world.submit("a", [b"x"])
            world.submit("b", [b"y"])
            assert world.until(lambda: everywhere(world, "ab", 2), 1.0) < 0.1  # noqa: B023

    def test_what_has_arrived_is_not_kept(self) -> None:
        world = group()
        world.submit("a", [bytes(1000)] * 3)
        world.passes(1.0)
        for name, other in ("ab", "ac", "ba", "bc", "ca", "cb"):
            assert world.process(name).peers[other].outgoing.bytes < 1000

    def test_nothing_is_kept_for_who_is_away_that_will_be_said_again(self) -> None:
        world = group()
        world.cut_off("c")
        world.passes(0.2)
        before = world.process("a").peers["c"].outgoing.bytes
        world.passes(0.5)
        assert world.process("a").peers["c"].outgoing.bytes == before
        assert max(world.observer.views) == 2

    def test_what_was_spoilt_on_its_way_is_sent_again(self) -> None:
        world = group("ab")
        world.submit("a", [b"x"])
        world.spoil("b")
        world.until(lambda: everywhere(world, "ab", 1), 1.0)
        assert max(world.observer.views) == 2

    def test_whoever_sends_what_cannot_be_read_again_and_again_is_suspected(self) -> None:
        world = group()
        world.spoilt_from.add("c")
        world.submit("c", [b"x"])
        world.until(lambda: world.agree("ab"), 3.0)
        assert any(report.kind == "suspected" and "cannot be read" in report.why for report in world.reports)

    def test_a_packet_longer_than_a_frame_goes_in_pieces_however_often_the_connection_breaks(self) -> None:
        world = group("ab")
        world.submit("a", [bytes(10 << 20)])
        for end in list(world.network.ends.values()):
            world.network.lose(end, 1)
        world.until(lambda: everywhere(world, "ab", 1), 1.0)

    def test_what_is_sent_to_a_member_that_was_never_met_waits_for_it(self) -> None:
        world = group(journal=True)
        world.network.blocked |= {("b", "c"), ("c", "b")}
        for name in "bc":
            world.crash(name)
            world.restart(name)
        world.until(lambda: world.agree("abc"), 0.9)
        assert not world.process("b").is_connected("c")
        world.submit("b", [b"x"])
        world.network.heal()
        world.until(lambda: everywhere(world, "abc", 1), 1.0)
        assert max(world.observer.views) == 3

    def test_what_is_sent_to_a_new_incarnation_is_not_lost_with_the_life_that_still_seems_to_be_connected(self) -> None:
        world = group(journal=True)
        world.crash("c", silent=True)
        world.network.blocked |= {("a", "c"), ("c", "a")}
        world.restart("c")
        world.until(lambda: all(world.member(name).core.view.epoch == 3 for name in "abc"), 0.9)
        assert world.process("a").is_connected("c"), "as it believes"
        world.submit("a", [b"x"])
        world.settle()
        world.network.heal()
        world.until(lambda: everywhere(world, "abc", 1), 3.0)
        assert max(world.observer.views) == 3

    def test_nothing_is_kept_for_who_is_in_no_view_any_more_and_its_link_goes_on_all_the_same(self) -> None:
        world = group()
        world.cut_off("c")
        world.submit("a", [bytes(5 << 20)])
        world.until(lambda: world.agree("ab"), 2.0)
        assert world.process("a").peers["c"].outgoing.bytes < 1000
        world.network.heal()
        world.until(lambda: world.agree("abc"), 6.0)
        world.submit("a", [b"x"])
        world.until(lambda: everywhere(world, "abc", 2), 1.0)


@pytest.mark.parametrize(("lookahead", "b", "c"), [(0, ["Control"] * 2, ["Control"] * 2), (64, ["Have"], [])])
def test_what_comes_together_is_answered_once(lookahead: int, b: list[str], c: list[str]) -> None:
    """By acknowledgements, each to both others; or where times were given away before, by the witness of the sender."""
    world = group(options={"lookahead": lookahead})
    for _ in range(2):
        world.submit("a", [b"before"])
        world.settle()
    answers: dict[str, list[str]] = {"b": [], "c": []}
    for name, kinds in answers.items():
        world.process(name).on_packet = lambda sent, kinds=kinds: kinds.extend([type(sent.packet).__name__] * sent.copies)
    for number in range(20):
        world.submit("a", [b"%d" % number])
    world.settle()
    assert everywhere(world, "abc", 22)
    assert answers == {"b": b, "c": c}


class TestLives:
    """A process may introduce itself, end, and be read of only when another has taken its place, and is not connected."""

    def peer(self) -> Peer:
        peer = Peer("c", 0.0, decides=False)
        peer.meet(introduction(1))
        peer.meet(introduction(3))
        return peer

    def test_a_life_that_was_replaced_does_not_come_back(self) -> None:
        peer = self.peer()
        assert [peer.is_older(introduction(1)) for _ in range(9)] == [True] * 9

    def test_an_introduction_that_comes_late_changes_nothing(self) -> None:
        peer = self.peer()
        assert [peer.is_older(introduction(2)) for _ in range(2)] == [True, True]
        assert not peer.is_older(introduction(3))

    def test_a_process_whose_disk_has_lost_its_incarnation_is_believed_when_it_insists(self) -> None:
        peer = self.peer()
        assert [peer.is_older(introduction(4, incarnation=2)) for _ in range(3)] == [True, True, False]
        peer.meet(introduction(4, incarnation=2))
        assert not peer.is_older(introduction(3)), "it was the later one after all"

    def test_a_run_in_which_that_happened(self) -> None:
        assert Chaos(ChaosConfig(uniform=True, reads=6, journal=True, heavy=True, founders=(3, 3)), 730147031374).run().live


class TestConnections:
    """Two processes connect to each other at the same time, and have two connections, of which one says which is used."""

    OLD, NEW, NEWEST = 1, 2, 3

    def peer(self, *, decides: bool) -> tuple[Peer, list[ProcessEffect]]:
        peer, out = Peer("c", 0.0, decides=decides), list[ProcessEffect]()
        peer.meet(introduction(1))
        for connection in (self.OLD, self.NEW):
            peer.add_connection(connection, out)
        return peer, out

    def ended(self, out: list[ProcessEffect]) -> list[int]:
        return [effect.connection for effect in out if isinstance(effect, Disconnect)]

    def test_whoever_decides_uses_the_newest_and_ends_the_other(self) -> None:
        peer, out = self.peer(decides=True)
        assert (peer.connection, self.ended(out)) == (self.NEW, [self.OLD])

    @pytest.mark.parametrize("first", [OLD, NEW])
    def test_whoever_does_not_ends_none_because_the_other_may_be_chosen_yet(self, first: int) -> None:
        peer, out = self.peer(decides=False)
        peer.resumed(first, 0, 1, out)
        other = self.OLD + self.NEW - first
        peer.resumed(other, 0, 2, out)
        assert (peer.connection, self.ended(out)) == (other, [])
        peer.drop_connection(first)
        assert peer.all_connections() == {other}

    def test_a_connection_that_is_never_chosen_is_ended_when_others_are_chosen_twice(self) -> None:
        peer, out = self.peer(decides=False)
        peer.resumed(self.NEW, 0, 1, out)
        peer.drop_connection(self.NEW)
        peer.add_connection(self.NEWEST, out)
        peer.resumed(self.NEWEST, 0, 2, out)
        assert (peer.connection, self.ended(out)) == (self.NEWEST, [self.OLD])


def introduction(life: int, incarnation: int | None = None) -> Introduction:
    return Introduction(group="g", name="c", life=life, incarnation=incarnation or life, address="c:1", facts="", addresses={})


def test_whoever_leaves_while_it_is_let_in_is_in_no_view_for_long() -> None:
    """A run in which it stayed a member, because it was there and nothing waited for it."""
    assert Chaos(ChaosConfig(leaves=4, journal=True, uniform=True), 315436510504).run().live


class TestSuspicion:
    @pytest.mark.parametrize("name", "abc")
    def test_a_process_that_was_killed_is_missed_within_milliseconds(self, name: str) -> None:
        world, others = group(), "abc".replace(name, "")
        world.passes(2.0)
        world.crash(name)
        assert world.until(lambda: world.agree(others), 1.0) < 0.1

    def test_a_machine_that_is_gone_without_a_word_is_missed_after_the_timeout(self) -> None:
        world = group()
        world.crash("c", silent=True)
        world.network.blocked |= {("a", "c"), ("b", "c")}
        assert 0.7 < world.until(lambda: world.agree("ab"), 2.0) < 1.25

    def test_a_process_that_was_stopped_for_less_than_the_timeout_is_not_missed_and_misses_nobody(self) -> None:
        world = group()
        world.stop("c", 0.6)
        world.passes(1.5)
        assert max(world.observer.views) == 2
        assert not world.member("c").core.suspects

    @pytest.mark.parametrize("founders", ["ab", "abc"])
    def test_a_member_that_is_slow_is_not_left_out_because_somebody_joins(self, founders: str) -> None:
        """The others are a majority, and could go on at once."""
        world, slow = group(founders, others="d"), founders[-1]
        world.start("d", founds=False)
        world.until(lambda: world.member("a").membership.agreement.joiners != {}, 3.0)
        world.stop(slow, 0.6)
        assert world.member("a").membership.agreement.promised.round == 1, "nobody else begins a ballot meanwhile"
        world.until(lambda: world.agree(founders + "d"), 3.0)
        assert all(slow in view.names() for epoch, view in world.observer.views.items() if epoch > 1)

    def test_nobody_waits_longer_than_that_for_a_member_that_is_heard_and_hears_nothing(self) -> None:
        world = group("abcd", others="e")
        world.network.blocked |= {(other, "d") for other in "abce"}
        world.start("e", founds=False)
        assert world.until(lambda: "e" in world.view("a"), 4.0) < 3.0

    def test_nobody_waits_for_a_process_that_was_started_again_and_has_no_memory(self) -> None:
        world = group()
        world.crash("c")
        world.start("c", founds=False)
        assert world.until(lambda: world.agree("abc"), 2.0) < 0.7

    def test_a_process_that_was_stopped_for_longer_is_excluded_and_comes_back(self) -> None:
        world = group()
        world.stop("c", 3.0)
        assert world.agree("ab")
        world.submit("a", [b"x"])
        assert world.until(lambda: world.agree("abc"), 3.0) < 1.5
        assert world.member("c").core.me.incarnation > 1
        world.until(lambda: everywhere(world, "abc", 1), 1.0)

    def test_all_processes_that_were_stopped_together_suspect_nobody(self) -> None:
        world = group()
        world.now += 30
        world.passes(0.9)
        assert max(world.observer.views) == 2
        assert not any(world.member(name).core.suspects for name in "abc")

    def test_a_member_that_was_suspected_and_is_heard_again_is_not_excluded(self) -> None:
        world = group("ab", tie="strict")
        world.stop("b", 1.5)
        assert "b" in world.member("a").core.suspects
        world.passes(0.5)
        assert not world.member("a").core.suspects
        world.submit("a", [b"x"])
        world.until(lambda: everywhere(world, "ab", 1), 1.0)

    def test_a_minority_stands_still_and_goes_on_when_the_network_is_whole_again(self) -> None:
        world = group("abcde")
        world.network.blocked |= {(one, other) for one in "de" for other in "abc"}
        world.network.blocked |= {(other, one) for one, other in world.network.blocked}
        world.until(lambda: world.agree("abc"), 2.0)
        world.submit("d", [b"x"])
        world.passes(3.0)
        assert not world.process("d").has_quorum
        assert world.process("a").has_quorum
        world.network.heal()
        assert world.until(lambda: world.agree("abcde"), 6.0) < 3.0
        world.until(lambda: everywhere(world, "abcde", 1), 1.0)

    def test_where_nobody_was_in_a_majority_the_group_goes_on_when_the_network_is_whole_again(self) -> None:
        world = group()
        for name in "abc":
            world.cut_off(name)
        world.submit("a", [b"x"])
        world.passes(3.0)
        assert not any(world.process(name).has_quorum for name in "abc")
        world.network.heal()
        assert world.until(lambda: world.agree("abc") and everywhere(world, "abc", 1), 5.0) < 3.0

    def test_whoever_one_member_cannot_hear_is_not_taken_in_again_before_that_can(self) -> None:
        world = group("abcde")
        world.network.blocked.add(("e", "d"))
        world.until(lambda: world.agree("abcd"), 2.0)
        world.passes(3.0)
        assert max(world.observer.views) == 3
        world.network.heal()
        assert world.until(lambda: world.agree("abcde"), 6.0) < 3.0
        assert max(world.observer.views) == 4

    def test_a_member_that_nobody_hears_is_excluded_though_it_hears_all(self) -> None:
        world = group()
        world.network.blocked |= {("c", "a"), ("c", "b")}
        world.until(lambda: world.agree("ab"), 2.0)

    def test_a_member_whose_application_takes_nothing_holds_the_others_up_for_a_while_only(self) -> None:
        world = group(outstanding=4)
        world.unread("c")
        world.submit("a", [b"x"] * 10)
        world.submit("a", [b"x"] * 10)
        assert world.until(lambda: world.agree("ab"), 10.0) > world.timing.stall_s - 0.5
        world.until(lambda: everywhere(world, "ab", 20), 1.0)


class TestJoining:
    def test_whoever_knows_one_member_learns_of_all(self) -> None:
        world = group(others="d")
        world.submit("a", [b"x"])
        world.start("d", founds=False)
        assert world.until(lambda: world.agree("abcd"), 4.0) < 1.5
        assert set(world.process("d").introduction().addresses) == set("abcd")
        world.submit("d", [b"y"])
        world.until(lambda: everywhere(world, "abcd", 2), 1.0)

    def test_a_joiner_waits_for_the_state_of_one_member_and_does_not_ask_all_to_make_a_copy(self) -> None:
        world = SlowStates("abc", "d")
        world.until(lambda: world.agree("abc"), 1.0)
        world.submit("a", [b"x"] * 10)
        world.start("d", founds=False)
        world.passes(3.0)
        assert len(world.wanted) == 1
        world.hand_over()
        world.until(lambda: world.agree("abcd") and everywhere(world, "abcd", 10), 2.0)

    def test_a_process_that_is_started_again_takes_the_place_of_the_one_before(self) -> None:
        world = group()
        world.submit("a", [b"x"])
        world.settle()
        world.crash("c")
        world.restart("c")
        world.until(lambda: world.agree("abc"), 4.0)
        world.until(lambda: everywhere(world, "abc", 1), 1.0)

    def test_with_journals_all_can_be_started_again_together(self) -> None:
        world = group(journal=True)
        world.submit("a", [b"x"])
        world.until(lambda: everywhere(world, "abc", 1), 1.0)
        for name in "abc":
            world.crash(name)
        for name in "abc":
            world.restart(name)
        world.until(lambda: world.agree("abc"), 4.0)
        assert everywhere(world, "abc", 1)

    def test_a_process_with_other_settings_is_refused_with_the_reason_and_seldom_tried(self) -> None:
        world = group("ab", others="d")
        theirs = msgspec.structs.replace(world.process("a").introduction(), name="d", life=7, facts="fifo")
        effects = world.process("a").connected(world.now, 99, theirs, dialled="d:1")
        assert effects[0] == Report("refused", "d", "'a' runs , and 'd' runs fifo")
        assert isinstance(effects[1], Disconnect)

    def test_an_older_process_of_a_name_does_not_replace_the_one_that_is_there(self) -> None:
        world = group("ab")
        older = msgspec.structs.replace(world.process("b").introduction(), life=7, incarnation=0)
        effects = world.process("a").connected(world.now, 99, older, dialled=None)
        assert isinstance(effects[-1], Disconnect)
        assert world.process("a").is_connected("b")


class TestEnding:
    def test_whoever_leaves_is_needed_until_the_others_go_on(self) -> None:
        world = group()
        world.submit("c", [b"x"])
        world.leave("c")
        world.until(lambda: world.member("c").core.mode == "left", 1.0)
        world.until(lambda: world.agree("ab") and not world.process("c").is_needed(), 1.0)
        assert everywhere(world, "ab", 1)

    def test_whoever_leaves_waits_for_a_member_that_is_slow_too(self) -> None:
        """The senior alone could go on. The other would take the end of the connection for a loss."""
        world = group()

        def stop_reading(sent: PacketSent) -> None:
            if isinstance(sent.packet, Decide):
                world.slow = "b"

        for name in "ac":
            world.process(name).on_packet = stop_reading
        world.leave("c")
        world.until(lambda: world.member("c").core.mode == "left" and world.view("a") == "ab", 1.0)
        assert world.process("c").is_needed()
        for name in "ac":
            world.process(name).on_packet = None
        world.slow = ""
        world.until(lambda: world.view("b") == "ab", 0.5)
        assert not world.process("c").is_needed()

    def test_whoever_voted_for_the_end_takes_nothing_more_after_a_restart(self) -> None:
        world = group("a", journal=True)
        world.close("a")
        world.crash("a", kept=99)
        world.restart("a")
        with pytest.raises(BadInput, match="closing"):
            world.process("a").submit(world.now, Messages.of([b"x"]))

    def test_whoever_said_that_it_has_nothing_more_to_send_takes_nothing_more_after_a_restart(self) -> None:
        world = group("ab", journal=True)
        world.close("a")
        world.sync("a")
        (end,) = world.readable()
        world.arrive(end, 100)
        assert world.member("b").core.closing
        world.crash("b", kept=99)
        world.restart("b")
        with pytest.raises(BadInput, match="closing"):
            world.process("b").submit(world.now, Messages.of([b"x"]))

    def test_a_group_closes_everywhere(self) -> None:
        world = group()
        for name in "abc":
            world.submit(name, [b"x"])
        world.close("b")
        world.until(lambda: all(world.processes[name].is_over() for name in "abc"), 2.0)
        world.until(lambda: not any(world.process(name).is_needed() for name in "abc"), 1.0)
        assert everywhere(world, "abc", 3)


def test_a_member_that_is_alone_for_long_goes_on_when_the_others_are_back() -> None:
    """Its pauses between attempts grow, but only so far: they once grew until no number could hold them."""
    world = group("abc")
    for name in "bc":
        world.cut_off(name)
    world.passes(600.0)
    world.network.blocked.clear()
    world.until(lambda: world.agree("abc"), 30.0)
