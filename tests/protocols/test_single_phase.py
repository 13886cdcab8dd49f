"""Single-phase rule by rule: what it refuses, what it bounds, what it says of itself, and its own faults."""

from __future__ import annotations

from functools import partial
from random import Random

import msgspec
import pytest

from quire.model.errors import BadInput, HoldBackFull, ProtocolViolation, WindowFull
from quire.model.messages import NUMBER_MAX, Body, MessageId, Run, make_run
from quire.model.packets import Packet
from quire.protocols.contract import Deliver, Effects, Send
from quire.protocols.registry import create
from quire.protocols.single_phase import (
    Acknowledgement,
    Operations,
    Relay,
    SinglePhase,
    SinglePhaseOptions,
    frontier,
    need,
    rank,
)
from quire.protocols.single_phase.relaying import Relaying
from tests.kit.schedules import random_plan, run_plan
from tests.kit.state import freeze
from tests.kit.variants import ACKS


def member(me: int = 0, members: int = 3, **options: object) -> SinglePhase:
    protocol = create("single-phase", me, members, options)
    assert isinstance(protocol, SinglePhase)
    return protocol


def operations(source: int, time: int, first: int = 0, count: int = 1) -> Operations:
    return Operations(time, Run(source, first, count, Body(b"x" * count, 1)))


class TestOrder:
    def test_everything_before_the_frontier_is_stable_for_every_other_member(self) -> None:
        """The one comparison that the protocol makes, against the condition that the paper states member by member."""
        random = Random(1)
        for _ in range(20_000):
            members = random.randint(1, 6)
            rotating = random.random() < 0.5
            clocks = [random.randint(0, 6) for _ in range(members)]
            origin = random.randrange(members)
            time = random.randint(1, max(1, clocks[origin]))
            if time > clocks[origin]:
                continue
            stable = all(
                clocks[other] >= need(other, time, origin, members, rotating) for other in range(members) if other != origin
            )
            assert ((time, rank(origin, time, members, rotating)) < frontier(clocks, rotating)) == stable

    def test_rotating_ranks_give_every_member_every_rank_in_turn(self) -> None:
        assert [[rank(i, time, 3, True) for i in range(3)] for time in (3, 4, 5)] == [[0, 1, 2], [1, 2, 0], [2, 0, 1]]

    def test_what_a_member_sends_comes_after_all_that_it_has_received(self) -> None:
        protocol = member()
        protocol.receive(1, operations(1, 5, count=2))
        sent = [effect.packet for effect in protocol.submit(make_run(0, 0, [b"x"])) if isinstance(effect, Send)]
        assert [packet.time for packet in sent if isinstance(packet, Operations)] == [7]

    def test_keys_of_messages_are_the_same_at_every_member_wherever_runs_are_cut(self) -> None:
        for seed in range(300):
            random = Random(seed)
            world = run_plan(random_plan(random), lambda me, n: member(me, n, batches="run-length"), random)
            keys: dict[MessageId, object] = {}
            for deliveries in world.deliveries:
                for message, key in deliveries:
                    assert keys.setdefault(message, key) == key
            assert len(set(keys.values())) == len(keys)

    @pytest.mark.parametrize("ids", ["static", "rotating"])
    def test_a_run_is_never_cut_at_a_place_of_its_own_origin(self, ids: str) -> None:
        """So it does not matter on which side of its own place an operation counts: that place comes after the whole run."""
        cuts = []

        class Watched(SinglePhase):
            def _cut(self, time: int, run: Run, limit: tuple[int, int]) -> Run:
                position = min([limit, *(entry[:2] for entry in self._pending)])
                cut = super()._cut(time, run, limit)
                if position[1] == rank(run.origin, position[0], self.members, self._rotating):
                    assert cut.count == run.count
                cuts.append(cut.count < run.count)
                return cut

        for seed in range(300):
            random = Random(seed)
            options = SinglePhaseOptions(batches="run-length", ids=ids, acks=random.choice(ACKS))  # type: ignore[arg-type]
            run_plan(random_plan(random), partial(Watched, options=options), random)
        assert any(cuts)
        assert not all(cuts)


