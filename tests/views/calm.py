"""Processes on a network without faults, except for those that a test wants: time passes as slowly as anything happens."""

from __future__ import annotations

from collections.abc import Callable

from quire.simulation.membership.network import End
from quire.simulation.membership.processes import ProcessWorld
from quire.views.core import GroupSettings
from quire.views.effects import Effect, ProcessEffect, Report
from quire.views.introductions import Introduction
from quire.views.view import Participant


def settings_of(founders: str = "abc", **changes: object) -> GroupSettings:
    people = tuple(Participant(name, 1) for name in founders)
    return GroupSettings(founders=people, **{"protocol": "single-phase", **changes})  # type: ignore[arg-type]


class Calm(ProcessWorld):
    """The founders are started, or only those of `started`; others can be with `start`."""

    def __init__(self, founders: str = "abc", others: str = "", started: str | None = None, **changes: object) -> None:
        self.reports: list[Report] = []
        super().__init__(
            settings_of(founders, **changes), [Participant(name, 1) for name in founders + others], contacts=[founders[0]]
        )
        self._unread: set[str] = set()
        self.slow = ""
        """Who does not read just now."""
        self.spoilt_from: set[str] = set()
        """Whose packets are spoilt always."""
        for name in founders if started is None else started:
            self.start(name, founds=True)

    def _perform(self, name: str, effect: Effect | ProcessEffect) -> None:
        if isinstance(effect, Report):
            self.reports.append(effect)
        super()._perform(name, effect)

    def readable(self) -> list[End]:
        return [end for end in super().readable() if end.name not in {*self._unread, self.slow}]

    def unread(self, name: str) -> None:
        """Its application takes nothing more, so that it reads nothing more."""
        self._unread.add(name)
        self._run(name, self.process(name).paused(self.now, paused=True))

    def stop(self, name: str, seconds: float) -> None:
        """A process does not run for so long."""
        self.processes[name].paused = True
        self.passes(seconds)
        self.processes[name].paused = False

    def cut_off(self, name: str) -> None:
        """Its connections end, and none can be made."""
        for other in self.processes:
            self.network.blocked |= {(name, other), (other, name)}
        for end in self.network.ends.values():
            if name in (end.name, end.other.name):
                self._run(end.name, self.process(end.name).disconnected(self.now, end.number))
        self.network.ends = {number: end for number, end in self.network.ends.items() if name not in (end.name, end.other.name)}

    def spoil(self, name: str) -> None:
        """All packets that are on their way to a process are changed, as no network should do it."""
        for end in self.network.ends.values():
            if end.name == name:
                for place, item in enumerate(end.inbox):
                    if isinstance(item, bytes) and len(item) > 60:
                        end.inbox[place] = item[:45] + b"\xc1" + item[46:]

    def arrive(self, end: End, items: int = 1, *, ends_turn: bool = True) -> None:
        if end.other.name in self.spoilt_from:
            self.spoil(end.name)
        super().arrive(end, items, ends_turn=ends_turn)

    def settle(self) -> None:
        """Everything that is under way arrives, and disks are synced; no time passes."""
        for _ in range(10_000):
            unsynced = [name for name, one in self.processes.items() if one.running and one.synced < len(one.journal)]
            if unsynced:
                self.sync(unsynced[0])
            elif self.network.dials:
                self.answer(self.network.dials[0])
            elif ends := self.readable():
                self.arrive(ends[0], 100)
            else:
                return
        raise AssertionError("it never comes to rest")

    def until(self, holds: Callable[[], bool], within_s: float) -> float:
        """Let time pass until that holds; how long it took."""
        began = self.now
        self.settle()
        while not holds():
            due = [self.process(name).due for name, one in self.processes.items() if one.running and not one.paused]
            self.now = max(self.now, min(due))
            assert self.now - began <= within_s, "it took too long"
            for name in self.due():
                self.time(name)
            self.settle()
        return self.now - began

    def passes(self, seconds: float) -> None:
        end = self.now + seconds
        self.until(lambda: self.now >= end, seconds + 1)

    def view(self, name: str) -> str:
        """The members of the view in which a process is, if it goes on there."""
        core = self.member(name).core
        return "".join(sorted(core.view.names())) if core.mode == "normal" else ""

    def agree(self, names: str) -> bool:
        """Whether these, and nobody else, are in one view."""
        wanted = "".join(sorted(names))
        return len({self.member(name).core.view.epoch for name in names}) == 1 and all(
            self.view(name) == wanted for name in names
        )


def group(founders: str = "abc", others: str = "", **changes: object) -> Calm:
    """A group that is in its first real view."""
    world = Calm(founders, others, None, **changes)
    world.until(lambda: world.agree(founders), 1.0)
    return world


def everywhere(world: Calm, names: str, count: int) -> bool:
    """Whether all of these have delivered so many operations, and the same."""
    logs = [world.processes[name].log for name in names]
    return all(len(log) == count and log == logs[0] for log in logs)


def introduction(life: int, incarnation: int | None = None) -> Introduction:
    return Introduction(group="g", name="c", life=life, incarnation=incarnation or life, address="c:1", facts="", addresses={})
