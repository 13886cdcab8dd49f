"""A site passes letters on in the order in which they came to it: one queue, not one for each direction."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from random import Random

import pytest

from quire.model.messages import MessageId, make_run
from quire.model.orders import Guarantee
from quire.protocols.clusters.held import Arrival
from quire.protocols.clusters.packets import Letter, Sites
from quire.protocols.clusters.site import APPLICATION, Site
from quire.protocols.contract import Effect
from tests.hierarchy.trees import GOLDEN, Net, factory, named_tree, random_tree
from tests.kit.oracles import ORACLES
from tests.kit.world import World


class PerDirection(Site):
    """The paper's relay: what goes from one cluster to another waits in a queue of that direction alone."""

    def _relay(self, arrival: Arrival, effects: list[Effect]) -> list[Arrival]:
        letter, dests, via, _ = arrival
        if via == APPLICATION:
            return super()._relay(arrival, effects)
        if not dests or self.site in dests:
            effects.append(self._deliver(arrival))
        for number, hops in self._hops(dests, via).items():
            self.queues.setdefault((via, number), deque()).append((letter, hops))
        return []

    @property
    def queues(self) -> dict[tuple[int, int], deque[tuple[Letter, dict[int, Sites]]]]:
        queues: dict[tuple[int, int], deque[tuple[Letter, dict[int, Sites]]]] = self.__dict__.setdefault("_queues", {})
        return queues

    def directions(self) -> list[tuple[int, int]]:
        """The directions in which something waits."""
        return [direction for direction, queue in self.queues.items() if queue]

    def pass_on(self, direction: tuple[int, int]) -> Sequence[Effect]:
        """The oldest letter of one direction goes on."""
        letter, hops = self.queues[direction].popleft()
        effects: list[Effect] = []
        self._inject(direction[1], letter, hops, effects)
        return effects


class Relays(Net):
    """A net whose sites pass letters on when told to, if they have queues."""

    def pass_on(self, me: int, *, but: Sequence[tuple[int, int]] = ()) -> None:
        site = self.site(me)
        assert isinstance(site, PerDirection)
        for direction in site.directions():
            while direction not in but and site.queues[direction]:
                self.perform(me, site.pass_on(direction))


INSIDE = ["matrix", "coordinator"]


@pytest.mark.parametrize("inside", INSIDE)
@pytest.mark.parametrize(("kind", "expected"), [(Site, "serial"), (PerDirection, "per_direction")])
def test_a_message_is_not_overtaken_by_one_that_its_relay_sends(inside: str, kind: type[Site], expected: str) -> None:
    case = GOLDEN["mr_counterexample"]
    tree, names = named_tree(case["hierarchy"], inside)
    p, x, q = (names[name] for name in "PXQ")
    net = Relays(factory(tree, kind=kind), 3)
    known = {net.send(p, q): "m", net.send(p, x): "m1"}
    while net.queue and net.queue[0][1] == x:
        net.step()
    assert net.logs[x] == [MessageId(p, 1)]
    known[net.send(x, q)] = "m'"
    net.drain()
    if kind is PerDirection:
        net.pass_on(x)
        net.drain()
    assert [known[message] for message in net.logs[q]] == case[f"{expected}_delivery_at_Q"]


@pytest.mark.parametrize("inside", INSIDE)
@pytest.mark.parametrize(("kind", "expected"), [(Site, "serial"), (PerDirection, "per_direction")])
def test_an_agent_on_three_layers_that_only_relays_keeps_the_order(inside: str, kind: type[Site], expected: str) -> None:
    case = GOLDEN["mr_counterexample_relay_only"]
    tree, names = named_tree(case["hierarchy"], inside)
    p, x, b, q = (names[name] for name in "PXBQ")
    clusters = {frozenset(cluster.sites): cluster.number for cluster in tree.clusters}
    late = [(clusters[frozenset({p, x})], clusters[frozenset({x, q})])]
    net = Relays(factory(tree, kind=kind), len(names))
    known = {net.send(p, q): "m"}
    net.send(p, b)
    net.drain()
    if kind is PerDirection:
        net.pass_on(x, but=late)
        net.drain()
    assert len(net.logs[b]) == 1
    known[net.send(b, q)] = "m'"
    net.drain()
    if kind is PerDirection:
        net.pass_on(x, but=late)
        net.drain()
        net.pass_on(x)
        net.drain()
    assert [known[message] for message in net.logs[q]] == case[f"{expected}_delivery_at_Q"]


def causal_violation(seed: int) -> str | None:
    """A random schedule of messages through per-direction queues that are worked off at any time."""
    random = Random(seed)
    count = random.randint(3, 7)
    tree = random_tree(random, count, random.choice(INSIDE))
    world = World(count, factory(tree, kind=PerDirection), reordering=True)
    left = 14
    while True:
        relays = [(me, site, way) for me, site in enumerate(world.protocols) if isinstance(site, PerDirection)
                  for way in site.directions()]  # fmt: skip
        moves = [*world.steps(), *relays, *(["send"] * 2 if left else [])]
        if not moves:
            return ORACLES[Guarantee.CAUSAL](world.history())
        move = random.choice(moves)
        if isinstance(move, str):
            left -= 1
            world.submit(random.randrange(count), [b"x"], (random.randrange(count),))
        elif isinstance(move, tuple):
            world.act(move[0], move[1].pass_on(move[2]))
        else:
            world.perform(move)


def test_a_swarm_catches_a_relay_with_a_queue_for_each_direction() -> None:
    assert any(causal_violation(seed) for seed in range(1500))


def test_a_message_to_oneself_passes_the_cluster_and_never_the_network_of_a_matrix() -> None:
    tree, _ = named_tree(GOLDEN["mrp"]["hierarchy"])
    net = Net(factory(tree, kind=Site), 27)
    message = net.send(1, 1)
    assert not net.queue
    assert net.logs[1] == [message]
    assert net.site(1).orderings[0].sent[4] == 1


def test_copies_for_sites_behind_one_hop_travel_as_one_until_their_paths_part() -> None:
    tree, _ = named_tree(GOLDEN["mrp"]["hierarchy"])
    net = Net(factory(tree, kind=Site), 27)
    message = net.send(1, 26, 25, 2, 10)
    hops = [(source, to) for source, to, _ in net.drain()]
    assert sorted(hops) == [(0, 9), (0, 18), (1, 0), (1, 2), (9, 10), (18, 24), (24, 25), (24, 26)]
    assert all(net.logs[site] == [message] for site in (26, 25, 2, 10))
    assert 0 not in net.logs


@pytest.mark.parametrize("inside", INSIDE)
def test_a_multicast_to_all_comes_to_every_site_once(inside: str) -> None:
    tree, _ = named_tree(GOLDEN["mrp"]["hierarchy"], inside)
    net = Net(factory(tree, kind=Site), 27)
    net.perform(13, net.site(13).submit(make_run(13, 0, [b"x"])))
    hops = net.drain()
    assert all(net.logs[site] == [MessageId(13, 0)] for site in range(27))
    if inside == "matrix":
        assert len(hops) == 26
