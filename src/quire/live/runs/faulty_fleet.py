"""Member processes of a group that changes, and what is done to them: they are killed, stopped, cut off and started again.

The members are processes on this machine, each with a journal. Where they are to be cut off from each other, each is on a host
of its own; where disks are to be full, each has a disk of its own. The faults begin when all are in the group. When the last is
over and everything that was planned is sent and acknowledged, the group is closed. None of its processes is left behind,
however the run ends.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from quire.files.scratch import Scratch
from quire.live import clock
from quire.live.runs.disks import Disks
from quire.live.runs.fleet import DRAIN_S, PLAN, FleetFailed, how_it_died, start_process
from quire.live.runs.hosts import Hosts
from quire.live.runs.plan import Plan
from quire.live.runs.progress import Ended, Standing
from quire.model.errors import BadInput
from quire.model.faults import Disconnection, Fault, Full, Kill, Restart, Stop, unreachable
from quire.model.moments import Happened, Moment, describe_moment, moments
from quire.trace.parts.observing import Observed
from quire.trace.views import Happening

RETURN_S = 60.0
"""How long members may take, after the last fault, until all are together and everything is acknowledged."""

_said = msgspec.json.Decoder(Standing | Ended)


class FaultyFleet:
    def __init__(
        self, plan: Plan, faults: Sequence[Fault], parts: Path, hosts: Hosts | None = None, disks: Disks | None = None
    ) -> None:
        self.happened: list[Happened] = []
        """What was done, and which views came of it, as it happened."""
        self.observed: list[Observed] = []
        """What members cannot record of themselves."""
        self.on_happened: Callable[[Happened], None] | None = None
        self.standing: dict[int, Standing] = {}
        """What each member said last."""
        self.acknowledged: dict[int, int] = {}
        """How many messages each member knew to be delivered."""
        self.ended: dict[int, Ended] = {}
        self.is_after_the_faults = False
        self._plan = plan
        self._faults = faults
        self._parts = parts
        self._hosts = hosts
        self._work = parts
        self._disks = disks
        self._processes: dict[int, Process] = {}
        self._following: dict[int, asyncio.Task[None]] = {}
        self._killed: set[int] = set()
        """Members that do not run, as they are meant to."""
        self._ended_ns: dict[int, int] = {}
        """When the last process of each member ended."""
        self._failure: Exception | None = None
        self._changed = asyncio.Event()
        self._began: float | None = None
        self._views: set[int] = set()

    async def run(self) -> None:
        """Start the members, have the faults happen, and wait until everything is delivered and all have ended, each with its
        part of the trace written.

        Raises FleetFailed, or BadInput where members could not begin. When it is cancelled, whatever is stopped or cut off goes
        on, and the members first close their group.
        """
        with Scratch.temporary("run") as scratch:
            self._work = scratch.path
            (self._work / PLAN).write_bytes(msgspec.json.encode(self._plan))
            try:
                await self._run()
            except asyncio.CancelledError:
                self._undo()
                self._signal(signal.SIGINT)
                await asyncio.wait(self._following.values(), timeout=DRAIN_S)
                raise
            finally:
                await self._end_all()

    async def _run(self) -> None:
        for member in range(len(self._plan.members)):
            await self._start(member)
        await self._until(self._missing, self._plan.join_s, "the members did not form one group")
        self._began = clock.now()
        self._tell_of_view(self.standing[0])
        for moment in moments(self._faults):
            await self._wait_until(self._began + moment.at_ms / 1000)
            await self._perform(moment)
        self.is_after_the_faults = True
        span_s = (self._plan.messages or 0) / (self._plan.rate or 1e9)
        await self._until(lambda: self._missing() or self._unsent(), RETURN_S + span_s, "after the last fault")
        self._signal(signal.SIGINT)
        await self._until(self._running, DRAIN_S + self._plan.silence_s, "the group was not closed")

    # What is done to members.

    async def _perform(self, moment: Moment) -> None:
        fault = moment.fault
        self._tell(*describe_moment(moment))
        match fault:
            case Kill():
                self._killed.add(fault.member)
                await self._kill(fault.member)
            case Restart():
                await self._start_again(fault.member)
            case Full():
                assert self._disks is not None
                if moment.begins:
                    self._killed.add(fault.member)
                    self._disks.fill(fault.member)
                else:
                    self._disks.make_room(fault.member)
                    await self._kill(fault.member)  # It has ended by itself, unless it had nothing to write.
                    await self._start_again(fault.member)
            case Stop():
                self._signal(signal.SIGSTOP if moment.begins else signal.SIGCONT, [fault.member])
            case _:
                assert isinstance(fault, Disconnection)
                assert self._hosts is not None
                change = self._hosts.cut if moment.begins else self._hosts.heal
                await asyncio.to_thread(change, unreachable(fault))
                what = Happening.CUT if moment.begins else Happening.HEALED
                for source in sorted({source for source, _ in unreachable(fault)}):
                    others = tuple(sorted(target for one, target in unreachable(fault) if one == source))
                    self.observed.append(Observed(source, clock.wall_ns(), what, others))

    def _undo(self) -> None:
        """Nobody is stopped or cut off any more."""
        self._signal(signal.SIGCONT)
        if self._hosts is not None:
            self._hosts.heal_all()

    # Processes.

    async def _start(self, member: int) -> None:
        files = self._work / PLAN, str(member), self._parts, self._journal(member)
        command: list[str | Path] = [sys.executable, "-m", "quire.live.runs.member", *files]
        if self._hosts is not None:
            command = [*self._hosts.on(member), *command]
        process = self._processes[member] = await start_process(command, self._log(member))
        self._following[member] = asyncio.create_task(self._follow(member, process))

    async def _start_again(self, member: int) -> None:
        self._killed.discard(member)
        self.standing.pop(member, None)
        self.ended.pop(member, None)
        await self._start(member)

    async def _kill(self, member: int) -> None:
        self._signal(signal.SIGKILL, [member])
        await self._following[member]
        self.observed.append(Observed(member, self._ended_ns[member], Happening.CRASH))

    async def _follow(self, member: int, process: Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            with suppress(msgspec.DecodeError):  # The last words of a process that was killed may be cut off.
                said = _said.decode(line)
                if isinstance(said, Ended):
                    self.ended[member] = said
                    self._judge(member, said)
                else:
                    self._heed(member, said)
                self._changed.set()
        code = await process.wait()
        self._ended_ns[member] = clock.wall_ns()
        if member not in self._killed and member not in self.ended:
            self._fail(FleetFailed(f"member {member} was lost: {how_it_died(code, self._log(member))}"))
        self._changed.set()

    def _heed(self, member: int, said: Standing) -> None:
        before = self.standing.get(member)
        self.standing[member] = said
        self.acknowledged[member] = max(self.acknowledged.get(member, 0), said.acknowledged)
        if said.unrecorded:
            self._fail(FleetFailed(f"member {member} gave up: {said.unrecorded}"))
        if said.event:
            self._tell(said.event, str(member))
        if before is None or before.view != said.view:
            self._tell_of_view(said)

    def _judge(self, member: int, ended: Ended) -> None:
        if member in self._killed:
            return  # Its disk is full, of which it has died.
        if ended.bad_input:
            self._fail(BadInput(ended.error))
        elif ended.error:
            self._fail(FleetFailed(f"member {member} gave up: {ended.error}"))

    def _fail(self, error: Exception) -> None:
        self._failure = self._failure or error

    async def _end_all(self) -> None:
        for task in self._following.values():
            task.cancel()
        self._signal(signal.SIGKILL)
        for process in self._processes.values():
            await process.wait()

    def _signal(self, number: signal.Signals, members: Iterable[int] | None = None) -> None:
        for member in self._processes if members is None else members:
            process = self._processes[member]
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.send_signal(number)

    def _log(self, member: int) -> Path:
        return self._work / f"p{member:05d}.log"

    def _journal(self, member: int) -> Path:
        folder = self._work if self._disks is None else self._disks.paths[member]
        return folder / f"p{member:05d}.journal"

    # What is waited for: each of these is a reason to wait, or empty.

    def _running(self) -> str:
        running = [str(member) for member, process in self._processes.items() if process.returncode is None]
        return f"member {', '.join(running)} has not ended" if running else ""

    def _missing(self) -> str:
        """Whether everybody who runs is in one view with all the others who do."""
        there = {str(member) for member in range(len(self._plan.members))} - {str(member) for member in self._killed}
        for member in sorted(map(int, there)):
            standing = self.standing.get(member)
            if standing is None or not standing.view:
                return f"member {member} is not in the group"
            if set(standing.members) != there:
                return f"member {member} is in a view of {', '.join(standing.members)}"
        return ""

    def _unsent(self) -> str:
        for member, standing in self.standing.items():
            if member in self._killed or not self._plan.sends(member):
                continue
            if standing.acknowledged < (self._plan.messages or 0):
                return f"of member {member}'s {self._plan.messages} messages, {standing.acknowledged} are acknowledged"
        return ""

    async def _until(self, reason: Callable[[], str], seconds: float, when: str) -> None:
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

    # What is told.

    def _tell_of_view(self, standing: Standing) -> None:
        if self._began is not None and standing.view not in self._views | {0}:
            self._views.add(standing.view)
            self._tell(f"view {standing.view}", ", ".join(standing.members))

    def _tell(self, what: str, about: str) -> None:
        if self._began is not None:
            self.happened.append(Happened(round(clock.now() - self._began, 3), what, about))
            if self.on_happened is not None:
                self.on_happened(self.happened[-1])
