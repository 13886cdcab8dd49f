"""The tasks of a sweep: each measures some cells until its time is up.

A task has an overhead of about 0.15 s of processor time, so it should work for some seconds; but how long a cell takes is known
only after it was measured. So a task gets its share of the remaining cells, works on them until its time is up, and returns the
rest. Towards the end shares become small, and all workers finish at about the same time.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping

import msgspec

from quire.model.errors import QuireError
from quire.pipeline.tasks import job_of
from quire.sweep import experiments
from quire.sweep.experiments.contract import Experiment
from quire.sweep.store import Measured

TASK_S = 6.0
_SHARES_PER_WORKER = 2
_SHARE_S_MIN = 1.0


class Chunk(msgspec.Struct, tag="chunk"):
    """Cells of one experiment, by name, each as JSON, to be measured one after the other for a number of seconds."""

    experiment: str
    cells: dict[str, bytes]
    seconds: float


class ChunkDone(msgspec.Struct):
    """What was measured, in the order of the cells, and how long that took."""

    measured: list[Measured]
    seconds: float


def measure_chunk(chunk: Chunk) -> ChunkDone:
    """Measure the first of the cells and then more, until the time is up."""
    experiment = experiments.find(chunk.experiment)
    began = time.perf_counter()
    measured = []
    for name, text in chunk.cells.items():
        measured.append(_measure(experiment, name, msgspec.json.decode(text, type=experiment.cell)))
        if time.perf_counter() - began >= chunk.seconds:
            break
    return ChunkDone(measured, time.perf_counter() - began)


def _measure(experiment: Experiment, name: str, cell: msgspec.Struct) -> Measured:
    try:
        return Measured(name, experiment.run(cell))
    except QuireError as error:
        return Measured(name, {}, str(error))
    except Exception as error:  # noqa: BLE001 - One cell that finds a fault must not cost all the others.
        return Measured(name, {}, f"{type(error).__name__}: {error}")


CHUNKS = job_of({Chunk: (measure_chunk, ChunkDone)})


class Shares:
    """The cells left to measure, heaviest first, handed out in shares."""

    def __init__(self, experiment: Experiment, cells: Mapping[str, msgspec.Struct], workers: int) -> None:
        self._experiment = experiment
        self._cells = cells
        self._work: Callable[[str], float] = lambda name: max(experiment.work(cells[name]), 1e-9)
        self._left = deque(sorted(cells, key=self._work, reverse=True))
        self._left_work = sum(map(self._work, cells))
        self._workers = workers
        self._work_done = self._seconds = 0.0

    def __bool__(self) -> bool:
        return bool(self._left)

    def take(self) -> Chunk:
        """The next share; there must be something left."""
        share = max(self._left_work / (self._workers * _SHARES_PER_WORKER), self._work_in(_SHARE_S_MIN))
        cells: dict[str, bytes] = {}
        work = 0.0
        while self._left and (not cells or work + self._work(self._left[0]) <= share):
            name = self._left.popleft()
            work += self._work(name)
            cells[name] = msgspec.json.encode(self._cells[name])
        self._left_work -= work
        return Chunk(self._experiment.name, cells, TASK_S)

    def settle(self, chunk: Chunk, done: ChunkDone) -> None:
        """Take back the unmeasured cells of a share, and update the estimate of the speed."""
        finished = {measured.cell for measured in done.measured}
        rest = [name for name in chunk.cells if name not in finished]
        self._left.extendleft(reversed(rest))
        self._left_work += sum(map(self._work, rest))
        self._work_done += sum(map(self._work, finished))
        self._seconds += done.seconds

    def _work_in(self, seconds: float) -> float:
        return seconds * self._work_done / self._seconds if self._seconds else 0.0
