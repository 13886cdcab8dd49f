"""Random runs of a sequencing service: everything about one follows from its order and its seed."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import msgspec

from quire.protocols.sequencing.options import SequencingOptions
from quire.protocols.sequencing.placement import components
from tests.kit.late import Lateness
from tests.sequencing.kit import MS, RIGHT, TICK_MS, Action, Faults, Kinds, Service

LATE_NS = 1000 * MS


class Plan(msgspec.Struct, frozen=True):
    """One random run: everything that follows from its seed."""

    options: SequencingOptions
    initial: dict[str, tuple[int, tuple[int, ...]]]
    clients: int
    sequencers: int
    faults: Faults
    actions: tuple[Action, ...]
    seed: int

    def play(self, kinds: Kinds = RIGHT) -> Service:
        service = Service(
            self.options, self.initial, clients=self.clients, sequencers=self.sequencers, seed=self.seed,
            faults=self.faults, kinds=kinds,
        )  # fmt: skip
        return service.play(self.actions).run()


def random_plan(seed: int, order: str, *, pipelined: bool | None = None, quick: bool = False, **fixed: object) -> Plan:
    """Overlapping groups that are sent to, joined, left and moved on a network that may be very bad."""
    random = Random(f"{order} {seed}")
    clients, sequencers = random.randint(2, 4), random.randint(1, 3)
    names = [f"G{number}" for number in range(random.randint(1, 4))]
    acyclic = order != "hybrid" and random.random() < 0.25
    options = SequencingOptions(
        order=order,  # type: ignore[arg-type]
        acyclic=acyclic,
        pipelined=random.random() < 0.5 if pipelined is None else pipelined,
        bodies=random.choice(("relay", "relay", "direct")),
        window=random.choice((4, 8)),
        history=random.choice((8, 1 << 17)),
        tick_ms=TICK_MS,
        lease_ticks=random.choice((3, 60)),
        balance_ticks=random.choice((0, 5)),
    )
    options = msgspec.structs.replace(options, **fixed)
    members = {name: tuple(sorted(random.sample(range(clients), random.randint(0, clients)))) for name in names}
    # Where there are no joins yet, groups lie as they must.
    initial = {name: (0 if options.totally else random.randrange(sequencers), members[name]) for name in names}
    if options.totally and not acyclic:
        initial = _spread(random, members, sequencers)
    faults = Faults(
        loss=random.choice((0.0, 0.1, 0.3, 0.45)),
        duplicate=random.choice((0.0, 0.1, 0.3)),
        delay=random.choice(("exponential:5", "uniform:1:10", "exponential:20")),
    )
    actions, at = [], 0
    for _ in range(random.randint(4, 10 if quick else 16)):
        at += random.choice((0, 1, 3, 10, 30, 100))
        kind = random.choice(("send", "send", "send", "join", "leave", "move"))
        actions.append(Action(at, kind, random.randrange(clients), random.choice(names), random.randint(1, 3)))
    return Plan(options, initial, clients, sequencers, faults, tuple(actions), seed)


def _spread(random: Random, members: Mapping[str, tuple[int, ...]], sequencers: int) -> dict[str, tuple[int, tuple[int, ...]]]:
    """Each strong component at a sequencer of its own."""
    locations = {
        group: location for part in components(members, 2) for location in [random.randrange(sequencers)] for group in part
    }
    return {group: (locations[group], clients) for group, clients in members.items()}


def restless_plan(seed: int, order: str) -> Plan:
    """Groups that clients join and leave all the time, while copies of what they asked for before still come."""
    random = Random(f"restless {order} {seed}")
    clients, names = random.randint(2, 3), ["G0", "G1", "G2"]
    options = SequencingOptions(order=order, tick_ms=TICK_MS, lease_ticks=100, balance_ticks=0)  # type: ignore[arg-type]
    members = {name: tuple(sorted(random.sample(range(clients), random.randint(0, clients)))) for name in names}
    faults = Faults(loss=random.choice((0.0, 0.2)), duplicate=0.5, lateness=Lateness(0.3, LATE_NS))
    actions, at = [], 0
    for _ in range(random.randint(12, 24)):
        at += random.choice((1, 10, 30, 100))
        kind = random.choice(("join", "join", "leave", "leave", "send"))
        actions.append(Action(at, kind, random.randrange(clients), random.choice(names), random.randint(1, 3)))
    return Plan(options, _spread(random, members, 2), clients, 2, faults, tuple(actions), seed)


def overlapping_plan(seed: int, order: str) -> Plan:
    """Two or three groups that most clients are in, slow and lossy links, and much leaving, joining and moving: where groups
    are brought together and separated again while messages of both are on their way."""
    random = Random(f"overlapping {order} {seed}")
    clients, names = random.randint(2, 3), ["G0", "G1", "G2"][: random.randint(2, 3)]
    options = SequencingOptions(order=order, tick_ms=TICK_MS, lease_ticks=100, balance_ticks=0)  # type: ignore[arg-type]
    members = {name: tuple(sorted(random.sample(range(clients), random.randint(1, clients)))) for name in names}
    faults = Faults(loss=random.choice((0.2, 0.45)), duplicate=0.1, delay="exponential:40")
    actions, at = [], 0
    for _ in range(random.randint(8, 14)):
        at += random.choice((0, 1, 3, 10, 30, 60))
        kind = random.choice(("send", "send", "send", "send", "leave", "join", "move"))
        actions.append(Action(at, kind, random.randrange(clients), random.choice(names), 1))
    return Plan(options, _spread(random, members, 2), clients, 2, faults, tuple(actions), seed)
