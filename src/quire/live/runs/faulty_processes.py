"""Runs processes on this machine and injects faults: kills, stops, partitions, full disks, restarts.

What the processes are, and what they print, is up to the subclass. For partitions, each has a (virtual) host of its own; for
full disks, a disk of its own. No process is left behind, however a run ends.
"""

from __future__ import annotations

import asyncio
import signal
from abc import ABC, abstractmethod
from asyncio.subprocess import Process
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from quire.files.scratch import Scratch
from quire.live import clock
from quire.live.runs.disks import Disks
from quire.live.runs.fleet import DRAIN_S, FleetFailed, how_it_died, start_process
from quire.live.runs.hosts import Hosts
from quire.model.faults import Disconnection, Fault, Full, Kill, Restart, Stop, unreachable
from quire.model.moments import Happened, Moment, describe_moment, moments
from quire.trace.parts.observing import Observed
from quire.trace.views import ViewEvent


class FaultyProcesses(ABC):
    noun = "process"
    """What one of them is called."""

    def __init__(
        self, count: int, faults: Sequence[Fault], scratch: Path, hosts: Hosts | None = None, disks: Disks | None = None
    ) -> None:
        """`scratch`: the path next to which their files are kept while they run."""
        self.happened: list[Happened] = []
        """The faults and their consequences, in order."""
        self.observed: list[Observed] = []
        """Events that processes cannot record themselves, such as their deaths."""
        self.on_happened: Callable[[Happened], None] | None = None
        self.count = count
        self.away: set[int] = set()
        """Processes that are intentionally not running."""
        self.work = scratch
        self.began: float | None = None
        """When the faults began."""
        self._faults = faults
        self._hosts = hosts
        self._disks = disks
        self._processes: dict[int, Process] = {}
        self._following: dict[int, asyncio.Task[None]] = {}
        self._ended_ns: dict[int, int] = {}
        """When the last process of each number ended."""
        self._failure: Exception | None = None
        self._changed = asyncio.Event()

    @abstractmethod
    def command(self, number: int) -> Sequence[str | Path]:
        """The command that starts this process, each time."""

    @abstractmethod
    def heard(self, number: int, line: bytes) -> None:
        """What a process has printed."""

    @abstractmethod
    def forget(self, number: int) -> None:
        """A new process of this number begins: forget what the previous one reported."""

    @abstractmethod
    def has_ended_well(self, number: int) -> bool:
        """Whether a process that has ended was meant to end."""

    @abstractmethod
    async def take_part(self) -> None:
        """Runs from when all are started until all have ended; must call `begin` and `have_faults_happen`."""

    async def may_happen(self, moment: Moment) -> None:
        """Return when this fault may happen; at once if not overridden. Later faults are delayed by as much."""
        del moment

    async def run(self) -> None:
        """Start the processes, have the faults happen, and wait until all have ended.

        Raises FleetFailed, or whatever `fail` was told. When it is cancelled, whatever is stopped or cut off goes on, and the
        processes are first asked to end.
        """
        with Scratch.temporary("run") as scratch:
            self.work = scratch.path
            try:
                for number in range(self.count):
                    await self._start(number)
                await self.take_part()
            except asyncio.CancelledError:
                self._undo()
                self.signal(signal.SIGINT)
                await asyncio.wait(self._following.values(), timeout=DRAIN_S)
                raise
            finally:
                await self._end_all()

    def begin(self) -> None:
        """The times of the faults count from now."""
        self.began = clock.now()

    async def have_faults_happen(self) -> None:
        """All of them, each at its time, from `begin` on."""
        assert self.began is not None
        began = self.began
        for moment in moments(self._faults):
            await self._wait_until(began + moment.at_ms / 1000)
            due = clock.now()
            await self.may_happen(moment)
            began += clock.now() - due
            await self._perform(moment)

    def fail(self, error: Exception) -> None:
        """Make `run` raise this error; the first one counts."""
        self._failure = self._failure or error

    # Faults.

    async def _perform(self, moment: Moment) -> None:
        fault = moment.fault
        self.tell(*describe_moment(moment))
        match fault:
            case Kill():
                self.away.add(fault.member)
                await self._kill(fault.member)
            case Restart():
                await self._start_again(fault.member)
            case Full():
                assert self._disks is not None
                if moment.begins:
                    self.away.add(fault.member)
                    self._disks.fill(fault.member)
                else:
                    self._disks.make_room(fault.member)
                    await self._kill(fault.member)  # It has ended by itself, unless it had nothing to write.
                    await self._start_again(fault.member)
            case Stop():
                self.signal(signal.SIGSTOP if moment.begins else signal.SIGCONT, [fault.member])
            case _:
                assert isinstance(fault, Disconnection)
                await self._disconnect(fault, begins=moment.begins)

    async def _disconnect(self, fault: Disconnection, *, begins: bool) -> None:
        assert self._hosts is not None
        await asyncio.to_thread(self._hosts.cut if begins else self._hosts.heal, unreachable(fault))
        what = ViewEvent.CUT if begins else ViewEvent.HEALED
        for source in sorted({source for source, _ in unreachable(fault)}):
            others = tuple(sorted(target for one, target in unreachable(fault) if one == source))
            self.observed.append(Observed(source, clock.wall_ns(), what, others))

    def _undo(self) -> None:
        """Resume all stopped processes, and heal all partitions."""
        self.signal(signal.SIGCONT)
        if self._hosts is not None:
            self._hosts.heal_all()

    # Processes.

    def disk(self, number: int) -> Path:
        """The directory for a process's durable files."""
        return self.work if self._disks is None else self._disks.paths[number]

    async def _start(self, number: int) -> None:
        command = self.command(number)
        if self._hosts is not None:
            command = [*self._hosts.on(number), *command]
        process = self._processes[number] = await start_process(command, self.log(number))
        self._following[number] = asyncio.create_task(self._follow(number, process))

    async def _start_again(self, number: int) -> None:
        self.away.discard(number)
        self.forget(number)
        await self._start(number)

    async def _kill(self, number: int) -> None:
        self.signal(signal.SIGKILL, [number])
        await self._following[number]
        self.observed.append(Observed(number, self._ended_ns[number], ViewEvent.CRASH))

    async def _follow(self, number: int, process: Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            self.heard(number, line)
            self._changed.set()
        code = await process.wait()
        self._ended_ns[number] = clock.wall_ns()
        if number not in self.away and not self.has_ended_well(number):
            self.fail(FleetFailed(f"{self.noun} {number} was lost: {how_it_died(code, self.log(number))}"))
        self._changed.set()

    async def _end_all(self) -> None:
        for task in self._following.values():
            task.cancel()
        self.signal(signal.SIGKILL)
        for process in self._processes.values():
            await process.wait()

    def signal(self, number: signal.Signals, to: Iterable[int] | None = None) -> None:
        for each in self._processes if to is None else to:
            process = self._processes[each]
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.send_signal(number)

    def log(self, number: int) -> Path:
        """The file with a process's error output."""
        return self.work / f"p{number:05d}.log"

    # What is waited for.

    def running(self) -> str:
        """A reason to wait: who has not ended; empty if all have."""
        running = [str(number) for number, process in self._processes.items() if process.returncode is None]
        return f"{self.noun} {', '.join(running)} has not ended" if running else ""

    async def until(self, reason: Callable[[], str], seconds: float, when: str) -> None:
        """Return when there is no reason to wait any longer. Raises FleetFailed with the last one after so much time."""
        deadline = clock.now() + seconds
        while why := reason():
            left_s = deadline - clock.now()
            if left_s <= 0:
                raise FleetFailed(f"{when}: {why}, after {seconds:g} s")
            await self._wait(left_s)

    async def _wait_until(self, moment: float) -> None:
        while (left_s := moment - clock.now()) > 0:
            await self._wait(left_s)

    async def _wait(self, seconds: float) -> None:
        """Until something has changed, or so much time has passed."""
        self._changed.clear()
        with suppress(TimeoutError):
            # Before Python 3.12 `wait_for` forgets an interruption that comes just when something has changed.
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        if self._failure is not None:
            raise self._failure

    # Reports.

    def tell(self, what: str, about: str) -> None:
        """Something happened, if the faults have begun."""
        if self.began is not None:
            self.happened.append(Happened(round(clock.now() - self.began, 3), what, about))
            if self.on_happened is not None:
                self.on_happened(self.happened[-1])
