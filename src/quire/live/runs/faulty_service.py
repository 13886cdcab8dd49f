"""Runs the processes of a service that tolerates the loss of some of them, and injects faults into those.

The faults begin when all senders have begun to send. When all members have done what was planned, the others are told to end.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from quire.live.runs.faulty_fleet import RETURN_S
from quire.live.runs.faulty_processes import FaultyProcesses
from quire.live.runs.fleet import DRAIN_S, FleetFailed, member_command
from quire.live.runs.hosts import Hosts
from quire.live.runs.plan import Plan
from quire.live.runs.progress import Ended, Progress, Running
from quire.model.errors import BadInput
from quire.model.faults import Fault
from quire.model.moments import describe_running

_said = msgspec.json.Decoder(Progress | Running | Ended)


class FaultyService(FaultyProcesses):
    """`losable`: the processes that may be lost; members come before them."""

    noun = "process"

    def __init__(self, plan: Plan, losable: range, faults: Sequence[Fault], parts: Path, hosts: Hosts | None = None) -> None:
        super().__init__(len(plan.members), faults, parts, hosts)
        self.is_after_the_faults = False
        self._plan = plan
        self._parts = parts
        self._losable = losable
        self._members = range(losable.start)
        self._sent: dict[int, int] = {}
        self._ended: dict[int, Ended] = {}
        self._epochs: dict[int, int] = {}
        """The last of each unit that was heard of."""

    async def take_part(self) -> None:
        await self.until(self._not_begun, self._plan.join_s, "at the start")
        self.begin()
        await self.have_faults_happen()
        self.is_after_the_faults = True
        span_s = (self._plan.messages or 0) / (self._plan.rate or 1e9)
        await self.until(self._not_done, RETURN_S + span_s, "after the last fault")
        self.signal(signal.SIGINT, self._losable)
        await self.until(self.running, DRAIN_S + self._plan.silence_s, "the service was not closed")

    def command(self, number: int) -> Sequence[str | Path]:
        return member_command(self._plan, self.work, number, self._parts)

    def forget(self, number: int) -> None:
        self._ended.pop(number, None)

    def has_ended_well(self, number: int) -> bool:
        return number in self._ended

    def heard(self, number: int, line: bytes) -> None:
        with suppress(msgspec.DecodeError):  # The last words of a process that was killed may be cut off.
            said = _said.decode(line)
            if isinstance(said, Running):
                self._runs(said)
                return
            if isinstance(said, Progress):
                self._sent[number] = said.sent
                error = said.unrecorded
            else:
                self._ended[number] = said
                error = said.error
                if said.bad_input:
                    self.fail(BadInput(error))
            if error:
                self.fail(FleetFailed(f"process {number} gave up: {error}"))

    def _runs(self, found: Running) -> None:
        """All sequencers say so, and the first of them is heeded. Here members come first, and sequencers are counted on."""
        if found.epoch > self._epochs.get(found.unit, -1):
            self._epochs[found.unit] = found.epoch
            first = self._losable.start
            self.tell(*describe_running(found.unit + first, found.primary + first, [each + first for each in found.backups]))

    # What is waited for: each of these is a reason to wait, or empty.

    def _not_begun(self) -> str:
        waits = [member for member in self._members if self._plan.sends(member) and not self._sent.get(member)]
        return f"process {waits[0]} has sent nothing" if waits else ""

    def _not_done(self) -> str:
        waits = [member for member in self._members if member not in self._ended]
        return f"process {waits[0]} has not done all that it was to do" if waits else ""
