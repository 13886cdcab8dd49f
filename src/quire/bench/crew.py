"""The processes of one measurement, from start to end: none is left behind, however it ends."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import msgspec

from quire.bench.duty import END, GO, Done, Duty, Failed, Progress, Ready, Report, Said
from quire.model.errors import QuireError

EXTRA_S = 30.0
"""How much longer than its load a measurement may take, to start, connect and drain on a busy machine."""

Kind = TypeVar("Kind", Ready, Done, Report)
Watch = Callable[[int, Progress], None]

_said: msgspec.json.Decoder[Said] = msgspec.json.Decoder(Said)


class BenchFailed(QuireError):
    """A contender did not do what it is measured for: says which, and how it failed."""


class Crew:
    """One process a duty. `watch` is told which of them has come how far."""

    def __init__(self, duties: Sequence[Duty], limit_s: float, watch: Watch | None = None) -> None:
        self._duties = duties
        self._limit_s = limit_s + EXTRA_S
        self._watch = watch
        self._processes: list[Process] = []
        self._logs: list[Path] = []

    async def run(self) -> list[Report]:
        """What each process measured. Raises BenchFailed."""
        with TemporaryDirectory(prefix="quire-bench-") as directory:
            try:
                async with asyncio.timeout(self._limit_s):
                    for place, duty in enumerate(self._duties):
                        self._logs.append(Path(directory) / f"{place}.log")
                        self._processes.append(await self._start(duty, self._logs[place]))
                    return await self._conduct()
            except TimeoutError:
                raise BenchFailed(f"{self._name()} took longer than {self._limit_s:.0f} s, and was stopped") from None
            finally:
                await self._stop()

    async def _start(self, duty: Duty, log: Path) -> Process:
        with log.open("wb") as errors:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "quire.bench.process",
                stdin=PIPE, stdout=PIPE, stderr=errors, limit=1 << 24,
                start_new_session=True,  # Ctrl-C is for the command, which then ends its processes.
            )  # fmt: skip
        self._tell(process, msgspec.json.encode(duty) + b"\n")
        return process

    async def _conduct(self) -> list[Report]:
        """Let everybody go when all are ready, and end when all are done."""
        await self._hear_all(Ready)
        self._tell_all(GO)
        # A sequencer has nothing to be done with, and says so at once.
        await self._hear_all(Done)
        self._tell_all(END)
        reports = await self._hear_all(Report)
        # They leave by themselves, and a group that does not close well is not well.
        await asyncio.gather(*(self._see_off(place) for place in range(len(self._processes))))
        return reports

    async def _hear_all(self, kind: type[Kind]) -> list[Kind]:
        return await asyncio.gather(*(self._hear(place, kind) for place in range(len(self._processes))))

    async def _hear(self, place: int, kind: type[Kind]) -> Kind:
        process = self._processes[place]
        assert process.stdout is not None
        while line := await process.stdout.readline():
            said = _said.decode(line)
            if isinstance(said, kind):
                return said
            if isinstance(said, Failed):
                raise BenchFailed(f"{self._name(place)} failed: {said.because}")
            if isinstance(said, Progress) and self._watch is not None:
                self._watch(place, said)
        raise BenchFailed(f"{self._name(place)} ended with code {await process.wait()}{self._last_words(place)}")

    async def _see_off(self, place: int) -> None:
        if code := await self._processes[place].wait():
            raise BenchFailed(f"{self._name(place)} did not end well: code {code}{self._last_words(place)}")

    def _last_words(self, place: int) -> str:
        lines = self._logs[place].read_text(errors="replace").strip().splitlines()
        return f" ({lines[-1].strip()})" if lines else ""

    def _name(self, place: int = 0) -> str:
        duty = self._duties[place]
        return f"process {duty.me} of {duty.contender!r}"

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
