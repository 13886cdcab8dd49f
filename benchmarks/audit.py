"""How fast the audit is, beside Spark's own sort and the causal check in Polars and DuckDB, on the same files in the same run.

    python -m benchmarks.audit [--deliveries 10000000] [--members 8] [--repeat 3] [--scale 5]

Rivals get their best formulation: Spark reads only the columns it needs and sorts by logical time into a sink that
drops the rows; Polars and DuckDB find causal violations by running maxima per origin and a join, Polars with its
streaming engine.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa

from quire.model.orders import OF_ANY_MESSAGES
from quire.pipeline.auditing.auditor import audit_with
from quire.pipeline.auditing.judging import judge_trace
from quire.pipeline.auditing.registry import audit_job
from quire.pipeline.auditing.verdicts import Verdict
from quire.pipeline.compiled import compiled
from quire.pipeline.layout import lay_out, segment_count
from quire.pipeline.session import session
from quire.pipeline.tasks import run_on
from quire.trace.kinds import DELIVER, KINDS, SEND
from quire.trace.schema import SCHEMA, Outcome, RunInfo
from quire.trace.store import RunWriter, open_run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@compiled
def simulate(members: int, messages: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Everybody sends to all and delivers in one order, at a random pace. Rows are (kind, origin, seq, lamport)."""
    np.random.seed(seed)
    rows = np.empty((members, messages * 2 + messages, 4), np.int64)
    count = np.zeros(members, np.int64)
    clock = np.zeros(members, np.int64)
    numbers = np.zeros(members, np.int64)
    delivered = np.zeros(members, np.int64)
    sent = np.empty((messages, 3), np.int64)
    sent_count, left = 0, members * messages
    while left > 0:
        p = np.random.randint(members)
        burst = np.random.randint(1, 5)
        if sent_count < messages and np.random.random() < 1 / (members + 1):
            for _ in range(min(burst, messages - sent_count)):
                clock[p] += 1
                rows[p, count[p]] = (SEND, p, numbers[p], clock[p])
                count[p] += 1
                sent[sent_count] = (p, numbers[p], clock[p])
                numbers[p] += 1
                sent_count += 1
        else:
            for _ in range(min(burst, sent_count - delivered[p])):
                origin, number, lamport = sent[delivered[p]]
                clock[p] = max(clock[p], lamport) + 1
                rows[p, count[p]] = (DELIVER, origin, number, clock[p])
                count[p] += 1
                delivered[p] += 1
                left -= 1
    return rows, count


def write_trace(directory: Path, members: int, deliveries: int) -> None:
    messages = deliveries // members
    rows, count = simulate(members, messages, 7)
    with RunWriter(directory, "benchmark") as writer:
        for process in range(members):
            writer.append(process, trace_table(process, members, rows[process, : count[process]]))
        writer.finish(run_info(members, messages))


def run_info(members: int, messages: int) -> RunInfo:
    """The description of a run in which everybody delivers every message."""
    return RunInfo(
        run="benchmark", source="benchmark", protocol="benchmark", options={}, members=members,
        groups={"all": tuple(range(members))}, promises=OF_ANY_MESSAGES,
        outcome=Outcome(complete=True, messages=messages, deliveries=messages * members),
    )  # fmt: skip


def trace_table(process: int, members: int, rows: np.ndarray, first_pos: int = 0) -> pa.Table:
    """The rows (kind, origin, seq, lamport) of a process, whose messages all go to everybody, as those of a trace."""
    size = len(rows)
    is_send = rows[:, 0] == SEND
    offsets = np.concatenate(([0], np.cumsum(np.where(is_send, members, 0)))).astype(np.int32)
    everyone = np.tile(np.arange(members, dtype=np.int32), int(is_send.sum()))

    def words(code: int | np.ndarray, vocabulary: list[str], kind: type) -> Any:
        return pa.DictionaryArray.from_arrays(np.broadcast_to(code, size).astype(kind), pa.array(vocabulary))

    columns: dict[str, Any] = {
        "run": words(0, ["benchmark"], np.int8),
        "process": pa.array(np.full(size, process), pa.int32()),
        "pos": pa.array(first_pos + np.arange(size), pa.int64()),
        "kind": words(rows[:, 0], list(KINDS), np.int8),
        "origin": pa.array(rows[:, 1], pa.int32()),
        "seq": pa.array(rows[:, 2], pa.int64()),
        "group": words(0, ["all"], np.int32),
        "dests": pa.ListArray.from_arrays(
            pa.array(offsets, pa.int32()),
            pa.array(everyone, pa.int32()),
            type=SCHEMA.field("dests").type,
            mask=pa.array(~is_send),
        ),
        "lamport": pa.array(rows[:, 3], pa.int64()),
        "time_ns": pa.array(rows[:, 3] * 1000, pa.int64()),
        "payload_bytes": pa.array(np.full(size, 64), pa.int32()),
    }
    return pa.table([columns.get(field.name, pa.nulls(size, field.type)) for field in SCHEMA], schema=SCHEMA)


