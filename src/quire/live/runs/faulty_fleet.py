"""Runs the member processes of a changing group on this machine, and injects faults.

Each member has a journal. The faults begin when all are in the group. When the last is over and everything that was planned is
sent and acknowledged, the group is closed.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from quire.live.runs.disks import Disks
from quire.live.runs.faulty_processes import FaultyProcesses
from quire.live.runs.fleet import DRAIN_S, FleetFailed, member_command
from quire.live.runs.hosts import Hosts
from quire.live.runs.plan import Plan
from quire.live.runs.progress import Ended, Standing
from quire.model.errors import BadInput
from quire.model.faults import Fault

RETURN_S = 60.0
"""How long members may take, after the last fault, until all are together and everything is acknowledged."""

_said = msgspec.json.Decoder(Standing | Ended)


class FaultyFleet(FaultyProcesses):
    noun = "member"

    def __init__(
        self, plan: Plan, faults: Sequence[Fault], parts: Path, hosts: Hosts | None = None, disks: Disks | None = None
    ) -> None:
        super().__init__(len(plan.members), faults, parts, hosts, disks)
        self.standing: dict[int, Standing] = {}
        """The last status report of each member."""
        self.acknowledged: dict[int, int] = {}
        """How many messages each member knew to be delivered."""
        self.ended: dict[int, Ended] = {}
        self.is_after_the_faults = False
        self._plan = plan
        self._parts = parts
        self._views: set[int] = set()

    async def take_part(self) -> None:
        await self.until(self._missing, self._plan.join_s, "the members did not form one group")
        self.begin()
        self._tell_of_view(self.standing[0])
        await self.have_faults_happen()
        self.is_after_the_faults = True
        span_s = (self._plan.messages or 0) / (self._plan.rate or 1e9)
        await self.until(lambda: self._missing() or self._unsent(), RETURN_S + span_s, "after the last fault")
        self.signal(signal.SIGINT)
        await self.until(self.running, DRAIN_S + self._plan.silence_s, "the group was not closed")

    # Processes.

    def command(self, number: int) -> Sequence[str | Path]:
        journal = self.disk(number) / f"p{number:05d}.journal"
        return member_command(self._plan, self.work, number, self._parts, journal)

    def forget(self, number: int) -> None:
        self.standing.pop(number, None)
        self.ended.pop(number, None)

    def has_ended_well(self, number: int) -> bool:
        return number in self.ended

    def heard(self, number: int, line: bytes) -> None:
        with suppress(msgspec.DecodeError):  # The last words of a process that was killed may be cut off.
            said = _said.decode(line)
            if isinstance(said, Ended):
                self.ended[number] = said
                self._judge(number, said)
            else:
                self._heed(number, said)

    def _heed(self, member: int, said: Standing) -> None:
        before = self.standing.get(member)
        self.standing[member] = said
        self.acknowledged[member] = max(self.acknowledged.get(member, 0), said.acknowledged)
        if said.unrecorded:
            self.fail(FleetFailed(f"member {member} gave up: {said.unrecorded}"))
        if said.event:
            self.tell(said.event, str(member))
        if before is None or before.view != said.view:
            self._tell_of_view(said)

    def _judge(self, member: int, ended: Ended) -> None:
        if member in self.away:
            return  # Its disk is full, of which it has died.
        if ended.bad_input:
            self.fail(BadInput(ended.error))
        elif ended.error:
            self.fail(FleetFailed(f"member {member} gave up: {ended.error}"))

    # What is waited for: each of these is a reason to wait, or empty.

    def _missing(self) -> str:
        """Which running members are not yet in one view with all the others that run."""
        there = {str(member) for member in range(self.count)} - {str(member) for member in self.away}
        for member in sorted(map(int, there)):
            standing = self.standing.get(member)
            if standing is None or not standing.view:
                return f"member {member} is not in the group"
            if set(standing.members) != there:
                return f"member {member} is in a view of {', '.join(standing.members)}"
        return ""

    def _unsent(self) -> str:
        for member, standing in self.standing.items():
            if member in self.away or not self._plan.sends(member):
                continue
            if standing.acknowledged < (self._plan.messages or 0):
                return f"of member {member}'s {self._plan.messages} messages, {standing.acknowledged} are acknowledged"
        return ""

    def _tell_of_view(self, standing: Standing) -> None:
        if self.began is not None and standing.view not in self._views | {0}:
            self._views.add(standing.view)
            self.tell(f"view {standing.view}", ", ".join(standing.members))
