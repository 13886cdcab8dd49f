"""Members join, leave, move and are replaced, step by step; what cannot be is refused in one sentence."""

from __future__ import annotations

import pytest

from quire.model.errors import BadInput, HoldBackFull, ProtocolViolation, WindowFull
from quire.model.messages import MessageId, make_run
from quire.protocols.clusters.errors import (
    BufferOverflow,
    ChangeUnderWay,
    InvalidHierarchy,
    NotInCluster,
    StaleIncarnation,
    UnknownDestination,
    UnknownSite,
)
from quire.protocols.clusters.packets import Tagged
from quire.protocols.clusters.tree import Tree
from quire.protocols.contract import Send
from quire.protocols.hierarchy.description import Description, Layer, build, describe, tree_of
from quire.protocols.hierarchy.membership import FLUSHING, SWITCHING, DynamicSite
from quire.protocols.hierarchy.notes import ASK, FLUSHED, SWITCHED, YOU, Control, Joined, Left, Replaced, apply, is_possible
from quire.protocols.registry import create
from tests.hierarchy.trees import Net, factory
from tests.kit.state import freeze

MEMBERS = 8
INSIDE = pytest.mark.parametrize("inside", ["matrix", "coordinator", "mixed"])


def two_clusters(inside: str = "matrix") -> Tree:
    """Sites 0 to 2, whose agent is 0, and 3 to 5, whose agent is 3. Members 6 and 7 are outside."""
    return tree_of(Description((Layer(((0, 1, 2), (3, 4, 5)), (0, 3)), Layer(((0, 3),)))), inside)


class Group(Net):
    def __init__(self, inside: str = "matrix", held: int = 1 << 16) -> None:
        super().__init__(factory(two_clusters(inside), held=held), MEMBERS)
        for me in range(MEMBERS):
            self.site(me)

    def of(self, me: int) -> DynamicSite:
        site = self.site(me)
        assert isinstance(site, DynamicSite)
        return site

    def settled(self) -> bool:
        self.drain()
        return not any(self.of(me).changing for me in range(MEMBERS))


@INSIDE
def test_a_site_that_joins_can_send_to_all_and_is_sent_to_by_all(inside: str) -> None:
    group = Group(inside)
    group.send(1, 4)
    group.perform(6, group.of(6).join(3))
    with pytest.raises(WindowFull):
        group.of(6).send(make_run(6, 0, [b"x"]), (0,))
    assert group.settled()
    assert group.of(1).audience() == (0, 1, 2, 3, 4, 5, 6)
    to_it, from_it = group.send(1, 6), group.send(6, 1, 2, 4, 6)
    group.drain()
    assert sorted(group.logs[6]) == [to_it, from_it]
    assert group.logs[2] == [from_it]


@INSIDE
def test_a_site_that_moved_is_another_incarnation_in_another_cluster(inside: str) -> None:
    group = Group(inside)
    group.send(1, 5, 2)
    group.perform(1, group.of(1).move(3))
    assert group.settled()
    assert group.of(1).site == 1 + MEMBERS
    assert all(group.of(me).site_of(1) == 1 + MEMBERS for me in range(6))
    before = len(group.logs.get(1, []))
    sent = [group.send(0, 1), group.send(4, 1)]
    group.drain()
    assert sorted(group.logs[1][before:]) == sent
    assert group.of(1).routes.homes[1 + MEMBERS] == group.of(3).routes.homes[3][:1]


@INSIDE
def test_nothing_is_sent_to_a_site_while_it_moves(inside: str) -> None:
    group = Group(inside)
    group.perform(1, group.of(1).move(3))
    while not group.of(4).stopped:
        group.step()
    with pytest.raises(WindowFull, match="site 1 is moving"):
        group.of(4).send(make_run(4, 0, [b"x"]), (1,))
    with pytest.raises(WindowFull, match="member 1 is moving"):
        group.of(1).send(make_run(1, 0, [b"x"]), (4,))
    group.send(4, 5)
    assert group.settled()
    assert group.logs[5] == [MessageId(4, 0)]
    group.send(4, 1)
    group.drain()
    assert group.logs[1] == [MessageId(4, 1)]


@INSIDE
def test_a_site_that_left_cannot_be_sent_to_and_may_come_back_as_another(inside: str) -> None:
    group = Group(inside)
    group.perform(5, group.of(5).leave())
    assert group.settled()
    for me in (0, 4):
        with pytest.raises(UnknownSite, match="there is no site 5"):
            group.of(me).send(make_run(me, 0, [b"x"]), (5,))
    with pytest.raises(UnknownSite):
        group.of(5).submit(make_run(5, 0, [b"x"]))
    group.perform(5, group.of(5).join(0))
    assert group.settled()
    assert group.of(5).site == 5 + MEMBERS
    sent = group.send(4, 5)
    group.drain()
    assert group.logs[5] == [sent]