def spark_sort(spark: SparkSession, directory: Path) -> None:
    """Read what the audit reads, and sort it by logical time."""
    frame = spark.read.parquet(str(directory / "trace")).select("process", "kind", "origin", "seq", "dests", "lamport")
    frame.sort("lamport").write.format("noop").mode("overwrite").save()


def polars_causal(directory: Path, members: int) -> int:
    """Causal violations in Polars, all messages being sent to all: what each sender had delivered when it sent, as
    running maxima per origin at every process, joined to every delivery and compared with the deliverer's own."""
    trace = pl.scan_parquet(directory / "trace" / "*.parquet").select("process", "pos", "kind", "origin", "seq", "lamport")
    trace = trace.with_columns(pl.col("kind").cast(pl.String))
    # All messages go to all, so direct predecessors are enough for the verdict: a member that misses an indirect one is
    # preceded by one that missed it directly. So the vectors are running maxima of what was delivered, and nothing
    # has to be followed from message to message, which Polars could not do.
    seen = [
        pl.when((pl.col("kind") == "deliver") & (pl.col("origin") == o)).then(pl.col("seq") + 1).cum_max()
        .forward_fill().shift(1).over("process", order_by="pos").fill_null(0).cast(pl.Int32).alias(f"seen{o}")
        for o in range(members)
    ]  # fmt: skip
    running = trace.with_columns(seen)
    names = [f"seen{o}" for o in range(members)]
    needs = [
        pl.when(pl.col("origin") == o).then(pl.col("seq").cast(pl.Int32)).otherwise(pl.col(name)).alias(f"need_{name}")
        for o, name in enumerate(names)
    ]
    sends = running.filter(pl.col("kind") == "send").select("origin", "seq", *needs)
    deliveries = running.filter(pl.col("kind") == "deliver").select("origin", "seq", *names)
    lacking = pl.any_horizontal([pl.col(f"need_{name}") > pl.col(name) for name in names])
    joined = deliveries.join(sends, on=["origin", "seq"])
    return int(joined.select(lacking.sum()).collect(engine="streaming").item())


def duckdb_causal(directory: Path, members: int) -> int:
    """The same in DuckDB: one window function for each origin, all over one window, then a join."""
    seen = ", ".join(
        f"coalesce(max(CASE WHEN kind = 'deliver' AND origin = {o} THEN seq + 1 END) OVER before, 0)::INTEGER AS seen{o}"
        for o in range(members)
    )
    needs = ", ".join(f"CASE WHEN origin = {o} THEN seq::INTEGER ELSE seen{o} END AS need{o}" for o in range(members))
    lacking = " OR ".join(f"need{o} > seen{o}" for o in range(members))
    names = ", ".join(f"seen{o}" for o in range(members))
    query = f"""
        WITH trace AS (SELECT process, pos, kind, origin, seq FROM read_parquet('{directory}/trace/*.parquet')),
        running AS (
            SELECT kind, origin, seq, {seen} FROM trace
            WINDOW before AS (PARTITION BY process ORDER BY pos ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
        ),
        sends AS (SELECT origin, seq, {needs} FROM running WHERE kind = 'send'),
        deliveries AS (SELECT origin, seq, {names} FROM running WHERE kind = 'deliver')
        SELECT count(*) FILTER (WHERE {lacking}) FROM deliveries JOIN sends USING (origin, seq)
    """
    found = duckdb.connect().execute(query).fetchone()
    assert found is not None
    return int(found[0])


