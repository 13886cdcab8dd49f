"""Links between processes: they survive their connections, and know whose connection and which life of a process counts."""

from __future__ import annotations

from itertools import permutations

import pytest

from quire.simulation.membership.chaos import Chaos, ChaosConfig
from quire.views.effects import Disconnect, ProcessEffect
from quire.views.peers import Peer
from tests.views.calm import everywhere, group, introduction


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