@INSIDE
def test_an_agent_is_replaced_and_may_then_leave(inside: str) -> None:
    group = Group(inside)
    group.send(1, 4)
    group.perform(0, group.of(0).replace(2))
    assert group.settled()
    assert len(group.of(2).orderings) == 2
    assert len(group.of(0).orderings) == 1
    sent = [group.send(1, 4), group.send(0, 4)]
    group.drain()
    assert group.logs[4][1:] == sent
    group.perform(0, group.of(0).leave())
    assert group.settled()
    assert group.of(4).audience() == (1, 2, 3, 4, 5)
    group.perform(1, group.of(1).submit(make_run(1, 2, [b"x"])))
    group.drain()
    assert all(group.logs[me][-1] == MessageId(1, 2) for me in (1, 2, 3, 4, 5))


@INSIDE
def test_a_cluster_is_attached_by_its_agent_and_detached_when_it_is_empty(inside: str) -> None:
    group = Group(inside)
    group.send(1, 4)
    group.perform(6, group.of(6).attach(0))
    assert group.settled()
    group.perform(7, group.of(7).join(6))
    assert group.settled()
    routes = group.of(1).routes
    assert [routes.role(site) for site in (6, 7)] == ["agent of layer 1", "client"]
    assert [(hop.source, hop.dest) for hop in routes.route(1, 7)] == [(1, 0), (0, 6), (6, 7)]
    sent = [group.send(1, 7), group.send(7, 1, 4), group.send(4, 6, 7)]
    group.drain()
    assert sorted(group.logs[7]) == [sent[0], sent[2]]
    assert sent[1] in group.logs[1]
    with pytest.raises(InvalidHierarchy, match="site 6 is an agent; replace it first"):
        group.of(6).leave()
    for me in (7, 6):
        group.perform(me, group.of(me).leave())
        assert group.settled()
    assert group.of(1).audience() == (0, 1, 2, 3, 4, 5)
    assert describe(group.of(1).routes.tree) == describe(two_clusters(inside))
    assert all(group.of(me).routes is group.of(1).routes for me in range(6))
    with pytest.raises(UnknownDestination):
        group.send(1, 6)
    group.sent[1] -= 1
    last = group.send(1, 5)
    group.drain()
    assert group.logs[5] == [last]


@INSIDE
def test_what_was_said_to_an_earlier_change_and_comes_again_does_not_count_for_the_next(inside: str) -> None:
    group = Group(inside)
    group.perform(0, group.of(0).replace(2))
    late = [(source, packet) for source, to, packet in group.drain() if to == 0 and isinstance(packet, Control)]
    assert {packet.what for _, packet in late} == {FLUSHED, SWITCHED}
    group.perform(0, group.of(0).leave())
    for phase in (FLUSHING, SWITCHING):
        while (barrier := group.of(0).barrier) is not None and barrier.phase != phase:
            group.step()
        for source, packet in late:
            group.perform(0, group.of(0).receive(source, packet))
        assert group.of(0).barrier == barrier
        assert barrier is not None
        assert barrier.awaited


def test_a_hierarchy_of_two_clusters_loses_none() -> None:
    """Site 5 leaves and 4 too, so that agent 3 is alone; without its cluster there would be no second layer."""
    group = Group()
    for me in (5, 4):
        group.perform(me, group.of(me).leave())
        assert group.settled()
    with pytest.raises(InvalidHierarchy, match="replace it first"):
        group.of(3).leave()


def test_a_gap_is_known_by_the_packet_that_is_missing() -> None:
    for inside in ("matrix", "coordinator"):
        group = Group(inside)
        group.drain()
        assert group.of(2).gap() is None
        lost = []
        for _ in range(2):
            group.send(1, 2)
            while group.queue and group.queue[0][1] != 2:
                group.step()
            lost.append(group.queue.popleft())
        group.perform(2, group.of(2).receive(*lost[1][::2]))
        gap = group.of(2).gap()
        assert gap is not None
        assert (gap.sender, gap.number) == (lost[0][0], 0)
        assert f"waits in cluster 0 for packet 0 of site {lost[0][0]}" in str(gap)
        group.perform(2, group.of(2).receive(*lost[0][::2]))
        assert group.of(2).gap() is None


def test_what_cannot_be_changed_is_refused() -> None:
    group = Group()
    with pytest.raises(InvalidHierarchy, match="site 0 is an agent; replace it first"):
        group.of(0).leave()
    with pytest.raises(InvalidHierarchy, match="site 4 is not the agent of cluster 1"):
        group.of(1).move(4)
    with pytest.raises(NotInCluster, match="site 4 is not a member of cluster 0"):
        group.of(0).replace(4)
    with pytest.raises(UnknownSite):
        group.of(1).move(7)
    with pytest.raises(UnknownSite):
        group.of(6).leave()
    with pytest.raises(InvalidHierarchy, match="is already in the hierarchy"):
        group.of(1).join(3)
    group.of(1).leave()
    with pytest.raises(ChangeUnderWay, match="another change"):
        group.of(1).move(3)


