"""What each check of the audit costs beside the four that every audit makes, on traces of its own kind and of one size.

    python -m benchmarks.audit_checks [--events 10000000] [--only serialisable] [--json]

Processor time is that of all processes together, so that it means something on a machine which others use too; memory is the
most that a Python process of Spark's held for this check.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks.audit_traces import LongTrace, calls, groups, memberships, transactions, views, write_long
from benchmarks.tables import Row, show
from quire.pipeline.auditing.check import Question
from quire.pipeline.auditing.judging import judge_trace
from quire.pipeline.auditing.registry import audit_job, find_checks
from quire.pipeline.auditing.results import Results
from quire.pipeline.layout import lay_out, segment_count
from quire.pipeline.session import session
from quire.pipeline.tasks import Runner, run_on
from quire.trace.store import open_run

TIMES_MAX, BYTES_MAX = 4.0, 1536 * 2**20
"""What is wanted of each check: processor time beside the four checks, and memory of a worker."""

_FEW_EVENTS = 100_000
_TICK = os.sysconf("SC_CLK_TCK")


class Case(NamedTuple):
    name: str
    make: Callable[[int], LongTrace]
    guarantee: str = ""
    """The check; empty for the four that one pass over all events makes."""
    violated: bool = False


FOUR = Case("the four checks", partial(groups, count=1))
CASES = (
    Case("the four checks, no logical times", partial(groups, count=1, timed=False)),
    Case("total", partial(groups, count=1), "total"),
    Case("total, violated", partial(groups, count=1, swapped=True), "total", violated=True),
    Case("hybrid, 64 groups", partial(groups, count=64), "hybrid"),
    Case("hybrid, one group", partial(groups, count=1), "hybrid"),
    Case("hybrid, one group, violated", partial(groups, count=1, swapped=True), "hybrid", violated=True),
    Case("memberships, 64 groups", partial(memberships, count=64), "memberships"),
    Case("significant", calls, "significant"),
    Case("significant, violated", partial(calls, late=True), "significant", violated=True),
    Case("serialisable", transactions, "serialisable"),
    Case("serialisable, violated", partial(transactions, stale=True), "serialisable", violated=True),
    Case("three weaker levels", transactions, "transactional-causal"),
    Case("three weaker levels, violated", partial(transactions, stale=True), "transactional-causal", violated=True),
    Case("views and sessions", views, "virtual-synchrony"),
)


def judge_case(case: Case, directory: Path, run: Runner) -> None:
    """Perform the tasks of the check, and no others."""
    stored = open_run(directory)
    layout = lay_out(stored)
    if not case.guarantee:
        judge_trace(layout, segment_count(layout), run)
        return
    (check,) = find_checks([case.guarantee])
    question = Question(layout, stored.info, frozenset([case.guarantee]))
    results = Results(run([piece for kind in check.tasks for piece in kind.pieces(question)]))
    for whole in run([kind.make(question) for kind in check.tasks if not kind.settled(results.of(kind.result))]):
        results.add(whole)
    assert not any(need.lacking(results) for need in check.needs), case.name
    assert bool(check.count(results)) == case.violated, case.name
    assert case.violated or not check.undecided(results), check.undecided(results)


def measure(case: Case, events: int, run: Runner, scratch: Path) -> Row:
    directory = scratch / "run"
    rows = write_long(directory, case.make(events))
    for worker in _processes():
        with suppress(OSError):
            Path(f"/proc/{worker}/clear_refs").write_text("5")  # From now on the peak is counted anew.
    before, began = processor_s(), time.perf_counter()
    judge_case(case, directory, run)
    row: Row = {
        "check": case.name, "events": rows, "cpu_s": processor_s() - before, "wall_s": time.perf_counter() - began,
        "worker_bytes": peak_worker_bytes(),
    }  # fmt: skip
    shutil.rmtree(directory)
    return row


def processor_s() -> float:
    """The processors' time of this process and all that it started, those that have ended included."""
    total = 0.0
    for pid in _processes() | {os.getpid()}:
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += sum(map(int, fields[11:15])) / _TICK
    return total


def peak_worker_bytes(program: str = "python") -> int:
    """The most that any process of this program has held which Spark started for us, or which is Spark itself."""
    most = 0
    for pid in _processes():
        with suppress(OSError, KeyError):
            fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
            if program in fields["Name"]:
                most = max(most, int(fields["VmHWM"].split()[0]) * 1024)
    return most


def _processes() -> set[int]:
    """All processes that this one started, and those that these started."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    ours, grew = {os.getpid()}, True
    while grew:
        more = {pid for pid, parent in parents.items() if parent in ours} - ours
        ours, grew = ours | more, bool(more)
    return ours - {os.getpid()}


def _line(row: Row) -> str:
    missed = [name for name, over in (("time", row["times"] > TIMES_MAX), ("memory", row["worker_bytes"] > BYTES_MAX)) if over]
    mark = f"  ({' and '.join(missed)})" if missed else ""
    memory = row["worker_bytes"] / 2**20
    return (
        f"{row['check']:36s}{row['events']:12,d}{row['cpu_s']:9.1f}{row['wall_s']:9.1f}{row['times']:9.2f}{memory:9.0f}{mark}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--only", default="", help="the checks whose names begin with this")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="quire-benchmark-"))
    try:
        with session(brief=False) as spark:
            run = run_on(spark, audit_job())
            wanted = [case for case in (FOUR, *CASES) if _wanted(case, chosen.only)]
            for case in wanted:
                measure(case, _FEW_EVENTS, run, scratch)  # The session is warm from now on, and every check's loops are loaded.
            table = [measure(case, chosen.events, run, scratch) for case in wanted]
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    for row in table:
        row["times"] = row["cpu_s"] / table[0]["cpu_s"]
    titles = [
        f"each check beside the four; wanted: at most {TIMES_MAX:.0f} times, and {BYTES_MAX >> 20:,} MiB",
        f"{'':36s}{'events':>12s}{'cpu s':>9s}{'wall s':>9s}{'times':>9s}{'MiB':>9s}",
    ]
    show(table, titles, _line, as_json=chosen.json)


def _wanted(case: Case, only: str) -> bool:
    return case is FOUR or case.name.startswith(only)


if __name__ == "__main__":
    main()
