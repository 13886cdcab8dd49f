"""Seeded random runs of a group with changing membership: faults for a while, then none, after which it must converge.

All choices come from the seed, so that a failing run can be replayed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

import msgspec

from quire.simulation.membership.processes import ProcessWorld
from quire.simulation.membership.settling import ProcessSettling
from quire.views.core import GroupSettings
from quire.views.view import Participant


class ChaosConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What a run tries. `heavy`: whether crashes and ballots are frequent."""

    protocol: str = "single-phase"
    options: Mapping[str, object] = {}
    founders: tuple[int, int] = (2, 5)
    joiners: int = 2
    uniform: bool = False
    journal: bool = False
    tie: str = "senior"
    weights: bool = False
    heavy: bool = False
    steps: tuple[int, int] = (60, 400)
    run_max: int = 3
    outstanding: int = 1000
    history: int = 1000
    near: int = 3
    total_crashes: bool = False
    leaves: float = 0.5
    closes: float = 0.0
    reads: float = 0.0
    part_bytes: int = 24
    clusters: tuple[str, ...] = ()
    """The clusters in which members may be, and to which they may move."""
    moves: float = 0.0


class ChaosResult(msgspec.Struct):
    seed: int
    views: int
    deliveries: int
    live: bool
    """Whether a quorum was left at the end, so that the group had to converge."""
    closed: bool
    reads: int


