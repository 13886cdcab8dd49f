"""A billion events: a trace is made piece by piece, and audited, in bounded memory and disk.

    python -m benchmarks.billion [--events 1000000000] [--members 8] [--cluster] [--keep DIR]

Everybody sends to all and delivers in one order, at a random pace, as `benchmarks.audit` has it; what is in flight is bounded.
The audit makes all six checks that every run gets. It is done on all cores of this machine, or with `--cluster` on a standalone
cluster of two workers with one core each. What more workers would take is reckoned from the measured parts: what the driver
does alone, and what tasks do, which needs no word between them.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from tests.cluster.standalone import cluster

from benchmarks.audit import run_info, trace_table
from benchmarks.audit_checks import peak_worker_bytes, processor_s
from quire.pipeline.auditing.auditor import audit_with
from quire.pipeline.auditing.registry import audit_job
from quire.pipeline.auditing.verdicts import Audit, Verdict
from quire.pipeline.compiled import compiled
from quire.pipeline.session import session
from quire.pipeline.tasks import Runner, run_on
from quire.trace.kinds import DELIVER, SEND
from quire.trace.store import RunWriter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PIECE_EVENTS = 8_000_000
IN_FLIGHT_MAX = 1 << 14
_WORKERS = (1, 10, 100)
_CORES_OF_A_WORKER = 2


class Pace(NamedTuple):
    """How far everybody is, and what was sent last: the message at index i of all is at i modulo the length."""

    clock: np.ndarray
    numbers: np.ndarray
    delivered: np.ndarray
    sent: np.ndarray
    """The sender, number and logical time of each message."""


@compiled
def advance(
    clock: np.ndarray, numbers: np.ndarray, delivered: np.ndarray, sent: np.ndarray, sent_count: int, messages: int,
    rows: np.ndarray, count: np.ndarray,
) -> int:  # fmt: skip
    """Go on until somebody's rows are full, or everything is sent and delivered. Returns how many messages were sent in all."""
    members, room = rows.shape[0], rows.shape[1]
    count[:] = 0
    while count.max() + 4 < room and delivered.min() < messages:
        p, burst = np.random.randint(members), np.random.randint(1, 5)
        may_send = min(messages - sent_count, len(sent) - (sent_count - delivered.min()))
        if may_send > 0 and np.random.random() < 1 / (members + 1):
            for _ in range(min(burst, may_send)):
                clock[p] += 1
                rows[p, count[p]] = (SEND, p, numbers[p], clock[p])
                count[p] += 1
                sent[sent_count % len(sent)] = (p, numbers[p], clock[p])
                numbers[p] += 1
                sent_count += 1
        else:
            for _ in range(min(burst, sent_count - delivered[p])):
                origin, number, lamport = sent[delivered[p] % len(sent)]
                clock[p] = max(clock[p], lamport) + 1
                rows[p, count[p]] = (DELIVER, origin, number, clock[p])
                count[p] += 1
                delivered[p] += 1
    return sent_count


def write_long_trace(directory: Path, members: int, events: int) -> None:
    """Write the trace, with no more than a piece of it in memory."""
    messages = events // (members + 1)
    clock, numbers, delivered = np.zeros((3, members), np.int64)
    pace = Pace(clock, numbers, delivered, np.zeros((IN_FLIGHT_MAX, 3), np.int64))
    rows, count = np.empty((members, PIECE_EVENTS // members, 4), np.int64), np.zeros(members, np.int64)
    written, sent_count = np.zeros(members, np.int64), 0

    def append(process: int) -> None:
        writer.append(process, trace_table(process, members, rows[process, : count[process]], int(written[process])))

    with ThreadPoolExecutor(os.cpu_count()) as pool, RunWriter(directory, "benchmark") as writer:
        while pace.delivered.min() < messages:
            sent_count = advance(*pace, sent_count, messages, rows, count)
            list(pool.map(append, range(members)))
            written[:] += count
        writer.finish(run_info(members, messages))


class Timed:
    """A runner that counts how long its tasks took, and how many there were."""

    def __init__(self, run: Runner) -> None:
        self._run = run
        self.wall_s, self.tasks, self.jobs = 0.0, 0, 0

    def __call__(self, tasks: Sequence[Any]) -> list[Any]:
        began = time.perf_counter()
        results = self._run(tasks)
        self.wall_s += time.perf_counter() - began
        self.tasks += len(tasks)
        self.jobs += bool(tasks)
        return results


@contextmanager
def spark_at(scratch: Path, *, on_cluster: bool) -> Iterator[SparkSession]:
    """Spark on all cores of this machine, or on a cluster of two workers."""
    if not on_cluster:
        with session(brief=False) as spark:
            yield spark
        return
    with cluster(scratch) as started, session(started.master, brief=False) as spark:
        yield spark


def measure(directory: Path, small: Path, *, on_cluster: bool, scratch: Path) -> None:
    with spark_at(scratch, on_cluster=on_cluster) as spark:
        audit_with(run_on(spark, audit_job()), small, segments=4)  # The session is warm from now on.
        idle = Timed(run_on(spark, audit_job()))
        audit_with(idle, small, segments=4)
        run = Timed(run_on(spark, audit_job()))
        before = processor_s()
        found = audit_with(run, directory)
        cpu_s, held = processor_s() - before, (peak_worker_bytes(), peak_worker_bytes("java"))
    assert found.verdict is Verdict.HOLDS, found.checks
    _show(found, run, idle.wall_s / idle.jobs, cpu_s, held)


def _show(found: Audit, run: Timed, job_s: float, cpu_s: float, held: tuple[int, int]) -> None:
    """`job_s` is what a job takes with next to nothing to do; `held` is the most memory of a worker, and of Java."""
    alone_s = found.wall_s - run.wall_s
    own_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    cores = os.cpu_count() or 1
    print(
        f"audited {found.events:,} events in {found.wall_s:.1f} s: {found.events / found.wall_s / 1e6:.2f} M events/s; "
        f"{cpu_s:.1f} s of {cores} processors"
    )
    print(f"{found.segments} segments, {run.tasks} tasks in {run.jobs} jobs")
    print(f"the driver alone took {alone_s:.2f} s, a job without work takes {job_s:.2f} s")
    worker, java = (size >> 20 for size in held)
    print(f"most memory of a worker {worker:,} MiB, of the driver {own_bytes >> 20:,} MiB, of a Java process {java:,} MiB")
    for workers in _WORKERS:
        at_once = min(workers * _CORES_OF_A_WORKER, run.tasks / run.jobs)
        taken_s = alone_s + run.jobs * job_s + (run.wall_s - run.jobs * job_s) * cores / at_once
        print(f"{workers:4d} workers of {_CORES_OF_A_WORKER} cores: {taken_s:6.1f} s, as reckoned from this run", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1_000_000_000)
    parser.add_argument("--members", type=int, default=8)
    parser.add_argument("--cluster", action="store_true", help="on a cluster of two workers, started for it")
    parser.add_argument("--keep", type=Path, default=None, help="directory for the trace, kept and used again")
    chosen = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="quire-benchmark-"))
    directory = chosen.keep or scratch / "run"
    try:
        if not directory.exists():
            began = time.perf_counter()
            write_long_trace(directory, chosen.members, chosen.events)
            print(f"written in {time.perf_counter() - began:.1f} s", flush=True)
        write_long_trace(scratch / "small", chosen.members, 200_000)
        size = sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())
        print(f"{size / 1e9:.2f} GB on disk, {size / chosen.events:.2f} bytes an event", flush=True)
        measure(directory, scratch / "small", on_cluster=chosen.cluster, scratch=scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main()
