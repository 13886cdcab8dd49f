"""Counts how many pairs of messages are ordered by significant precedence and by causality, in the same run of objects.

Causal order puts a message after everything its sender had sent or delivered before, whatever it was about. Significant order
puts it only after messages of its own instance, and of conflicting instances that had ended. Both are transitive. The past of
each message is read from the vector that it carries (significant), and from a vector clock of members that is kept here, beside
the protocol (causal).
"""

from __future__ import annotations

import msgspec
import numpy as np

from quire.objects.workload import ObjectWorkloadOptions
from quire.protocols.node import Notice
from quire.protocols.objects.notices import Answered, Refused, Sent, Started
from quire.protocols.objects.packets import PastOnWire
from quire.simulation.config import SimulationConfig
from quire.simulation.objects import SIMULATED_NS_MAX, ObjectScenario
from quire.simulation.runs import make_network
from quire.simulation.world import World

HISTORY = 1 << 20
Id = tuple[int, int]


class Pairs(msgspec.Struct, frozen=True):
    """Of all pairs of messages in a run, those that are ordered, and how long vectors are that say so."""

    messages: int
    causal: int
    significant: int
    entries_mean: float

    @property
    def all(self) -> int:
        return self.messages * (self.messages - 1) // 2


def count_pairs(config: SimulationConfig, options: ObjectWorkloadOptions) -> Pairs:
    """Run the workload of objects; nothing is forgotten in vectors, so that each says everything."""
    whole = msgspec.structs.replace(options, collect=False, history=HISTORY)
    world = World(make_network(config))
    watched = Watched(config, whole, world)
    watched.start()
    if not world.run(SIMULATED_NS_MAX, watched.done):
        raise RuntimeError(f"{watched.total() - watched.ended} roots did not end within an hour of simulated time")
    pasts = watched.pasts()
    significant = sum(sum(mark.sends for _, mark in past) for past in pasts)
    entries = sum(map(len, pasts)) / max(1, len(pasts))
    return Pairs(len(pasts), sum(int(clock.sum()) - 1 for clock in watched.clocks.values()), significant, entries)


class Watched(ObjectScenario):
    """Keeps a vector clock for each member, and the one with which each message left."""

    def __init__(self, config: SimulationConfig, options: ObjectWorkloadOptions, world: World) -> None:
        super().__init__(config, options, world)
        self.clocks: dict[Id, np.ndarray] = {}
        self._clock = np.zeros((config.members, config.members), np.int64)

    def pasts(self) -> list[PastOnWire]:
        nodes = [executor.node for executor in self.group.executors]
        return [head.past for node in nodes for key, head in node.heads.found.items() if key[0] == node.address]

    def _observe(self, notice: Notice) -> None:
        super()._observe(notice)
        match notice:
            case Sent():
                member = notice.sender.member
                message = (member, notice.number if notice.shared is None else notice.shared)
                if message not in self.clocks:  # A request to several targets is one message.
                    self._clock[member, member] += 1
                    self.clocks[message] = self._clock[member].copy()
            case Started() | Refused():
                self._learn(notice.instance.member, (notice.instance.origin, notice.instance.number))
            case Answered():
                self._learn(notice.instance.member, (notice.source, notice.number))

    def _learn(self, member: int, message: Id) -> None:
        np.maximum(self._clock[member], self.clocks[message], out=self._clock[member])