class TestRefusals:
    """What no correct peer sends raises ProtocolViolation and changes nothing."""

    @pytest.mark.parametrize(
        ("source", "packet", "what"),
        [
            (0, Acknowledgement(1), "not another member"),
            (3, Acknowledgement(1), "not another member"),
            (-1, Acknowledgement(1), "not another member"),
            (1, Acknowledgement(1), "went back from 2 to 1"),
            (1, Acknowledgement(3 + (1 << 32)), "more than 4294967296 ahead"),
            (1, operations(1, 4 + (1 << 32), first=2), "more than 4294967296 ahead"),
            (1, operations(2, 3, first=2), "messages of member 2"),
            (1, operations(1, 3, first=1), "from 1, not its own from 2"),
            (1, operations(1, 3, first=3), "from 3, not its own from 2"),
            (1, operations(1, 3, first=2, count=0), "0 messages"),
            (1, operations(1, 2, first=2), "timed an operation 2 after its clock was 2"),
            (1, Relay(3, ((0, 0),) * 3), "not a packet of this group"),
            (1, Packet(), "not a packet of this group"),
        ],
    )
    def test_a_packet_that_cannot_be(self, source: int, packet: Packet, what: str) -> None:
        protocol = member()
        protocol.receive(1, operations(1, 1, count=2))
        before = freeze(protocol)
        with pytest.raises(ProtocolViolation, match=what):
            protocol.receive(source, packet)
        assert freeze(protocol) == before

    @pytest.mark.parametrize("vector", [(), ((0, 0),) * 2, ((1, 0), (0, 0), (0, 0)), ((0, 0), (1 << 40, 0), (0, 0))])
    def test_a_relay_that_vouches_for_what_cannot_be(self, vector: tuple[tuple[int, int], ...]) -> None:
        protocol = member(acks="point-to-point")
        with pytest.raises(ProtocolViolation, match="vouched"):
            protocol.receive(1, Relay(0, vector))
        with pytest.raises(ProtocolViolation, match="vouched"):
            protocol.receive(1, Operations(1, Run(1, 0, 1), vector))

    def test_options_that_contradict_each_other(self) -> None:
        with pytest.raises(BadInput, match="lookahead saves acknowledgements, which acks=basic always sends"):
            member(acks="basic", lookahead=1)
        with pytest.raises(BadInput, match="pending must be 0 or at least members × outstanding = 30"):
            member(outstanding=10, pending=29)
        with pytest.raises(BadInput, match="at least one member, not 0"):
            member(0, 0)
        with pytest.raises(BadInput, match="member 3 is not in a group of 3"):
            member(3, 3)

    def test_a_clock_that_would_overflow_is_refused(self) -> None:
        protocol = member(0, 1)
        protocol.clocks[0] = NUMBER_MAX - 2
        with pytest.raises(BadInput, match="clock is exhausted"):
            protocol.submit(make_run(0, 0, [b"a", b"b"]))


class TestBounds:
    def test_a_member_may_have_only_so_many_of_its_own_messages_undelivered(self) -> None:
        protocol = member(1, outstanding=3)
        protocol.submit(make_run(1, 0, [b"a", b"b"]))
        before = freeze(protocol)
        with pytest.raises(WindowFull, match="2 of its own messages undelivered"):
            protocol.submit(make_run(1, 2, [b"c", b"d"]))
        assert freeze(protocol) == before
        protocol.submit(make_run(1, 2, [b"c"]))
        with pytest.raises(BadInput, match="a run of 4 messages exceeds outstanding=3"):
            protocol.submit(make_run(1, 3, [b"e"] * 4))

    def test_a_full_member_leaves_packets_on_their_links_but_takes_those_of_the_slowest(self) -> None:
        protocol = member(0, 3, outstanding=2, pending=6)
        for time in (2, 4, 6):
            protocol.receive(1, operations(1, time, first=time - 2, count=2))
        assert protocol.clocks[2] == min(protocol.clocks)
        with pytest.raises(HoldBackFull, match="holds back 6 messages"):
            protocol.receive(1, operations(1, 8, first=6))
        effects = protocol.receive(2, operations(2, 9))
        assert sum(effect.run.count for effect in effects if isinstance(effect, Deliver)) == 6
        protocol.receive(1, operations(1, 8, first=6))


