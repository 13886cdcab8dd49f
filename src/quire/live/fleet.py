"""Member processes on this machine, from start to end: none is left behind, however the run ends."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from secrets import SystemRandom

import msgspec

from quire.live.member import Ended, Progress
from quire.live.plan import Plan
from quire.live.settings import read_address
from quire.model.errors import BadInput, QuireError

DRAIN_S = 5.0
"""How long members may take to end after they were asked to."""

# Below the ports that systems hand out to connections, so that none of those takes one before its member listens.
_PORTS = range(20_000, 32_000)

Watch = Callable[[int, Progress], None]

_said = msgspec.json.Decoder(Progress | Ended)


class FleetFailed(QuireError):
    """The member processes did not bring the run to its end; says which was lost, or what they said."""


class Fleet:
    def __init__(self, plan: Plan, members: Sequence[int], parts: Path) -> None:
        self.watch: Watch | None = None
        """Is told how far each member is."""
        self.ended: dict[int, Ended] = {}
        """What members said at their end, as far as they came to it."""
        self._plan = plan
        self._members = members
        self._parts = parts
        self._processes: dict[int, Process] = {}

    async def run(self) -> None:
        """Start the members and wait until all have ended, each with its part of the trace written.

        Raises FleetFailed, or BadInput where members could not begin. When it is cancelled, the members first drain, so
        that `ended` then says how far they came.
        """
        plan_file = self._parts / "plan.json"
        plan_file.write_bytes(msgspec.json.encode(self._plan))
        watching: list[asyncio.Task[None]] = []
        try:
            for member in self._members:
                process = self._processes[member] = await self._start(plan_file, member)
                watching.append(asyncio.create_task(self._follow(member, process)))
            await self._until_all_ended(watching)
        except asyncio.CancelledError:
            self._signal(signal.SIGINT)
            await asyncio.wait(watching, timeout=DRAIN_S) if watching else None
            raise
        finally:
            self._signal(signal.SIGKILL)
            for process in self._processes.values():
                await process.wait()
            for task in watching:
                task.cancel()
        self._judge()

    async def _start(self, plan_file: Path, member: int) -> Process:
        with self._log(member).open("wb") as log:
            return await asyncio.create_subprocess_exec(
                sys.executable, "-m", "quire.live.member", plan_file, str(member), self._parts,
                stdin=PIPE, stdout=PIPE, stderr=log,
                start_new_session=True,  # Ctrl-C is for the command, which then asks its members to end.
            )  # fmt: skip

    async def _follow(self, member: int, process: Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            with suppress(msgspec.DecodeError):  # The last words of a process that was killed may be cut off.
                said = _said.decode(line)
                if isinstance(said, Ended):
                    self.ended[member] = said
                elif self.watch is not None:
                    self.watch(member, said)
        await process.wait()

    async def _until_all_ended(self, watching: Sequence[asyncio.Task[None]]) -> None:
        """The others notice by themselves when a member is lost; they get the time for it, and no more."""
        running = set(watching)
        while running and not self._lost() and not any(ended.error for ended in self.ended.values()):
            _, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        if running:
            await asyncio.wait(running, timeout=self._plan.timeout_s + DRAIN_S)

    def _lost(self) -> Mapping[int, int]:
        """Members whose process ended without a word, and the exit code."""
        return {
            member: process.returncode
            for member, process in self._processes.items()
            if process.returncode is not None and member not in self.ended
        }

    def _judge(self) -> None:
        for member, code in self._lost().items():
            raise FleetFailed(f"member {member} was lost: {self._how_it_died(member, code)}; {self._what_others_did(member)}")
        for member, ended in self.ended.items():
            if ended.bad_input:
                raise BadInput(ended.error)
            if ended.error:
                raise FleetFailed(f"member {member} gave up: {ended.error}")

    def _how_it_died(self, member: int, code: int) -> str:
        if code < 0:
            return f"its process was ended by {signal.Signals(-code).name}"
        lines = self._log(member).read_text(errors="replace").strip().splitlines()
        return f"its process ended with code {code}" + (f" ({lines[-1].strip()})" if lines else "")

    def _what_others_did(self, lost: int) -> str:
        gave_up = [str(member) for member, ended in sorted(self.ended.items()) if ended.error and member != lost]
        if not gave_up:
            return "the group ended with it"
        return f"member{'s' * (len(gave_up) > 1)} {' and '.join(gave_up)} noticed and gave up"

    def _log(self, member: int) -> Path:
        return self._parts / f"p{member:05d}.log"

    def _signal(self, number: signal.Signals) -> None:
        for process in self._processes.values():
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.send_signal(number)


def free_addresses(count: int) -> tuple[str, ...]:
    """Loopback addresses at which nobody listens."""
    found: list[str] = []
    for port in SystemRandom().sample(_PORTS, len(_PORTS)):
        if len(found) == count:
            break
        if _can_bind("127.0.0.1", port):
            found.append(f"127.0.0.1:{port}")
    else:
        raise BadInput(f"this machine has no free ports for {count} members")
    return tuple(found)


def is_local(address: str) -> bool:
    """Whether a member with this address can listen on this machine."""
    return _can_bind(read_address(address).host, 0)


def _can_bind(host: str, port: int) -> bool:
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        with socket.socket(family, kind, protocol) as one:
            one.bind(where)
    except OSError:
        return False
    return True
