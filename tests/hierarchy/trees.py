"""Trees for tests: those of the specification, by name or number, and random ones; and sites that are made when needed."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from quire.model.messages import MessageId, make_run
from quire.model.packets import Packet
from quire.protocols.clusters.site import Site
from quire.protocols.clusters.tree import MATRIX, Tree
from quire.protocols.contract import Effects, Send
from quire.protocols.hierarchy.description import Description, Layer, tree_of
from quire.protocols.hierarchy.membership import DynamicSite

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parent.parent / "golden" / "yen.json").read_text())


def named_tree(data: Mapping[str, Any], inside: str = MATRIX) -> tuple[Tree, dict[Any, int]]:
    """A hierarchy as the specification writes it, and the number of each of its sites."""
    names = {name: number for number, name in enumerate(name for cluster in data["layers"][0] for name in cluster)}
    layers = [
        Layer(
            tuple(tuple(names[name] for name in cluster) for cluster in layer),
            tuple(names[name] for name in (data["agents"][level] if level < len(data["agents"]) else ())),
        )
        for level, layer in enumerate(data["layers"])
    ]
    return tree_of(Description(tuple(layers)), inside), names


def random_tree(random: Random, sites: int, inside: str = MATRIX) -> Tree:
    """Any hierarchy of these sites, with clusters of any sizes and any agents."""
    layers: list[Layer] = []
    here = list(range(sites))
    while len(here) > 2 and random.random() < 0.8:
        random.shuffle(here)
        count = random.randint(2, len(here) - 1)
        cuts = sorted(random.sample(range(1, len(here)), count - 1))
        clusters = [tuple(here[start:stop]) for start, stop in zip([0, *cuts], [*cuts, len(here)], strict=True)]
        agents = tuple(random.choice(cluster) for cluster in clusters)
        layers.append(Layer(tuple(clusters), agents))
        here = list(agents)
    return tree_of(Description((*layers, Layer((tuple(here),)))), inside)


def factory(
    tree: Tree, *, kind: Callable[..., Site] = DynamicSite, encoding: str = "dense", held: int = 1 << 20
) -> Callable[[int, int], Site]:
    return lambda me, members: kind(me, members, tree, encoding, held)


class Net:
    """Sites of one tree that exist once something comes to them. Packets wait in one queue, in the order sent."""

    def __init__(self, make: Callable[[int, int], Site], members: int) -> None:
        self.make = make
        self.members = members
        self.sites: dict[int, Site] = {}
        self.logs: dict[int, list[MessageId]] = {}
        self.queue: deque[tuple[int, int, Packet]] = deque()
        self.hops: list[tuple[int, int, Packet]] = []
        self.sent: dict[int, int] = {}

    def site(self, me: int) -> Site:
        if me not in self.sites:
            self.sites[me] = self.make(me, self.members)
        return self.sites[me]

    def send(self, source: int, *to: int) -> MessageId:
        number = self.sent.get(source, 0)
        self.sent[source] = number + 1
        self.perform(source, self.site(source).send(make_run(source, number, [b"x"]), to))
        return MessageId(source, number)

    def perform(self, me: int, effects: Effects) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                assert effect.to is not None
                self.queue += [(me, to, effect.packet) for to in effect.to]
                continue
            run = effect.run
            self.logs.setdefault(me, []).extend(MessageId(run.origin, seq) for seq in range(run.first, run.end))

    def step(self) -> None:
        source, to, packet = self.queue.popleft()
        self.hops.append((source, to, packet))
        self.perform(to, self.site(to).receive(source, packet))

    def drain(self) -> Sequence[tuple[int, int, Packet]]:
        """Take everything; returns the hops since the last call."""
        while self.queue:
            self.step()
        hops, self.hops = self.hops, []
        return hops
