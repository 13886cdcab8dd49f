"""A live hierarchy: only neighbours connect, messages go to whom they are for, and nobody leaves too early."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from quire.live import Group
from quire.live.errors import MemberUnreachable
from quire.live.network.closing import Closing
from quire.live.network.mesh import Mesh
from quire.live.network.peers import Peer
from quire.live.network.rosters import FixedRoster
from quire.live.network.topology import Topology
from quire.live.outbox import Outbox
from quire.live.settings import Settings
from quire.model.errors import BadInput
from quire.model.messages import make_run
from quire.model.payloads import as_messages
from quire.protocols.clusters.packets import Tagged
from quire.wire.frames import CLOSING, DONE, DRAINED
from tests.hierarchy.trees import factory, random_tree
from tests.kit.patience import PATIENCE_S
from tests.live.running import made_of
from tests.live.test_group import with_groups

Addresses = Callable[[int], list[str]]
INSIDE = ["matrix", "coordinator", "mixed"]


async def take_all(group: Group, log: list[tuple[int, bytes]]) -> None:
    async for delivery in group.runs():
        log += [(delivery.run.origin, payload) for payload in delivery.run.payloads()]


@pytest.mark.parametrize("inside", INSIDE)
def test_messages_reach_whom_they_are_for_through_neighbours_alone(addresses: Addresses, inside: str) -> None:
    """Seven sites in three layers. All close at once while much is under way, and everything arrives all the same."""
    logs: list[list[tuple[int, bytes]]] = [[] for _ in range(7)]
    expected: list[list[tuple[int, bytes]]] = [[] for _ in range(7)]

    async def act(groups: list[Group]) -> None:
        taking = [asyncio.ensure_future(take_all(group, log)) for group, log in zip(groups, logs, strict=True)]
        assert [sorted(group._mesh.peers) for group in groups] == NEIGHBOURS
        random = Random(inside)
        for number in range(60):
            for group in groups:
                to = random.sample(range(7), random.choice((1, 1, 1, 1, 3)))
                payload = f"{number}".encode()
                await (group.multicast(payload) if number % 20 == 7 else group.send(payload, to))
                for member in range(7) if number % 20 == 7 else to:
                    expected[member].append((group.me, payload))
        await asyncio.gather(*(group.close() for group in groups))
        await asyncio.gather(*taking)

    with_groups(addresses(7), act, protocol="hierarchy", options={"branching": 2, "inside": inside})
    for log, due in zip(logs, expected, strict=True):
        assert sorted(log) == sorted(due)
        for origin in range(7):
            assert [each for each in log if each[0] == origin] == [each for each in due if each[0] == origin]


NEIGHBOURS = [[1, 2, 4], [0], [0, 3], [2], [0, 5, 6], [4], [4]]


def test_a_question_is_delivered_before_its_answer_wherever_the_two_part(addresses: Addresses) -> None:
    async def act(groups: list[Group]) -> None:
        logs: list[list[tuple[int, bytes]]] = [[] for _ in groups]
        taking = [asyncio.ensure_future(take_all(group, log)) for group, log in zip(groups, logs, strict=True)]
        for number in range(30):
            await groups[1].send(b"question %d" % number, to=(3, 5))
            while (1, b"question %d" % number) not in logs[3]:
                await asyncio.sleep(0)
            await groups[3].send(b"answer %d" % number, to=(5,))
        await asyncio.gather(*(group.close() for group in groups))
        await asyncio.gather(*taking)
        heard = [payload for _, payload in logs[5]]
        assert len(heard) == 60
        assert all(heard.index(b"question %d" % number) < heard.index(b"answer %d" % number) for number in range(30))

    with_groups(addresses(7), act, protocol="hierarchy", options={"branching": 2})


@pytest.mark.parametrize(("to", "reason"), [((), "at least one destination"), ((1, 1), "none twice"), ((9,), "no member 9")])
def test_a_message_to_nobody_is_refused(addresses: Addresses, to: tuple[int, ...], reason: str) -> None:
    async def act(groups: list[Group]) -> None:
        with pytest.raises(BadInput, match=reason):
            await groups[0].send(b"x", to)

    with_groups(addresses(2), act, protocol="matrix")


def test_a_description_that_leaves_out_a_member_is_refused(addresses: Addresses) -> None:
    text = "[[layers]]\nclusters = [[0, 2]]\n"
    with pytest.raises(BadInput, match="member 1 is missing from the hierarchy"):
        Group(made_of(addresses(3), 0, protocol="hierarchy", options={"description": text}))


def test_a_group_that_only_multicasts_says_so(addresses: Addresses) -> None:
    async def act(groups: list[Group]) -> None:
        with pytest.raises(BadInput, match="two-phase multicasts to the whole group only"):
            await groups[0].send(b"x", to=(1,))

    with_groups(addresses(2), act, protocol="two-phase")


def test_a_member_that_is_no_neighbour_is_not_let_in(addresses: Addresses) -> None:
    """Member 6 is told by its own mesh to connect to member 1, whose only neighbour is member 0."""
    where = addresses(7)
    settings = [made_of(where, me, protocol="hierarchy", options={"branching": 2}, timeout_s=1.0) for me in range(7)]

    async def main() -> None:
        inside, outside = Group(settings[1]), Group(settings[6])
        outside._mesh = Mesh(settings[6], (Tagged,), outside, FixedRoster(settings[6], Topology((1,), {1: ()})))

        async def enter(group: Group) -> BaseException | None:
            try:
                async with group:
                    return None
            except (BadInput, MemberUnreachable) as error:
                return error

        refused, _ = await asyncio.gather(enter(outside), enter(inside))
        assert "member 6 is not a neighbour of member 1" in str(refused)

    asyncio.run(asyncio.wait_for(main(), PATIENCE_S))


def test_a_relay_stays_bounded_while_the_last_hop_takes_nothing(addresses: Addresses) -> None:
    """Messages of member 1 to member 3 go over 0 and 2. Until 3 takes what it gets, 1 has to wait in the end."""
    text = "[[layers]]\nclusters = [[0, 1], [2, 3]]\nagents = [0, 2]\n[[layers]]\nclusters = [[0, 2]]\n"
    limit, size, count = 400_000, 40_000, 200
    where = addresses(4)

    def settings(me: int) -> Settings:
        one = made_of(where, me, protocol="hierarchy", options={"description": text}, link_bytes_max=limit, timeout_s=20.0)
        return replace(one, inbox_messages_max=10, run_bytes_max=4 * size)

    async def send(group: Group) -> None:
        for _ in range(count):
            await group.send(bytes(size), to=(3,))

    async def main() -> None:
        groups = [Group(settings(me)) for me in range(4)]
        await asyncio.gather(*(group.__aenter__() for group in groups))
        sending = asyncio.ensure_future(send(groups[1]))
        while not all(groups[me]._mesh._intake._blocked for me in (0, 2)):
            await asyncio.sleep(0.01)
        assert not sending.done()
        for group in groups:
            for peer in group._mesh.peers.values():
                assert peer.outgoing.bytes <= limit + 10 * size
        taken: list[tuple[int, bytes]] = []
        taking = asyncio.ensure_future(take_all(groups[3], taken))
        await sending
        await asyncio.gather(*(group.close() for group in groups))
        await taking
        assert len(taken) == count

    asyncio.run(asyncio.wait_for(main(), PATIENCE_S))


class Parting:
    """Closings of random hierarchies over links that keep their order, with letters still under way."""

    def __init__(self, random: Random, inside: str) -> None:
        members = random.randint(2, 9)
        self.random = random
        make = factory(random_tree(random, members, inside))
        self.sites = [make(me, members) for me in range(members)]
        self.links: dict[tuple[int, int], deque[tuple[int, Any]]] = {}
        self.peers: list[dict[int, Peer]] = []
        self.closings: list[Closing] = []
        self.over: list[int] = []
        self.delivered = 0
        for site in self.sites:
            topology = Topology.of(site)
            self.links |= {(site.me, to): deque() for to in topology.neighbours}
            peers = {to: Peer(to, "") for to in topology.neighbours}
            self.peers.append(peers)
            self.closings.append(Closing(peers, topology, self._say(site.me)))

    def _say(self, me: int) -> Callable[[Peer, int, bytes], None]:
        return lambda peer, kind, body: self.links[me, peer.member].append((kind, body))

    def perform(self, me: int, effects: Any) -> None:
        for effect in effects:
            if hasattr(effect, "packet"):
                for to in effect.to:
                    self.links[me, to].append((0, effect.packet))
            else:
                self.delivered += 1

    def step(self) -> bool:
        """Take something from a random link; False when there is nothing."""
        waiting = [link for link, frames in self.links.items() if frames]
        if not waiting:
            return False
        source, me = self.random.choice(waiting)
        kind, body = self.links[source, me].popleft()
        peer = self.peers[me][source]
        if not kind:
            assert me not in self.over, f"a letter came to site {me}, which had left"
            self.perform(me, self.sites[me].receive(source, body))
        elif kind == CLOSING:
            peer.closing_after = 0
            self.closings[me].close(0)
        elif kind == DRAINED:
            assert peer.closing_after is not None
            peer.drained = True
        else:
            assert kind == DONE
            peer.done = True
        self.closings[me].advance([])
        if self.closings[me].is_over() and me not in self.over:
            self.over.append(me)
        return True


@pytest.mark.parametrize("inside", INSIDE)
def test_nobody_leaves_before_all_letters_have_arrived_and_all_leave_in_the_end(inside: str) -> None:
    for seed in range(150):
        random = Random(f"{inside} {seed}")
        world = Parting(random, inside)
        members = len(world.sites)
        due = 0
        for number in range(6):
            for site in world.sites:
                to = tuple(random.sample(range(members), random.randint(1, members)))
                world.perform(site.me, site.send(make_run(site.me, number, [b"x"]), to))
                due += len(to)
                world.step()
        world.closings[random.randrange(members)].close(0)
        while world.step():
            assert not world.over or world.delivered == due, f"seed {seed}"
        assert sorted(world.over) == list(range(members)), f"seed {seed}"
        assert world.delivered == due


def test_a_run_in_the_outbox_holds_messages_for_the_same_members_only() -> None:
    outbox: Outbox[tuple[int, ...]] = Outbox(3, 100)
    outbox.accept(as_messages([b"a", b"b"]))
    outbox.accept(as_messages([b"c"]), (1,))
    outbox.accept(as_messages([b"d", b"e", b"f", b"g"]), (1,))
    outbox.accept(as_messages([b"h"]))
    runs = [outbox.take_run()]
    outbox.put_back(outbox.take_run())
    while len(outbox):
        runs.append(outbox.take_run())
    assert [(run.payloads, run.to) for run in runs] == [
        ([b"a", b"b"], None),
        ([b"c", b"d", b"e"], (1,)),
        ([b"f", b"g"], (1,)),
        ([b"h"], None),
    ]
