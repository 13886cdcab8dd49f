"""The workload of a member in a run: what it sends, what it does with deliveries, and when it has everything."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Protocol

from quire.live.dynamic.group import DynamicGroup
from quire.live.groups.group import Group
from quire.live.load import Pace
from quire.live.runs.plan import Plan
from quire.live.runs.progress import PROGRESS_S
from quire.model.errors import NoQuorum
from quire.model.messages import Run

RUN_MESSAGES_MAX = 8192
RUN_BYTES_MAX = 1 << 20


class Exchange(Protocol):
    """Members are known by their numbers, as text."""

    sent: int
    delivered: int
    """How many application messages were delivered."""

    async def send(self, group: Group | DynamicGroup) -> None:
        """Send until there is nothing more to send, or the group takes nothing more."""

    async def take(self, origin: str, first: int, run: Run) -> None:
        """Messages of a member were delivered, the first of which has this number."""

    def has_all_of(self, member: str) -> bool:
        """Whether this member will send nothing more."""


class PlannedLoad:
    """As many messages as planned, as fast as the group takes them or at the planned rate."""

    def __init__(self, plan: Plan, me: int) -> None:
        self.sent = 0
        self.delivered = 0
        self._plan = plan
        self._me = me
        self._of: Counter[str] = Counter()

    async def send(self, group: Group | DynamicGroup) -> None:
        if not self._plan.sends(self._me):
            return
        if isinstance(group, DynamicGroup):
            self.sent = group.accepted  # With its journal it goes on where it was.
        batch, pace = self._plan.batch(RUN_MESSAGES_MAX, RUN_BYTES_MAX), Pace(self._plan, self.sent)
        while count := await pace.take(len(batch)):
            await multicast_patiently(group, batch[:count])
            self.sent += count

    async def take(self, origin: str, first: int, run: Run) -> None:  # noqa: ARG002
        self.delivered += run.count
        self._of[origin] += run.count

    def has_all_of(self, member: str) -> bool:
        plan = self._plan
        return not plan.sends(int(member)) or self._of[member] >= (plan.messages or 0)


async def multicast_patiently(group: Group | DynamicGroup, messages: list[bytes]) -> None:
    """Send these; while there is no majority, wait for one."""
    while True:
        try:
            await group.multicast_many(messages)
        except NoQuorum:
            await asyncio.sleep(PROGRESS_S)  # They are not accepted, and so they are sent later.
        else:
            return