def best_of(repeat: int, actions: dict[str, Callable[[], object]]) -> tuple[dict[str, float], int]:
    """The best time of each action, and the most memory of a worker. They take turns, so that a busy moment of the machine
    is nobody's alone. Each round begins with the first action untimed: Spark stops workers that were idle for a minute,
    which rivals may well take, and the session is to be warm."""
    times: dict[str, list[float]] = {name: [] for name in actions}
    peak = 0
    for _ in range(repeat):
        next(iter(actions.values()))()
        for name, action in actions.items():
            began = time.perf_counter()
            action()
            times[name].append(time.perf_counter() - began)
            peak = max(peak, peak_worker_bytes())
    return {name: min(taken) for name, taken in times.items()}, peak


def main() -> None:
    parser = argparse.ArgumentParser(description="The audit beside Spark's own sort and Polars' causal check.")
    parser.add_argument("--deliveries", type=int, default=10_000_000)
    parser.add_argument("--members", type=int, default=8)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--segments", type=int, default=None)
    parser.add_argument("--scale", type=int, default=1, help="then audit a trace so many times as long, too")
    parser.add_argument("--keep", type=Path, default=None, help="directory for the trace, kept and used again")
    chosen = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="quire-benchmark-"))
    directory = chosen.keep or work / "run"
    try:
        if not directory.exists():
            write_trace(directory, chosen.members, chosen.deliveries)
        took = measure(directory, chosen.members, chosen.repeat, chosen.segments)
        if chosen.scale > 1:
            write_trace(work / "long", chosen.members, chosen.deliveries * chosen.scale)
            longer = measure(work / "long", chosen.members, chosen.repeat, chosen.segments, rivals=False)
            times = longer / took
            print(f"{chosen.scale} times the trace in {times:.2f} times the time: {times / chosen.scale:.2f} a part")
    finally:
        shutil.rmtree(work, ignore_errors=True)


def measure(directory: Path, members: int, repeat: int, segments: int | None, *, rivals: bool = True) -> float:
    """Print everything; returns how long the four checks took."""
    layout = lay_out(open_run(directory))
    pieces = segments or segment_count(layout)
    print(
        f"{layout.rows:,} events, {members} members, {pieces} segments, {os.cpu_count()} cores; best of {repeat}, warm session"
    )
    with session(brief=False) as spark:
        run = run_on(spark, audit_job())
        result = audit_with(run, directory, segments=segments)
        assert result.verdict is Verdict.HOLDS, result.checks
        spark_sort(spark, directory)
        if rivals:
            assert polars_causal(directory, members) == 0
            assert duckdb_causal(directory, members) == 0
        actions: dict[str, Callable[[], object]] = {
            "audit: integrity, agreement, FIFO, causal": lambda: judge_trace(layout, pieces, run),
            "audit: the same, total and acyclic": lambda: audit_with(run, directory, segments=segments),
        }
        if rivals:
            actions["Spark: read and sort by logical time"] = lambda: spark_sort(spark, directory)
            actions["Polars: causal alone"] = lambda: polars_causal(directory, members)
            actions["DuckDB: causal alone"] = lambda: duckdb_causal(directory, members)
        best, peak = best_of(repeat, actions)
    for name, seconds in best.items():
        print(f"{name:<45} {seconds:7.2f} s   {layout.rows / seconds / 1e6:6.2f} M events/s")
    four, six, *others = best.values()
    for name, seconds in zip(list(best)[2:], others, strict=True):
        print(f"{name.partition(':')[0] + ' to the four checks':<45} {seconds / four:7.2f} x, to all six {seconds / six:.2f} x")
    print(f"{'most memory of a worker process':<45} {peak / 2**20:7.0f} MiB")
    return four


def peak_worker_bytes() -> int:
    """The most that any Python process which Spark started for us has ever held."""
    parents: dict[int, int] = {}
    held: dict[int, int] = {}
    for status in Path("/proc").glob("[0-9]*/status"):
        with suppress(OSError, KeyError):
            fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
            parents[int(fields["Pid"])] = int(fields["PPid"])
            held[int(fields["Pid"])] = int(fields["VmHWM"].split()[0]) * 1024 if "python" in fields["Name"] else 0
    ours, grew = {os.getpid()}, True
    while grew:
        more = {pid for pid, parent in parents.items() if parent in ours} - ours
        ours, grew = ours | more, bool(more)
    return max((held.get(pid, 0) for pid in ours - {os.getpid()}), default=0)


if __name__ == "__main__":
    main()
