"""Random runs of a service that survives: everything about one follows from its order and its seed."""

from __future__ import annotations

from random import Random

import msgspec

from quire.protocols.sequencing.failover.options import SurvivingOptions
from tests.kit.late import Lateness
from tests.sequencing.failover.kit import Fault, SurvivingService
from tests.sequencing.failover.rebuilt_kit import LosingService, RebuiltService
from tests.sequencing.kit import MS, TICK_MS, Action, Faults
from tests.sequencing.plans import _spread


class FailoverPlan(msgspec.Struct, frozen=True):
    """With at least one backup, or without any."""

    options: SurvivingOptions
    initial: dict[str, tuple[int, tuple[int, ...]]]
    clients: int
    processes: int
    units: int
    faults: Faults
    actions: tuple[Action, ...]
    happens: tuple[Fault, ...]
    seed: int
    loses: bool = False
    """Whether all copies of a unit may be lost at once."""

    def play(self) -> SurvivingService:
        kind = LosingService if self.loses else SurvivingService if self.options.backups else RebuiltService
        service = kind(
            self.options, self.initial, clients=self.clients, processes=self.processes, units=self.units, seed=self.seed,
            faults=self.faults, happens=self.happens,
        )  # fmt: skip
        service.play(self.actions)
        service.run(20_000 * MS)
        return service


def random_plan(seed: int, order: str, *, pipelined: bool = False, late: bool = False) -> FailoverPlan:
    """Overlapping groups that are sent to, joined, left and moved, while one to three processes crash or are cut off, and
    clients crash or are taken for dead."""
    random = Random(f"failover {order} {pipelined} {late} {seed}")
    return _plan(random, seed, order, (1, 1, 2), pipelined=pipelined, late=late, crashes=0.5)


def rebuilt_plan(seed: int, order: str, *, crashes: bool) -> FailoverPlan:
    """The same without backups, with or without crashes of clients. Few processes run few units, so that many are lost."""
    random = Random(f"rebuilt {order} {crashes} {seed}")
    return _plan(random, seed, order, (0,), processes=(2, 3), units=(1, 2), crashes=float(crashes))


def losing_plan(seed: int, order: str) -> FailoverPlan:
    """The same with backups, where several processes, or all, crash at once or soon after each other. Each comes back, but
    without its state."""
    random = Random(f"losing {order} {seed}")
    plan = _plan(random, seed, order, (1, 1, 2), crashes=0.3)
    at_ms = random.randint(0, 300)
    lost = random.sample(range(plan.processes), random.randint(2, plan.processes))
    happens = [
        *(each._replace(for_ms=each.for_ms or 150) for each in plan.happens),
        *(Fault(at_ms + random.choice((0, 0, 10, 100)), "crash", each, random.choice((60, 150, 600))) for each in lost),
    ]
    return msgspec.structs.replace(plan, happens=tuple(happens), loses=True)


def _plan(
    random: Random,
    seed: int,
    order: str,
    backups: tuple[int, ...],
    *,
    pipelined: bool = False,
    late: bool = False,
    processes: tuple[int, int] = (3, 5),
    units: tuple[int, int] = (1, 3),
    crashes: float,
) -> FailoverPlan:
    clients, running, run = random.randint(2, 5), random.randint(*processes), random.randint(*units)
    names = [f"G{number}" for number in range(random.randint(1, 4))]
    options = SurvivingOptions(
        order=order,  # type: ignore[arg-type]
        pipelined=pipelined,
        backups=random.choice(backups),
        window=4,
        history=random.choice((8, 1 << 17)),
        tick_ms=TICK_MS,
        lease_ticks=15,
        balance_ticks=random.choice((0, 5)),
    )
    members = {name: tuple(sorted(random.sample(range(clients), random.randint(1, clients)))) for name in names}
    initial = {name: (random.randrange(run), members[name]) for name in names}
    if options.totally:
        initial = _spread(random, members, run)
    faults = Faults(
        loss=random.choice((0.0, 0.1, 0.3)),
        duplicate=random.choice((0.0, 0.1, 0.3)),
        delay=random.choice(("exponential:5", "uniform:1:10", "exponential:15")),
        lateness=Lateness(0.1, random.choice((40, 250)) * 10 * MS) if late else Lateness(),
    )
    actions, at = [], 0
    for _ in range(random.randint(4, 16)):
        at += random.choice((0, 1, 3, 10, 30, 60))
        kind = random.choice(("send", "send", "send", "join", "leave", "move"))
        actions.append(Action(at, kind, random.randrange(clients), random.choice(names), random.randint(1, 3)))
    happens = [_process_fault(random, at, running) for _ in range(random.randint(1, 3))]
    if random.random() < crashes:
        kind = random.choice(("lost", "suspected"))
        happens.append(Fault(random.randint(0, at + 100), kind, random.randrange(clients)))
    return FailoverPlan(options, initial, clients, running, run, faults, tuple(actions), tuple(happens), seed)


def _process_fault(random: Random, at: int, processes: int) -> Fault:
    kind = random.choice(("crash", "crash", "cut"))
    lasts = random.choice((60, 120, 250, 500)) if kind == "cut" else random.choice((0, 0, 150, 600))
    return Fault(random.randint(0, at + 100), kind, random.randrange(processes), lasts)
