"""The end of a random run: faults stop, and the group must converge.

Links deliver, disks sync, timers fire, and nobody is suspected wrongly any more. Then all running processes must reach one view
and one log, with everything that their applications submitted, provided that a quorum of the last view is running.
"""

from __future__ import annotations

import random

from quire.simulation.membership.hosts import Hosts
from quire.simulation.membership.observer import Violation
from quire.simulation.membership.processes import ProcessWorld
from quire.simulation.membership.world import World
from quire.views.member import Member
from quire.views.view import View

SETTLING_ROUNDS = 400
_STEPS_MAX = 3000
_ROUND_S = 0.1
"""How much time passes in a round, in worlds with time."""


class Rest:
    """Defines when a group has converged, and when it has to."""

    def __init__(self, world: Hosts, choose: random.Random) -> None:
        self._world, self._random = world, choose

    def settle(self) -> bool:
        """Let the group converge; returns whether a quorum was there, so that it had to. Raises Violation if it had to and did
        not."""
        world = self._world
        self._end_faults()
        for process in world.processes.values():
            process.paused = False
        world.hasty = False
        if not self.can_be_live():
            self.rounds(20)
            return False
        for _ in range(SETTLING_ROUNDS):
            self.rounds(1)
            if not self._why_not():
                return True
            if not self.can_be_live():
                return False
        raise Violation("everything comes to rest", self._why_not())

    def _end_faults(self) -> None:
        raise NotImplementedError

    def rounds(self, count: int) -> None:
        """Run this many rounds: every timer fires, and everything in flight arrives."""
        raise NotImplementedError

    def _sync(self, name: str) -> None:
        if self._world.settings.journal:
            self._world.sync(name)

    def newest(self) -> View | None:
        """The last view that any process installed."""
        views = self._world.observer.views
        return views[max(views)] if views else None

    def able(self) -> set[str]:
        """The processes that can take part in what follows the last view: its members, including those that have yet to learn
        that they are. Without journals, only the very processes that are in it count; before the first view, the founders."""
        running = {name: p.member for name, p in self._world.processes.items() if p.member is not None}
        view = self.newest()
        if view is None:
            return {name for name, member in running.items() if member.core.view.epoch == 1 and _takes_part(member)}
        in_it = {name for name, m in running.items() if m.core.view.epoch == view.epoch and _takes_part(m)}
        behind = {name for name, m in running.items() if m.core.view.epoch == view.epoch - 1 and _takes_part(m)}
        if not in_it and not self._view(view.epoch - 1).is_quorum(behind, self._world.settings.tie):
            # No running process knows how the previous view ended, or can find out.
            return set()
        joining = {
            name for name, m in running.items() if m.core.mode == "joining" and view.incarnation(name) == m.core.me.incarnation
        }
        return in_it | {name for name in behind if view.incarnation(name) is not None} | joining

    def _view(self, epoch: int) -> View:
        founding = View(1, self._world.settings.founders, {})
        return self._world.observer.views.get(epoch, founding)

    def is_quorum(self, names: set[str]) -> bool:
        return (self.newest() or self._view(1)).is_quorum(names, self._world.settings.tie)

    def can_be_live(self) -> bool:
        """Whether a quorum of the last installed view is running, or the group has ended."""
        closed = any(p.member is not None and p.member.core.mode == "closed" for p in self._world.processes.values())
        return closed or self.is_quorum(self.able())

    def _why_not(self) -> str:
        world = self._world
        running = {name: p for name, p in world.processes.items() if p.member is not None and not p.is_over()}
        members = {name: p.member for name, p in running.items() if p.member is not None}
        if not members:
            return ""
        modes = {name: (member.core.mode, member.core.view.epoch) for name, member in members.items()}
        if len(set(modes.values())) > 1 or any(mode != "normal" for mode, _ in modes.values()):
            return f"not all are in one view: {modes}"
        view = next(iter(members.values())).core.view
        if set(view.names()) != set(members):
            return f"the view is {view.names()}, and {sorted(members)} run"
        for name, member in members.items():
            if member.core.has_moved():
                return f"{name} is not in its cluster {member.core.me.cluster!r}: {view.clusters()}"
            if member.core.operations.unsettled():
                return f"{member.core.operations.unsettled()} operations of {name} are not executed"
        logs = [p.log if world.settings.total else sorted(p.log) for p in running.values()]
        if any(log != logs[0] for log in logs):
            return "logs differ"
        if any(member.core.leaving or member.core.closing for member in members.values()):
            return "somebody is leaving or closing still"
        return ""


class Settling(Rest):
    """Convergence of members on ideal links."""

    def __init__(self, world: World, choose: random.Random) -> None:
        super().__init__(world, choose)
        self._links = world

    def _end_faults(self) -> None:
        self._links.blocked.clear()

    def rounds(self, count: int) -> None:
        world = self._links
        for _ in range(count):
            names = [name for name in sorted(world.processes) if world.processes[name].running]
            self.tell_the_truth()
            for name in self._random.sample(names, len(names)):
                world.tick(name)
                self._sync(name)
            self.drain()

    def tell_the_truth(self) -> None:
        """Make every process suspect exactly those that are not running."""
        world = self._links
        for name, process in world.processes.items():
            for other, target in world.processes.items():
                if process.running and target.running and not target.is_over():
                    world.trust(name, other)
                elif process.running and other != name:
                    world.suspect(name, other)

    def drain(self) -> None:
        world = self._links
        for _ in range(_STEPS_MAX):
            links = world.deliverable()
            if not links:
                return
            link = self._random.choice(links)
            world.arrive(link)
            if self._random.random() < 0.3:
                self._sync(link[2])


class ProcessSettling(Rest):
    """Convergence of whole processes, which detect by themselves which others are running."""

    def __init__(self, world: ProcessWorld, choose: random.Random) -> None:
        super().__init__(world, choose)
        self._processes = world

    def _end_faults(self) -> None:
        world = self._processes
        world.network.heal()
        for name, process in world.processes.items():
            for other in world.processes:
                if process.running:
                    world.trust(name, other)

    def rounds(self, count: int) -> None:
        world = self._processes
        for _ in range(count):
            world.now += _ROUND_S
            due = world.due()
            for name in self._random.sample(due, len(due)):
                world.time(name)
                self._sync(name)
            self.drain()
            for name, process in world.processes.items():
                if process.member is not None and process.member.core.mode == "left" and not world.process(name).is_needed():
                    world.crash(name)

    def drain(self) -> None:
        world = self._processes
        for _ in range(_STEPS_MAX):
            ends = world.readable()
            if world.network.dials and (not ends or self._random.random() < 0.3):
                world.answer(self._random.choice(world.network.dials))
            elif ends:
                end = self._random.choice(ends)
                world.arrive(end, self._random.randint(1, 10))
                if self._random.random() < 0.3:
                    self._sync(end.name)
            else:
                return


def _takes_part(member: Member) -> bool:
    return member.core.mode in ("normal", "frozen")
