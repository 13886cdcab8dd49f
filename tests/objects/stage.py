"""Small scenes: one object a member, whose operations do what the scene says, on a network with known delays."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from quire.objects.call import Call
from quire.objects.declare import Object, operation
from quire.objects.executor import Executor, Program
from quire.protocols.objects.declarations import Catalogue, Pair, Placed, declare
from quire.protocols.objects.exchange import ObjectOptions
from quire.protocols.objects.node import ObjectNode
from quire.simulation.delays import parse_delays
from quire.simulation.network import Network, Split
from quire.simulation.randomness import stream
from quire.simulation.steps import SteppedRuntime
from quire.simulation.world import World
from tests.objects.kit import add_to_world

OPERATIONS = ("op0", "op1")
Play = Callable[[Call], Awaitable[Any]]


async def nothing(call: Call) -> None:
    """An operation that is done at once."""


class Actor(Object):
    def __init__(self, plays: dict[str, Play], ran: list[str]) -> None:
        self.plays = plays
        self.ran = ran

    @operation
    async def op0(self, call: Call, name: str) -> None:
        await self._play(call, "op0", name)

    @operation
    async def op1(self, call: Call, name: str) -> None:
        await self._play(call, "op1", name)

    async def _play(self, call: Call, op: str, name: str) -> None:
        self.ran.append(name)
        await self.plays.get(op, nothing)(call)


class Stage:
    def __init__(
        self,
        conflicts: Sequence[Sequence[Pair]],
        plays: dict[str, dict[str, Play]],
        *,
        node_class: type[ObjectNode] = ObjectNode,
        splits: Sequence[Split] = (),
    ) -> None:
        members = len(conflicts)
        network = Network(members, parse_delays("constant:1", members), stream(0, "network"), splits=splits)
        self.world = World(network)
        listed = ((op, other) for op in OPERATIONS for other in OPERATIONS)
        every = {(min(pair), max(pair)) for pair in listed}
        self.catalogue = Catalogue(
            members,
            {
                f"o{index}": Placed(declare(OPERATIONS, pairs, every - {(min(pair), max(pair)) for pair in pairs}), (index,))
                for index, pairs in enumerate(conflicts)
            },
        )
        self.ran: dict[str, list[str]] = {name: [] for name in self.catalogue.objects}
        self.executors: list[Executor] = []
        self.done: list[BaseException | None] = []
        for member in range(members):
            runtime = SteppedRuntime(self.world, stream(0, "jitter"))
            name = f"o{member}"
            node = node_class(member, self.catalogue, ObjectOptions(heartbeat_ms=5))
            executor = Executor(node, {name: Actor(plays.get(name, {}), self.ran[name])}, runtime)
            add_to_world(self.world, executor, runtime)
            self.executors.append(executor)

    def at(self, at_ms: float, member: int, program: Program) -> None:
        """Start a root."""
        executor = self.executors[member]

        def begin(_: object) -> None:
            executor._runtime.start(executor.run(program), lambda _result, error: self.done.append(error))

        self.world.at(int(at_ms * 1_000_000), begin, None)

    def run(self, roots: int, until_ms: int = 1000) -> bool:
        return self.world.run(until_ms * 1_000_000, lambda: len(self.done) == roots and self.world.idle())

    def active(self, member: int) -> int:
        """How many instances are active at the member's object."""
        return sum(len(queue.active) for queue in self.executors[member].node.queues.values())

    def waiting(self, member: int) -> int:
        """How many messages wait in the member's receipt queue."""
        node = self.executors[member].node
        return sum(len(queue.copies) for queue in node.queues.values()) + sum(map(len, node._responses.values()))


def calls(targets: str | list[str], op: str, name: str, *, after_s: float = 0.0) -> Program:
    async def program(call: Call) -> None:
        if after_s:
            await call.sleep(after_s)
        await call.invoke(targets, op, name)

    return program
