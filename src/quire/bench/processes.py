"""Runs the processes of one measurement; none is left running, however it ends."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from quire.bench.assignment import END, GO, Assignment, Done, Failed, Progress, Ready, Report, Said
from quire.files.scratch import Scratch
from quire.model.errors import QuireError

EXTRA_S = 30.0
"""How much longer than its load a measurement may take, to start, connect and drain on a busy machine."""

Kind = TypeVar("Kind", Ready, Done, Report)
Watch = Callable[[int, Progress], None]

_said: msgspec.json.Decoder[Said] = msgspec.json.Decoder(Said)


class BenchFailed(QuireError):
    """A contender did not do what it is measured for: says which, and how it failed."""


class Processes:
    """One process for each assignment. `watch` is told which of them has come how far."""

    def __init__(self, assignments: Sequence[Assignment], limit_s: float, watch: Watch | None = None) -> None:
        self._assignments = assignments
        self._limit_s = limit_s + EXTRA_S
        self._watch = watch
        self._processes: list[Process] = []
        self._logs: list[Path] = []

    async def run(self) -> list[Report]:
        """What each process measured. Raises BenchFailed."""
        with Scratch.temporary("bench") as scratch:
            try:
                async with asyncio.timeout(self._limit_s):
                    for index, assignment in enumerate(self._assignments):
                        self._logs.append(scratch.path / f"{index}.log")
                        self._processes.append(await self._start(assignment, self._logs[index]))
                    return await self._conduct()
            except TimeoutError:
                raise BenchFailed(f"{self._name()} took longer than {self._limit_s:.0f} s, and was stopped") from None
            finally:
                await self._stop()

    async def _start(self, assignment: Assignment, log: Path) -> Process:
        with log.open("wb") as errors:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "quire.bench.process",
                stdin=PIPE, stdout=PIPE, stderr=errors, limit=1 << 24,
                start_new_session=True,  # Ctrl-C is for the command, which then ends its processes.
            )  # fmt: skip
        self._tell(process, msgspec.json.encode(assignment) + b"\n")
        return process

    async def _conduct(self) -> list[Report]:
        """Let everybody go when all are ready, and end when all are done."""
        await self._hear_all(Ready)
        self._tell_all(GO)
        # A sequencer has no load of its own, and reports that it is done at once.
        await self._hear_all(Done)
        self._tell_all(END)
        reports = await self._hear_all(Report)
        # The processes exit by themselves; a group that does not close properly is a failure.
        await asyncio.gather(*(self._see_off(index) for index in range(len(self._processes))))
        return reports

    async def _hear_all(self, kind: type[Kind]) -> list[Kind]:
        return await asyncio.gather(*(self._hear(index, kind) for index in range(len(self._processes))))

    async def _hear(self, index: int, kind: type[Kind]) -> Kind:
        process = self._processes[index]
        assert process.stdout is not None
        while line := await process.stdout.readline():
            said = _said.decode(line)
            if isinstance(said, kind):
                return said
            if isinstance(said, Failed):
                raise BenchFailed(f"{self._name(index)} failed: {said.because}")
            if isinstance(said, Progress) and self._watch is not None:
                self._watch(index, said)
        raise BenchFailed(f"{self._name(index)} ended with code {await process.wait()}{self._last_words(index)}")

    async def _see_off(self, index: int) -> None:
        if code := await self._processes[index].wait():
            raise BenchFailed(f"{self._name(index)} exited with code {code}{self._last_words(index)}")

    def _last_words(self, index: int) -> str:
        lines = self._logs[index].read_text(errors="replace").strip().splitlines()
        return f" ({lines[-1].strip()})" if lines else ""

    def _name(self, index: int = 0) -> str:
        assignment = self._assignments[index]
        return f"process {assignment.me} of {assignment.contender!r}"

    def _tell_all(self, what: bytes) -> None:
        for process in self._processes:
            self._tell(process, what)

    def _tell(self, process: Process, what: bytes) -> None:
        assert process.stdin is not None
        with suppress(ConnectionError):  # What it said last, or its exit code, says why.
            process.stdin.write(what)

    async def _stop(self) -> None:
        for process in self._processes:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
        for process in self._processes:
            await process.wait()
