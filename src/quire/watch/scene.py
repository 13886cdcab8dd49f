"""The state of the live view: all watched processes, what happened, message latencies, and the verdict on the orders."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Protocol

from quire.live.observing.feed import Observation
from quire.live.observing.status import Status
from quire.trace.parts.description import PartDescription
from quire.trace.tail import Excerpt
from quire.watch.incidents import Incidents
from quire.watch.member import WatchedProcess
from quire.watch.recent import Sends

PROCESSES_MAX = 256


class Judge(Protocol):
    """Checks which orders hold in what is delivered."""

    def begin(self, description: PartDescription) -> None: ...
    def take(self, excerpt: Excerpt, *, missed: bool) -> None: ...
    def gone(self, process: WatchedProcess) -> None: ...


class Scene:
    """Updated by the sources, in one event loop."""

    def __init__(self, judge: Judge | None = None) -> None:
        self.processes: dict[str, WatchedProcess] = {}
        self.incidents = Incidents()
        self.sends = Sends()
        self.news = 0
        """How often something notable happened: numbers alone are not news."""
        self._told = asyncio.Event()
        self.began_ns = time.time_ns()
        self.judge = judge

    def add(self, key: str) -> None:
        if key not in self.processes and len(self.processes) < PROCESSES_MAX:
            self.processes[key] = WatchedProcess(key)
            self.note()

    def note(self) -> None:
        """Something notable happened."""
        self.news += 1
        told, self._told = self._told, asyncio.Event()
        told.set()

    async def wait_for_news(self, since: int, within_s: float) -> None:
        """Wait until there were more news than this, or for so long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while self.news == since:
                    await self._told.wait()

    def expects(self) -> bool:
        """Whether some process has not been heard from yet."""
        return any(not each.tried for each in self.processes.values())

    def find(self, key: str) -> WatchedProcess:
        return self.processes[key]

    def name_of(self, number: int) -> str:
        """The name of the process with this number in traces."""
        return next((each.name for each in self.processes.values() if each.process == number), str(number))

    def stands(self, key: str, status: Status) -> None:
        process = self.processes[key]
        before, process_missing = process.status, process.missing
        process.stands(time.time(), status)
        if status.view is not None:
            self._learn_view(process, status)
        if process_missing or before is None or (before.condition, before.view) != (status.condition, status.view):
            self.note()

    def _learn_view(self, process: WatchedProcess, status: Status) -> None:
        """Learn the members of the current view from the status, in case watching began after the view was installed."""
        assert status.view is not None
        if all(number != status.view.number for number, _, _ in self.incidents.views()):
            self.incidents.installed(process.name, status.view.number, status.view.members, time.time_ns())

    def is_recorded(self, key: str) -> None:
        """The process reports no status, and its trace was read up to now."""
        self.processes[key].is_recorded(time.time())

    def missing(self, key: str, why: str) -> None:
        process = self.processes[key]
        if process.is_missing(why):
            self.incidents.unreachable(process.name, time.time_ns(), why)
            if self.judge is not None:
                self.judge.gone(process)
            self.note()

    def told(self, key: str, event: Observation) -> None:
        self.incidents.told(self.processes[key].name, event)
        self.note()

    def begin(self, key: str, description: PartDescription) -> None:
        """The trace of a process begins, possibly after a restart."""
        self.processes[key].begin_trace(description)
        if self.judge is not None:
            self.judge.begin(description)

    def traced(self, key: str, excerpt: Excerpt, *, missed: bool) -> None:
        """The next part of a process's trace. `missed`: whether records before it were lost."""
        process = self.processes[key]
        process.traced(excerpt, self.sends)
        if process.recent.installs or process.recent.pauses_ns or process.recent.happened:
            self.note()
        for number, members, time_ns, _ in process.recent.installs:
            process.view = number
            self.incidents.installed(process.name, number, tuple(map(self.name_of, members)), time_ns)
        for number, pause_ns in process.recent.pauses_ns.items():
            self.incidents.paused(process.name, number, pause_ns)
        process.recent.installs.clear()
        if process.status is None:
            # It reports no status, so its trace is the only source.
            for what, view, time_ns in process.recent.happened:
                self.incidents.recorded(process.name, what, view, time_ns)
        process.recent.happened.clear()
        if self.judge is not None:
            self.judge.take(excerpt, missed=missed)
