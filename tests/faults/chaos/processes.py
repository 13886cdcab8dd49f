"""Processes of a service under faults, as whoever started them sees them."""

from __future__ import annotations

import asyncio
import json
import sys
from abc import abstractmethod
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from quire.live.runs.disks import Disks, disks
from quire.live.runs.faulty_processes import FaultyProcesses
from quire.live.runs.fleet import free_addresses
from quire.live.runs.hosts import Hosts, hosts
from quire.model.faults import Disconnection, Full
from tests.faults.chaos.rounds import Round
from tests.kit.patience import PATIENCE_S


class Stage:
    """Where the processes of a round are: on hosts and disks of their own, as far as its faults need them."""

    def __init__(self, count: int, made: Hosts | None, own: Disks | None) -> None:
        self.hosts = made
        self.disks = own
        self._count = count

    def addresses(self, port: int) -> Sequence[str]:
        """One for each process."""
        return free_addresses(self._count) if self.hosts is None else [f"{each}:{port}" for each in self.hosts.ipv4]


@contextmanager
def stage(round: Round) -> Iterator[Stage]:
    is_apart, is_full = (any(isinstance(fault, kind) for fault in round.faults) for kind in (Disconnection, Full))
    with ExitStack() as stack:
        made = stack.enter_context(hosts(round.members)) if is_apart else None
        own = stack.enter_context(disks(round.members)) if is_full else None
        yield Stage(round.members, made, own)


class ServiceProcesses(FaultyProcesses):
    """Each is started with its settings, and says how it stands in JSON objects, one a line."""

    module: str
    """What is run."""

    def __init__(self, round: Round, stage: Stage, directory: Path) -> None:
        super().__init__(round.members, round.faults, directory, stage.hosts, stage.disks)
        self.round = round
        self.said: dict[int, dict[str, Any]] = {number: {} for number in range(round.members)}
        """What the present process of each number said last, of each kind of thing."""
        self.starts = 0

    @abstractmethod
    def settings(self, number: int) -> dict[str, Any]:
        """Of the next process of this number."""

    def play(self, directory: Path) -> None:
        """To the end; what happened is written down, whatever comes of it."""
        try:
            asyncio.run(self.run())
        finally:
            lines = [f"{each.at_s:8.3f} {each.what} {each.about}\n" for each in self.happened]
            (directory / "happened.txt").write_text("".join(lines))

    def command(self, number: int) -> Sequence[str | Path]:
        self.starts += 1
        return [sys.executable, "-m", self.module, json.dumps({"start": self.starts, **self.settings(number)})]

    def forget(self, number: int) -> None:
        self.said[number] = {}

    def has_ended_well(self, number: int) -> bool:
        return "ended" in self.said[number]

    def heard(self, number: int, line: bytes) -> None:
        if not line.endswith(b"\n"):
            return  # The last words of a process that was killed.
        said = json.loads(line)
        self.said[number] |= said
        for what, about in said.items():
            self.tell(what, f"{number}: {about}")
        if "wrong" in said:
            self.fail(AssertionError(f"process {number}: {said['wrong']}"))

    async def until_said(self, what: str, by: Collection[int], when: str) -> None:
        """Return when the last of this kind that each of them said is true, of whoever is to run."""

        def missing() -> str:
            silent = [number for number in by if number not in self.away and not self.said[number].get(what)]
            return f"process {', '.join(map(str, silent))} does not say {what}" if silent else ""

        await self.until(missing, PATIENCE_S, when)
