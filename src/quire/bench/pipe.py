"""A benchmark process's end of the pipes to the command that started it.

The command sends `go` when all are connected and `end` when all are done. If the pipe closes instead, the command is gone, and
this process exits at once, whatever it is doing, because nobody else would stop it.
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import threading
import time
from pathlib import Path

import msgspec

from quire.bench.assignment import END, GO, Assignment, Done, Progress, Ready, Report, Said
from quire.bench.load import Tally

_PAGE_BYTES = resource.getpagesize()


class Pipe:
    def __init__(self) -> None:
        # Unbuffered: a thread that waits in a buffer would hold its lock when the interpreter ends.
        self._words = open(0, "rb", buffering=0, closefd=False)  # noqa: SIM115
        self.assignment = msgspec.json.decode(self._words.readline(), type=Assignment)
        self.began = 0.0
        self._cpu_s = 0.0
        self._go = threading.Event()
        self._end = threading.Event()
        threading.Thread(target=self._listen, name="quire-bench", daemon=True).start()

    def ready(self) -> None:
        """Say that everybody is connected and wait for the others; time counts from here."""
        self.say(Ready())
        self._go.wait()
        self.began = time.perf_counter()
        self._cpu_s = time.process_time()

    async def all_ready(self) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self.ready)

    def done(self) -> float:
        """Say that everything is delivered, and wait until it is everywhere; returns how long it took here."""
        elapsed_s = time.perf_counter() - self.began
        self.say(Done())
        self._end.wait()
        return elapsed_s

    async def all_done(self) -> float:
        return await asyncio.get_running_loop().run_in_executor(None, self.done)

    def report(self, elapsed_s: float, sent: int, tallies: tuple[Tally, ...], plain_s: float | None = None) -> None:
        self.say(
            Report(
                me=self.assignment.me,
                sent=sent,
                delivered=sum(tally.delivered for tally in tallies),
                digests=tuple(tally.digest() for tally in tallies),
                elapsed_s=elapsed_s,
                cpu_s=self.cpu_s(),
                plain_s=plain_s,
            )
        )

    def cpu_s(self) -> float:
        """Processor time of all threads of this process since `ready`."""
        return time.process_time() - self._cpu_s

    def progress(self, delivered: int) -> None:
        self.say(Progress(delivered, resident_bytes()))

    def say(self, said: Said) -> None:
        os.write(1, msgspec.json.encode(said) + b"\n")

    def _listen(self) -> None:
        for line in self._words:
            if line == GO:
                self._go.set()
            elif line == END:
                self._end.set()
        os._exit(1)


def resident_bytes() -> int:
    """How much memory this process has now; where the system does not tell, the most it ever had."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE_BYTES
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