def test_a_site_that_asks_the_wrong_one_or_for_another_is_refused() -> None:
    group = Group()
    for asked, source, packet in [
        (1, 6, Control(YOU, 6, ASK, YOU, b"")),
        (0, 6, Control(YOU, 7, ASK, YOU, b"")),
        (0, 6, Control(YOU, 14, ASK, 5, b"")),
        (0, 4, Control(YOU, 12, ASK, YOU, b"")),
        (0, 4, Control(YOU, 4, 9, YOU, b"")),
        (0, 9, Control(0, 4, FLUSHED, 1, b"")),
    ]:
        before = freeze(group.of(asked))
        with pytest.raises(ProtocolViolation):
            group.of(asked).receive(source, packet)
        assert freeze(group.of(asked)) == before


def test_a_second_newcomer_waits_until_everybody_knows_the_first() -> None:
    group = Group()
    group.of(0).receive(6, Control(YOU, 6, ASK, YOU, b""))
    with pytest.raises(HoldBackFull):
        group.of(0).receive(7, Control(YOU, 7, ASK, YOU, b""))


def test_a_packet_for_an_earlier_incarnation_is_dropped_and_one_for_a_later_is_refused() -> None:
    group = Group()
    group.send(2, 1)
    (_, _, packet) = group.queue[0]
    assert isinstance(packet, Tagged)
    later = Tagged(packet.cluster, packet.slot, 1, packet.source, (), packet.run, b"", packet.encoding, packet.tag)
    with pytest.raises(StaleIncarnation):
        group.of(1).receive(2, later)
    group.perform(1, group.of(1).move(0))
    assert group.settled()
    assert not group.of(1).receive(2, packet)
    assert group.logs[1] == [MessageId(2, 0)]


def test_a_full_buffer_says_whose_packet_had_no_room() -> None:
    group = Group(held=1)
    for _ in range(3):
        group.send(2, 1)
    packets = [packet for _, _, packet in group.queue]
    assert not group.of(1).receive(2, packets[2])
    before = freeze(group.of(1))
    with pytest.raises(BufferOverflow, match="holds back 1 messages and has no room") as full:
        group.of(1).receive(2, packets[1])
    assert (full.value.cluster, full.value.sender) == (0, 2)
    assert freeze(group.of(1)) == before
    group.perform(1, group.of(1).receive(2, packets[0]))
    group.perform(1, group.of(1).receive(2, packets[1]))
    assert group.logs[1] == [MessageId(2, 0), MessageId(2, 1), MessageId(2, 2)]


@INSIDE
def test_a_packet_that_comes_again_while_it_waits_takes_no_more_room(inside: str) -> None:
    """Three messages come in the wrong order, the last of them twice. Under a coordinator, they come to it."""
    group = Group(inside, held=2)
    to = 1 if inside == "matrix" else 0
    for _ in range(3):
        group.send(2, to)
    first, second, third = (packet for _, _, packet in group.queue)
    site = group.of(to)
    for packet in (third, third, second, second):
        assert not site.receive(2, packet)
    assert site.held_back() == 2
    group.perform(to, site.receive(2, first))
    assert group.logs[to] == [MessageId(2, number) for number in range(3)]
    assert site.held_back() == 0


def test_messages_to_nobody_or_twice_to_one_are_refused() -> None:
    site = Group().of(0)
    for to in ((), (1, 1)):
        with pytest.raises(BadInput):
            site.send(make_run(0, 0, [b"x"]), to)
    with pytest.raises(BadInput, match="must send its own message 0 next"):
        site.send(make_run(0, 1, [b"x"]), (1,))


def test_only_addressed_protocols_send_to_some_members() -> None:
    plain = create("causal-vector", 0, 3)
    assert not plain.addressed
    with pytest.raises(BadInput, match="multicasts to the whole group only"):
        plain.send(make_run(0, 0, [b"x"]), (1,))
    for name in ("hierarchy", "matrix", "coordinator"):
        protocol = create(name, 0, 3)
        assert protocol.addressed
        assert any(isinstance(effect, Send) for effect in protocol.send(make_run(0, 0, [b"x"]), (1,)))


def test_a_change_that_makes_no_sense_is_not_possible() -> None:
    tree = two_clusters()
    assert not is_possible(tree, Joined(1, 6, 9, YOU)), "there is no such cluster"
    deep = tree_of(build(8, 2, 3))
    assert [is_possible(deep, Joined(1, 8, number, YOU)) for number in (0, 4, 6)] == [True, True, False], "not on layer 3"
    assert not is_possible(tree, Joined(1, 4, 0, YOU)), "it is here already"
    assert not is_possible(tree, Left(1, 3)), "it is an agent"
    assert not is_possible(tree, Replaced(1, 0, 4)), "they are in different clusters"
    assert not is_possible(tree, Replaced(1, 1, 2)), "it is no agent"
    left = apply(tree, Left(1, 4))
    assert not is_possible(left, Joined(1, 4, 0, YOU)), "no number is given twice"


def test_agents_can_be_exchanged_again_and_again() -> None:
    group = Group("mixed")
    for old, new in ((0, 1), (1, 0), (0, 2), (2, 0)):
        group.perform(old, group.of(old).replace(new))
        assert group.settled()
    sent = group.send(1, 5, 4, 0)
    group.drain()
    assert group.logs[5] == group.logs[4] == group.logs[0] == [sent]
