"""Random schedules of a world, from a seed.

A schedule is unfair in ways that differ from seed to seed, since even chances on every channel hardly ever let one
packet wait for long: each channel has a speed of its own, and submissions come in haste or slowly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from quire.model.orders import Guarantee, in_order
from tests.kit.oracles import ORACLES
from tests.kit.world import Factory, Step, Submit, Take, World, misplaced_key

SPEEDS = (1.0, 1.0, 0.3, 0.05, 0.005)
REPEATED = 0.1
"""How often a link that may repeat packets does."""


class StuckError(AssertionError):
    """Packets or messages are left, and no member has room for them."""


@dataclass(frozen=True)
class Plan:
    """What happens in a world, but for the order in which it happens."""

    members: int
    runs: Sequence[Submit]
    """Each member's in the order in which it sends them."""
    crash: int | None = None
    """Which member crashes, if any."""


def random_plan(
    random: Random, *, members: tuple[int, int] = (2, 5), runs: int = 8, crash: bool = False, addressed: bool = False
) -> Plan:
    """A group of some size, in which some or all members send some runs, most of them short.

    If `addressed`, one run in five is for several members and the others for one.
    """
    size = random.randint(*members)
    senders = random.sample(range(size), random.randint(1, size))
    chosen = []
    for number in range(random.randint(1, runs)):
        count = random.choice((1, 1, 2, 3, 5))
        payloads = tuple(b"%d.%d" % (number, part) * random.choice((1, 1, 2)) for part in range(count))
        to = tuple(random.sample(range(size), random.randint(1, size) if random.random() < 0.2 else 1)) if addressed else None
        chosen.append(Submit(random.choice(senders), payloads, to))
    return Plan(size, chosen, random.randrange(size) if crash else None)


def run_plan(plan: Plan, factory: Factory, random: Random, *, reordering: bool = False) -> World:
    """A world in which the whole plan happened, in a random order, and nothing is left to happen. Links of members that may
    crash keep their order: members know beginnings of what one that crashed has sent, which may be different ones."""
    reordering = reordering and plan.crash is None
    world = World(plan.members, factory, reordering=reordering)
    speed = {channel: random.choice(SPEEDS) for channel in world.channels}
    haste = random.choice((0.1, 1.0, 5.0))
    crash_at = random.randint(1, 6 * len(plan.runs))
    todo = list(plan.runs)
    refused: set[Step] = set()
    done = 0
    while True:
        done += 1
        if plan.crash is not None and world.crashed is None and done >= crash_at:
            todo = [run for run in todo if run.member != plan.crash]
            _crash(world, plan.crash, random)
            refused.clear()
        todo = [run for run in todo if not world.is_frozen(run.member)]
        possible: list[Step] = [*world.steps(), *{run.member: run for run in reversed(todo)}.values()]
        steps = [step for step in possible if step not in refused]
        if not steps:
            if possible:
                raise StuckError(f"no member has room for any of {possible}")
            if plan.crash is None or world.crashed is not None:
                return world
            crash_at = done
            continue
        weights = [speed[step.source, step.dest] if isinstance(step, Take) else haste for step in steps]
        (step,) = random.choices(steps, weights)
        if reordering and isinstance(step, Take) and random.random() < REPEATED:
            step = Take(step.source, step.dest, step.index, again=True)
        if world.perform(step):
            refused.clear()
            if isinstance(step, Submit):
                todo.remove(step)
        else:
            refused.add(step)


def broken_promise(world: World, promises: frozenset[Guarantee]) -> str | None:
    """A sentence on the first promise that what was delivered in the world breaks, or None."""
    history = world.history()
    for guarantee in in_order(promises):
        witness = ORACLES[guarantee](history)
        if witness is not None:
            return f"{guarantee} is broken: {witness}"
    if world.crashed is None and any(protocol.held_back() for protocol in world.protocols):
        return "a member holds something back although nothing is under way"
    return misplaced_key(world)


def _crash(world: World, member: int, random: Random) -> None:
    lost = {dest: random.randint(0, len(world.channels[member, dest])) for dest in range(world.members) if dest != member}
    world.crash(member, lost)
