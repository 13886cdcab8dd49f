"""Random trees of calls over counters, for simulated and live runs: how many, how deep, how much of it conflicts.

Every object is a counter with two operations. `add` commutes, so it conflicts with nothing. `set` does not, so it
conflicts with itself; what it leaves depends on the order, and so shows whether replicas agree.
"""

from __future__ import annotations

from random import Random
from typing import Annotated, Any, ClassVar

import msgspec

from quire.model.errors import BadInput
from quire.objects.call import Call
from quire.objects.declare import Object, operation
from quire.objects.executor import Program
from quire.objects.placing import Placement, place
from quire.protocols.objects.declarations import Pair
from quire.protocols.objects.exchange import ObjectOptions

Percent = Annotated[int, msgspec.Meta(ge=0, le=100)]
Script = list[Any]
"""What an operation does before it is done: calls, each as targets, operation and script."""

_LIMIT = 1 << 31


class ObjectWorkloadOptions(ObjectOptions, frozen=True, kw_only=True):
    objects: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 6
    """Objects that live at one member each."""
    replicated: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 2
    """Objects that have a replica at every member."""
    conflicts: Percent = 30
    """Of a hundred calls, those that conflict with each other."""
    depth: Annotated[int, msgspec.Meta(ge=0, le=8)] = 1
    """How deep calls call further ones."""
    width: Annotated[int, msgspec.Meta(ge=1, le=8)] = 2
    """How many calls an operation makes at most."""
    targets: Annotated[int, msgspec.Meta(ge=1, le=64)] = 2
    """To how many objects a call goes at most."""
    aborts: Percent = 0
    """Of a hundred calls, those that abort."""
    work_us: Annotated[int, msgspec.Meta(ge=0, le=60_000_000)] = 0
    """How long an operation takes, besides its calls."""


class Aborted(Exception):
    """A call of the workload raised this, as planned."""


class Counter(Object):
    conflicts: ClassVar[set[Pair]] = {("set", "set")}
    compatible: ClassVar[set[Pair]] = {("add", "add"), ("add", "set")}

    def __init__(self, work_us: int = 0) -> None:
        self.total = 0
        self.last = 0
        self.work_s = work_us / 1_000_000

    @operation
    async def add(self, call: Call, amount: int, script: Script) -> None:
        await self.do(call, script)
        self.total += amount

    @add.undo
    def subtract(self, call: Call, amount: int, script: Script) -> None:  # noqa: ARG002
        self.total -= amount

    @operation
    async def set(self, call: Call, amount: int, script: Script) -> int:
        await self.do(call, script)
        self.last = (self.last * 31 + amount) % _LIMIT
        return self.last

    async def do(self, call: Call, script: Script) -> None:
        if self.work_s:
            await call.sleep(self.work_s)
        await run_script(call, script)


async def run_script(call: Call, script: Script) -> None:
    """Make all calls of a script at once, and wait for them."""
    for pending in [call.invoke(targets, op, amount, deeper) for targets, op, amount, deeper in script]:
        await pending
    if script and script[-1][2] < 0:
        raise Aborted("as planned")


def placements(members: int, options: ObjectWorkloadOptions) -> dict[str, Placement]:
    def make() -> Counter:
        return Counter(options.work_us)

    objects = {f"x{number}": place(Counter, number % members, make=make) for number in range(options.objects)}
    everywhere = {f"r{number}": place(Counter, *range(members), make=make) for number in range(options.replicated)}
    if not objects and not everywhere:
        raise BadInput("a group of objects needs at least one object; raise objects or replicated")
    return objects | everywhere


def random_program(random: Random, options: ObjectWorkloadOptions) -> Program:
    """A root that makes one call, whose tree is drawn now and stays the same whenever the root is retried."""
    script = [random_call(random, options)]

    async def program(call: Call) -> None:
        await run_script(call, script)

    return program


def random_call(random: Random, options: ObjectWorkloadOptions, depth: int | None = None) -> Script:
    """The targets, the operation, the amount, and what the operation does first."""
    depth = options.depth if depth is None else depth
    count = options.objects + options.replicated
    chosen = sorted(random.sample(range(count), min(count, random.randint(1, options.targets))))
    targets = [f"x{number}" if number < options.objects else f"r{number - options.objects}" for number in chosen]
    op = "set" if random.random() * 100 < options.conflicts else "add"
    calls = random.randint(0, options.width) if depth and chosen[-1] < options.objects else 0
    # Replicas call nobody, and neither does who is called together with them. A negative amount aborts the caller.
    amount = -1 if random.random() * 100 < options.aborts else random.randint(1, 100)
    return [targets, op, amount, [random_call(random, options, depth - 1) for _ in range(calls)]]
