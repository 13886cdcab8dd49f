"""Whole processes: how they found a group, whom they suspect and when, how others come in, and how it ends."""

from __future__ import annotations

import msgspec
import pytest

from quire.model.errors import BadInput
from quire.model.payloads import Messages
from quire.simulation.membership.chaos import Chaos, ChaosConfig
from quire.views.effects import Disconnect, PacketSent, Report
from quire.views.packets import Decide
from tests.views.calm import Calm, everywhere, group


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
            if isinstance(sent.packet, Decide) and sent.packet.epoch == 2:
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
