"""A world of whole processes in simulated time: writes arrive after a delay, and disks take time to sync.

All future events are in one queue, so that a run can be repeated exactly. Data that cannot get through, because the link is cut
or the process is paused, waits and arrives later.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import count

from quire.simulation.membership.network import Dial, End
from quire.simulation.membership.processes import ProcessWorld, name_at
from quire.trace.log import EventLog
from quire.trace.membership_recorder import MembershipRecorder
from quire.trace.views import ViewEvent
from quire.views.core import GroupSettings
from quire.views.effects import Connect, Disconnect, Effect, Exclude, Install, ProcessEffect, Report, Sync, Write
from quire.views.process import Process
from quire.views.timing import Timing
from quire.views.view import Participant, View

SYNC_S = 0.001
"""How long a disk takes to sync."""
_TICK_S = 0.0001
"""The delay after which an overdue timer fires again."""

Delay = Callable[[int, int], float]
"""The delay in seconds from one member to another."""


class TimedWorld(ProcessWorld):
    """Members are named by their numbers, from 0. `on_event` is called with a member's faults and views."""

    def __init__(self, settings: GroupSettings, names: Sequence[Participant], timing: Timing, delay: Delay) -> None:
        super().__init__(settings, names, timing)
        self.logs = {name: EventLog(int(name)) for name in self.processes}
        self.on_event: Callable[[str, str | View], None] = _nothing
        self._delay = delay
        self._recorders: dict[str, MembershipRecorder] = {}
        self._moments: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._timers: dict[str, float] = {}
        self._syncing: set[str] = set()
        self._full: set[str] = set()
        """The members whose disks are full."""
        self._cut: Counter[tuple[str, str]] = Counter()
        self._latest: dict[int, float] = {}
        """For each end of a connection, when the last write to it arrives; later ones must not overtake it."""

    # Time.

    def at(self, moment: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._moments, (moment, next(self._order), action))

    def run_until(self, done: Callable[[], bool], deadline: float) -> bool:
        """Run until `done` or the deadline; returns whether it was done."""
        while not done():
            if not self._moments or self._moments[0][0] > deadline:
                self.now = max(self.now, deadline)
                return False
            self.now, _, action = heapq.heappop(self._moments)
            action()
        return True

    def time_ns(self) -> int:
        return round(self.now * 1e9)

    def _arm(self, name: str) -> None:
        due = max(self.process(name).due, self.now + _TICK_S)
        if due < self._timers.get(name, float("inf")):
            self._timers[name] = due
            self.at(due, lambda: self._ring(name, due))

    def _ring(self, name: str, due: float) -> None:
        if self._timers.get(name) != due:
            return
        del self._timers[name]
        if self._hears(name):
            if self.process(name).due <= self.now:
                self.time(name)
            else:
                self._arm(name)

    # What happens to members.

    def kill(self, name: str, part_of: Callable[[int], int]) -> None:
        """Kill a process. `part_of` chooses how many of n writes in flight to another process are lost, and how many of n
        unsynced records are durable nevertheless."""
        host = self.processes[name]
        others = [end.other for end in self.network.ends.values() if end.name == name]
        self._recorders[name].happened(ViewEvent.CRASH)
        self._timers.pop(name, None)
        self.crash(name, {end.name: part_of(len(end.inbox)) for end in others}, part_of(len(host.journal) - host.synced))
        for end in others:
            self._arrives(name, end)

    def fill(self, name: str) -> None:
        """Fill the disk of a process, which ends when it next has to write something durable."""
        self._full.add(name)

    def make_room(self, name: str) -> None:
        """Free space on the disk, and restart the process, whether or not it had to write anything."""
        self._full.discard(name)
        if self.processes[name].running:
            self.kill(name, _none)
        self.restart(name)

    def pause(self, name: str) -> None:
        self.processes[name].paused = True

    def resume(self, name: str) -> None:
        if self.processes[name].running:
            self.processes[name].paused = False
            self._arm(name)
            self._sync_soon(name)
            self._arrive_later(end for end in self.network.ends.values() if end.name == name)

    def cut(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Cut the links from the first of each pair to the second."""
        self._change_ways(pairs, +1, ViewEvent.CUT)

    def heal(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Undo a cut. A link that was cut twice has to be healed twice."""
        self._change_ways(pairs, -1, ViewEvent.HEALED)
        self._arrive_later(self.network.ends.values())

    def _change_ways(self, pairs: Iterable[tuple[int, int]], change: int, what: ViewEvent) -> None:
        before = set(self.network.blocked)
        for source, target in pairs:
            self._cut[str(source), str(target)] += change
        self.network.blocked = {way for way, times in self._cut.items() if times}
        for name in self.processes:
            others = [int(target) for source, target in sorted(before ^ self.network.blocked) if source == name]
            if others and self.processes[name].running:
                self._recorders[name].happened(what, others)

    def _begins(self, name: str, process: Process) -> None:
        self._timers.pop(name, None)
        self._syncing.discard(name)
        self._recorders[name] = MembershipRecorder(process, self.logs[name], self.time_ns, _nothing)

    # Effects.

    def _run(self, name: str, effects: Sequence[Effect | ProcessEffect]) -> None:
        super()._run(name, effects)
        self._arm(name)

    def _perform(self, name: str, effect: Effect | ProcessEffect) -> None:
        match effect:
            case Write():
                used = [connection for connection, _ in effect.frames]
            case Disconnect():
                used = [effect.connection]
            case _:
                used = []
        ends = [end for end in map(self.network.ends.get, used) if end is not None]
        super()._perform(name, effect)
        for end in ends:
            self._arrives(name, end.other)
        match effect:
            case Connect():
                dial, target = self.network.dials[-1], name_at(effect.address)
                self.at(
                    self.now + self._delay(int(name), int(target)) + self._delay(int(target), int(name)),
                    lambda: self._answer(dial),
                )
            case Sync():
                self._sync_soon(name)
            case Install():
                self.on_event(name, effect.view)
            case Report(kind="no-quorum" | "quorum"):
                blocked = effect.kind == "no-quorum"
                self._recorders[name].happened(ViewEvent.BLOCKED if blocked else ViewEvent.UNBLOCKED)
                self.on_event(name, "blocked" if blocked else "unblocked")
            case Exclude():
                self.on_event(name, "excluded")

    def _sync_soon(self, name: str) -> None:
        if name not in self._syncing:
            self._syncing.add(name)
            life = self.processes[name].life
            self.at(self.now + SYNC_S, lambda: self._sync_now(name, life))

    def _sync_now(self, name: str, life: int) -> None:
        if self.processes[name].life == life:
            self._syncing.discard(name)
            if self._hears(name) and name in self._full:
                self.kill(name, _none)
            elif self._hears(name):
                self.sync(name)

    # The network.

    def _answer(self, dial: Dial) -> None:
        if dial not in self.network.dials:
            return
        before = set(self.network.ends)
        self.answer(dial)
        self._arrive_later(end for number, end in self.network.ends.items() if number not in before)

    def _arrives(self, source: str, end: End) -> None:
        """Schedule the arrival at this end of what was written at the other end, or of its closing."""
        self.at(self._moment(source, end), lambda: self._arrive(end, 1))

    def _arrive_later(self, ends: Iterable[End]) -> None:
        """Schedule the arrival of everything that waits at these ends, after the usual delay: the data, then the closing."""
        for end in list(ends):
            moment = self._moment(end.other.name, end)
            for items in (len(end.inbox), int(end.ended)):
                if items:
                    self.at(moment, lambda end=end, items=items: self._arrive(end, items))  # type: ignore[misc]

    def _moment(self, source: str, end: End) -> float:
        self._latest[end.number] = max(self.now + self._delay(int(source), int(end.name)), self._latest.get(end.number, 0.0))
        return self._latest[end.number]

    def _arrive(self, end: End, items: int) -> None:
        is_there = self.network.ends.get(end.number) is end and self._hears(end.name)
        if is_there and (end.other.name, end.name) not in self.network.blocked and (end.inbox or end.ended):
            self.arrive(end, items)


def _nothing(*_: object) -> None:
    """The default for callbacks: ignore the event."""


def _none(_: int) -> int:
    """The default for `part_of`: none."""
    return 0
