"""Runs member processes on this machine, from start to end: none is left behind, however the run ends."""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from quire.files.scratch import Scratch
from quire.live import clock
from quire.live.ports import can_bind, free_ports
from quire.live.runs.plan import Plan
from quire.live.runs.progress import Ended, Progress, Standing
from quire.live.settings import read_address
from quire.model.errors import BadInput, QuireError
from quire.trace.parts.observing import Observed
from quire.trace.views import ViewEvent

DRAIN_S = 15.0
"""How long members may take to end after they were asked to."""

NOTICE_S = 3.0
"""How long members may take to end after one of them gave up; the others should notice the same at the same time."""

Watch = Callable[[int, Progress | Standing], None]

PLAN = "plan.json"

_said = msgspec.json.Decoder(Progress | Standing | Ended)


class FleetFailed(QuireError):
    """The member processes did not bring the run to its end; says which was lost, or what they said."""


class Fleet:
    def __init__(self, plan: Plan, members: Sequence[int], parts: Path) -> None:
        self.watch: Watch | None = None
        """Called with the progress of each member."""
        self.ended: dict[int, Ended] = {}
        """The final reports of members, as far as there are any."""
        self.observed: list[Observed] = []
        """The deaths of members of a group that changes, which they cannot record themselves."""
        self._plan = plan
        self._timeout_s = plan.silence_s
        self._members = members
        self._parts = parts
        self._work = parts
        self._processes: dict[int, Process] = {}
        self._ready: set[int] = set()
        """Members that can be asked to stop; the others have sent nothing."""
        self.lost: dict[int, str] = {}
        """Members whose process ended without a final report, and how it ended."""
        self._blocked: set[int] = set()
        """Members that cannot reach a majority."""
        self._goes_on = plan.is_dynamic()
        """Whether the others go on when members are lost."""

    async def run(self) -> None:
        """Start the members and wait until all have ended, each with its part of the trace written.

        Raises FleetFailed, or BadInput where members could not begin. When it is cancelled, the members first drain, so
        that `ended` then says how far they came.
        """
        with Scratch.temporary("run") as scratch:
            self._work = scratch.path
            await self._run()
            self._judge()

    async def _run(self) -> None:
        following: list[asyncio.Task[None]] = []
        try:
            for member in self._members:
                process = self._processes[member] = await self._start(member)
                following.append(asyncio.create_task(self._follow(member, process)))
            await self._until_all_ended(following)
        except asyncio.CancelledError:
            self._signal(signal.SIGINT, self._ready)
            self._signal(signal.SIGKILL, self._processes.keys() - self._ready)
            if following:
                await asyncio.wait(following, timeout=DRAIN_S)
            raise
        finally:
            # Processes that end from here on were ended by this one.
            for task in following:
                task.cancel()
            self._signal(signal.SIGKILL, self._processes)
            for process in self._processes.values():
                await process.wait()

    async def _start(self, member: int) -> Process:
        return await start_process(member_command(self._plan, self._work, member, self._parts), self._log(member))

    async def _follow(self, member: int, process: Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            with suppress(msgspec.DecodeError):  # The last words of a process that was killed may be cut off.
                said = _said.decode(line)
                self._ready.add(member)
                if isinstance(said, Ended):
                    self.ended[member] = said
                elif said.unrecorded:
                    # It goes on, but there will be no complete trace, so there is no use in waiting for any of them.
                    self.ended[member] = Ended(said.sent, said.delivered, error=said.unrecorded)
                    return
                elif self._is_stuck(member, said):
                    return
                elif self.watch is not None:
                    self.watch(member, said)
        code = await process.wait()
        if member not in self.ended:
            self.lost[member] = how_it_died(code, self._log(member))
            if self._goes_on:
                self.observed.append(Observed(member, clock.wall_ns(), ViewEvent.CRASH))

    def _is_stuck(self, member: int, said: Progress | Standing) -> bool:
        """Whether a member cannot go on, because so many of the others are gone for good."""
        event = said.event if isinstance(said, Standing) else ""
        if event == "blocked":
            self._blocked.add(member)
        elif event == "unblocked":
            self._blocked.discard(member)
        return bool(self.lost) and member in self._blocked

    async def _until_all_ended(self, following: Sequence[asyncio.Task[None]]) -> None:
        """Wait until all have ended. When a member is lost or has ended, the others notice by themselves, and get limited time
        for it: one that is stopped, or hangs, would never end."""
        running = set(following)
        while running and not self._is_over():
            # All end together. Where some may be lost, those that are left end without them.
            patience_s = self._timeout_s + DRAIN_S if self.ended else None
            ended, running = await asyncio.wait(running, timeout=patience_s, return_when=asyncio.FIRST_COMPLETED)
            if not ended:
                return
        if running and self.lost and not self._goes_on:
            await asyncio.wait(running, timeout=self._timeout_s + NOTICE_S)
        elif running:
            well = self._goes_on and not any(ended.error for ended in self.ended.values())
            await asyncio.wait(running, timeout=DRAIN_S if well else NOTICE_S)

    def _is_over(self) -> bool:
        """Whether the group has ended, at whatever member, or cannot go on."""
        if self._goes_on:
            return bool(self.ended) or bool(self.lost and self._blocked)
        return bool(self.lost) or any(ended.error for ended in self.ended.values())

    def unheard(self) -> Sequence[int]:
        """Members that may have sent something and gave no final report."""
        return sorted(self._ready - self.ended.keys() - self.lost.keys())

    def _judge(self) -> None:
        went_on = self._goes_on and any(not ended.error for ended in self.ended.values())
        for member, how in self.lost.items() if not went_on else ():
            raise FleetFailed(f"member {member} was lost: {how}; {self._what_others_did()}")
        for member, ended in self.ended.items():
            if ended.bad_input:
                raise BadInput(ended.error)
            if ended.error:
                raise FleetFailed(f"member {member} gave up: {ended.error}")
        for member in self._members:
            if member not in self.ended and member not in self.lost:
                raise FleetFailed(f"member {member} was lost: it did not end when the others had")

    def _what_others_did(self) -> str:
        gave_up = [str(member) for member, ended in sorted(self.ended.items()) if ended.error]
        if not gave_up:
            return "the others could not go on without it" if self._goes_on else "the group ended with it"
        return f"member{'s' * (len(gave_up) > 1)} {' and '.join(gave_up)} noticed and gave up"

    def _log(self, member: int) -> Path:
        return self._work / f"p{member:05d}.log"

    def _signal(self, number: signal.Signals, members: Iterable[int]) -> None:
        for member in members:
            process = self._processes[member]
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.send_signal(number)


def member_command(plan: Plan, work: Path, number: int, parts: Path, *more: Path) -> Sequence[str | Path]:
    """What starts a process that takes part as it is planned. The plan is put into the directory `work`."""
    file = work / PLAN
    if not file.exists():
        file.write_bytes(msgspec.json.encode(plan))
    return [sys.executable, "-m", "quire.live.runs.member", file, str(number), parts, *more]


async def start_process(command: Sequence[str | Path], log: Path) -> Process:
    """Start the process of a member; closing its standard input tells it to end."""
    with log.open("ab") as errors:
        return await asyncio.create_subprocess_exec(
            *command,
            stdin=PIPE, stdout=PIPE, stderr=errors,
            start_new_session=True,  # Ctrl-C is for the command, which then asks its members to end.
        )  # fmt: skip


def how_it_died(code: int, log: Path) -> str:
    """How a process ended unexpectedly, from its exit code and its error output."""
    if code < 0:
        return f"its process was ended by {signal.Signals(-code).name}"
    lines = log.read_text(errors="replace").strip().splitlines()
    return f"its process ended with code {code}" + (f" ({lines[-1].strip()})" if lines else "")


def free_addresses(count: int) -> tuple[str, ...]:
    """Loopback addresses at which nobody listens, for members that will."""
    return tuple(f"127.0.0.1:{port}" for port in free_ports(count))


def is_local(address: str) -> bool:
    """Whether a member with this address can listen on this machine."""
    return can_bind(read_address(address).host, 0)