class TestCost:
    """What need not be said is not said."""

    @staticmethod
    def acknowledgements(effects: Effects) -> int:
        return sum(isinstance(effect, Send) and isinstance(effect.packet, Acknowledgement) for effect in effects)

    def test_what_a_member_sent_itself_saves_an_acknowledgement(self) -> None:
        silent, busy = member(), member()
        busy.submit(make_run(0, 0, [b"x"]))
        assert self.acknowledgements(silent.receive(1, operations(1, 1))) == 1
        assert self.acknowledgements(busy.receive(1, operations(1, 1))) == 0

    def test_what_an_operation_has_told_everybody_is_not_relayed(self) -> None:
        relaying = Relaying(0, 3, rotating=False)
        assert relaying.stable(3, [5, 5, 5])
        relaying = Relaying(0, 3, rotating=False)
        relaying.submitted([5, 5, 5])
        assert relaying.stable(3, [5, 5, 5]) == []

    def test_of_two_relayed_clocks_each_is_believed_as_soon_as_its_own_operations_are_here(self) -> None:
        relaying, clocks = Relaying(0, 3, rotating=False), [0, 0, 0]
        nothing = (0, 0)
        relaying.learn(clocks, (nothing, nothing, (9, 2)))
        relaying.learn(clocks, (nothing, nothing, (5, 1)))
        assert clocks == [0, 0, 0], "of neither"
        relaying.received(2, (nothing,) * 3, clocks)
        assert clocks == [0, 0, 5]
        relaying.received(2, (nothing,) * 3, clocks)
        assert clocks == [0, 0, 9]


class TestEndOfAView:
    def test_what_is_left_is_delivered_in_the_order_of_positions(self) -> None:
        protocol = member(1, 2)
        (sent,) = [effect.packet for effect in protocol.submit(make_run(1, 0, [b"mine"])) if isinstance(effect, Send)]
        left = protocol.remainder([operations(0, 2, first=1), sent, operations(0, 1)], [0, 0])
        assert [(delivery.run.origin, delivery.run.first) for delivery in left] == [(0, 0), (1, 0), (0, 1)]

    def test_what_was_delivered_before_is_left_out_also_a_part_of_a_run(self) -> None:
        packets = [operations(0, 1, count=3), operations(1, 1, count=2)]
        cut = member(2, 3, batches="run-length").remainder(packets, [2, 1, 0])
        assert [(each.run.origin, each.run.first, each.run.count) for each in cut] == [(1, 1, 1), (0, 2, 1)]
        whole = member(2, 3).remainder(packets, [3, 0, 0])
        assert [(each.run.origin, each.run.first, each.run.count) for each in whole] == [(1, 0, 2)]


def test_what_waits_says_for_whom() -> None:
    protocol = member(0)
    protocol.receive(1, operations(1, 2))
    (waiting,) = protocol.waiting()
    assert waiting.members == (2,)
    assert waiting.because == "its time is 2, and the clock of member 2 is not known to be that far"


@pytest.mark.parametrize(
    "packet",
    [
        operations(1, 5, first=2, count=3),
        Operations(1, Run(0, 0, 1), ((1, 2), (3, 4))),
        Acknowledgement(7),
        Relay(3, ((1, 1),)),
    ],
)
def test_packets_are_the_same_after_the_wire(packet: Packet) -> None:
    kinds = Operations | Acknowledgement | Relay
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(packet), type=kinds) == packet


def test_one_member_alone_delivers_at_once() -> None:
    effects = member(0, 1).submit(make_run(0, 0, [b"a"]))
    assert [type(effect) for effect in effects] == [Send, Deliver]