class Chaos:
    def __init__(self, config: ChaosConfig, seed: int) -> None:
        self.config, self.seed = config, seed
        self.random = random.Random(seed)
        founders = [f"m{number}" for number in range(self.random.randint(*config.founders))]
        names = founders + [f"j{number}" for number in range(self.random.randint(0, config.joiners))]
        people = [Participant(name, 1, self.random.randint(0, 3) if config.weights else 1) for name in names]
        if not any(one.weight for one in people[: len(founders)]):
            people[0] = Participant(people[0].name, 1, 1)
        founding = tuple(people[: len(founders)])
        if config.clusters:
            people = [msgspec.structs.replace(one, cluster=self.random.choice(config.clusters)) for one in people]
        self.settings = GroupSettings(
            # At the start, no member knows the clusters of the others.
            founders=founding,
            protocol=config.protocol,
            options=config.options,
            uniform=config.uniform,
            journal=config.journal,
            tie=config.tie,  # type: ignore[arg-type]
            causal=config.protocol != "fifo",
            total=config.protocol == "single-phase",
            outstanding=config.outstanding,
            run_max=config.run_max,
            history=config.history,
            near=config.near,
            part_bytes=config.part_bytes,
            founding_patience=2,
        )
        self.world = ProcessWorld(self.settings, people)
        self.settling = ProcessSettling(self.world, self.random)
        self.step_s = self.random.choice((0.001, 0.01, 0.05))
        """The mean time between two steps, which makes the network a fast or a slow one."""
        self.founders = founders
        self.started: set[str] = set()
        self._tokens = 0

    def run(self) -> ChaosResult:
        """Raises Violation."""
        for name in self.founders:
            if self.random.random() < 0.9:
                self._start(name)
        if self.random.random() < 0.8:
            # Most groups begin without faults.
            self.settling.rounds(10)
        for _ in range(self.random.randint(*self.config.steps)):
            self.step()
        for name, process in sorted(self.world.processes.items()):
            if not process.running and name in self.started and self.random.random() < (0.9 if self.config.journal else 0.5):
                self.world.restart(name)
        live = self.settling.settle()
        observer = self.world.observer
        closed = any(p.member is not None and p.member.core.mode == "closed" for p in self.world.processes.values())
        return ChaosResult(self.seed, len(observer.views), observer.deliveries, live, closed, observer.reads)

    # Steps.

    def step(self) -> None:
        choose, world = self.random, self.world
        world.now += choose.expovariate(1 / self.step_s)
        for name in world.due():
            if choose.random() < 0.5:
                world.time(name)
        world.hasty = choose.random() < 0.3
        if choose.random() < 0.7 and self._network():
            return
        heavy = 4.0 if self.config.heavy else 1.0
        actions: list[tuple[Callable[[], None], float]] = [
            (self._submit, 12),
            (self._tick, 10),
            (self._break, 1.5),
            (self._stall, 0.3),
            (self._cross, 0.5),
            (self._sync, 12 if self.config.journal else 0),
            (self._crash, 0.6 * heavy),
            (self._restart, 1.5 * heavy),
            (self._suspect, 3),
            (self._trust, 1.0),
            (self._ballot, 0.6 * heavy),
            (self._block, 0.8),
            (self._heal, 0.8),
            (self._pause, 0.5),
            (self._resume, 1.0),
            (self._leave, self.config.leaves),
            (self._move, self.config.moves),
            (self._close, self.config.closes),
            (self._read, self.config.reads),
            (self._total_crash, 0.2 if self.config.total_crashes else 0),
            (self._shorten_journal, 2 if self.config.journal else 0),
        ]
        (action,) = choose.choices([one for one, _ in actions], [share for _, share in actions])
        action()

    def _network(self) -> bool:
        """Perform a random step of the network; returns whether anything was in flight."""
        choose, world = self.random, self.world
        ends, dials = world.readable(), [dial for dial in world.network.dials if not world.processes[dial.name].paused]
        if not ends and not dials:
            return False
        chosen = choose.randrange(len(ends) + len(dials))
        if chosen < len(ends):
            items, ends_turn = choose.choice(((1, True), (1, True), (1, False), (5, True)))
            world.arrive(ends[chosen], items, ends_turn=ends_turn)
        else:
            world.answer(dials[chosen - len(ends)])
        return True

    def _any(self, *, running: bool = True) -> str | None:
        found = [p.name for p in self.world.processes.values() if p.running == running and not p.paused]
        return self.random.choice(sorted(found)) if found else None

    def _start(self, name: str) -> None:
        founds = name in self.founders and name not in self.started
        self.started.add(name)
        self.world.start(name, founds=founds)

    def _submit(self) -> None:
        if (name := self._any()) is not None:
            self.world.submit(name, [b"x"] * self.random.randint(1, 3))

    def _tick(self) -> None:
        """Let some time pass, in which a timer fires."""
        if (name := self._any()) is not None:
            self.world.now += self.random.uniform(0, 0.3)
            self.world.time(name)

    def _break(self) -> None:
        """Break a connection; each end loses some of the data in flight to it."""
        network = self.world.network
        if network.ends:
            end = self.random.choice(list(network.ends.values()))
            for one in (end, end.other):
                network.lose(one, self.random.choice((0, 0, 1, 2, 99)))

    def _stall(self) -> None:
        """Stall a connection silently, in one direction or both."""
        network = self.world.network
        if network.ends:
            end = self.random.choice(list(network.ends.values()))
            end.stalled = True
            end.other.stalled = self.random.random() < 0.5

    def _cross(self) -> None:
        """Two processes connect to each other at the same time, even if they are already connected."""
        names = [name for name in sorted(self.world.processes) if self.world.processes[name].running]
        if len(names) > 1:
            one, other = self.random.sample(names, 2)
            for name, to in ((one, other), (other, one)):
                self.world.dial(name, to)

    def _sync(self) -> None:
        if (name := self._any()) is not None:
            self.world.sync(name)

    def _shorten_journal(self) -> None:
        if (name := self._any()) is not None:
            self.world.shorten_journal(name)

    def _crash(self) -> None:
        """Crash any process; without journals, mostly one without which the others are still a quorum."""
        name, settling = self._any(), self.settling
        if name is not None:
            can_go_on = self.config.journal or settling.is_quorum(settling.able() - {name})
            if can_go_on or self.random.random() < 0.05:
                self._crash_one(name)

    def _crash_one(self, name: str) -> None:
        lost = {other: self.random.choice((0, 0, 1, 2, 99)) for other in self.world.processes}
        self.world.crash(name, lost, kept=self.random.choice((0, 0, 1, 3, 99)), silent=self.random.random() < 0.2)

    def _total_crash(self) -> None:
        for process in self.world.processes.values():
            if process.running:
                self._crash_one(process.name)

    def _restart(self) -> None:
        name = self._any(running=False)
        if name is None:
            return
        if name not in self.started:
            self._start(name)
        else:
            self.world.restart(name)

    def _suspect(self) -> None:
        """Suspect a process: mostly one that is not running, but it can be any."""
        absent = sorted(name for name, process in self.world.processes.items() if not process.running or process.paused)
        suspects = absent if absent and self.random.random() < 0.8 else sorted(self.world.processes)
        name, other = self._any(), self.random.choice(suspects)
        if name is not None and name != other:
            self.world.suspect(name, other)

    def _trust(self) -> None:
        name, other = self._any(), self.random.choice(sorted(self.world.processes))
        if name is not None:
            self.world.trust(name, other)

    def _ballot(self) -> None:
        if (name := self._any()) is not None:
            self.world.ballot(name)

    def _block(self) -> None:
        names = sorted(self.world.processes)
        side = {name for name in names if self.random.random() < 0.5}
        one_way = self.random.random() < 0.3
        for source in names:
            for to in names:
                if (source in side) != (to in side) and (source in side or not one_way):
                    self.world.network.blocked.add((source, to))

    def _heal(self) -> None:
        self.world.network.heal()

    def _pause(self) -> None:
        if (name := self._any()) is not None:
            self.world.processes[name].paused = True

    def _resume(self) -> None:
        for process in self.world.processes.values():
            process.paused = False

    def _leave(self) -> None:
        if (name := self._any()) is not None:
            self.world.leave(name)

    def _move(self) -> None:
        if (name := self._any()) is not None:
            self.world.move(name, self.random.choice(self.config.clusters))

    def _close(self) -> None:
        if (name := self._any()) is not None:
            self.world.close(name)

    def _read(self) -> None:
        if (name := self._any()) is not None:
            member = self.world.processes[name].member
            if member is not None and member.core.mode not in ("left", "closed"):
                self._tokens += 1
                self.world.read(name, self._tokens)
