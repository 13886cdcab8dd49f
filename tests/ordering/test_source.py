"""The data source `quire` on finished runs, on what members leave, and on a group that is running."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from quire.live.runs.fleet import free_addresses
from quire.model.errors import BadInput
from quire.pipeline.source import Progress, QuireDataSource, Span, members_of, register
from quire.simulation.config import SimulationConfig, WorkloadConfig
from quire.simulation.simulate import simulate
from quire.trace.log import Address, EventLog
from quire.trace.parts.description import RunIdentity, describe_part
from quire.trace.parts.frames import NewNames
from quire.trace.parts.writer import PartWriter
from quire.trace.schema import SCHEMA
from tests.kit.patience import PATIENCE_S

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ONCE = 1_769_854_502_123_456_789
SIMPLE = [name for name in SCHEMA.names if name != "dests"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "simulated"
    simulate(SimulationConfig(members=3, seed=1, workload=WorkloadConfig(messages=20)), out=out)
    return out


@pytest.fixture
def reading(spark: SparkSession) -> SparkSession:
    register(spark)
    return spark


def stored(run: Path) -> list[dict[str, Any]]:
    rows = [row for path in sorted((run / "trace").glob("*.parquet")) for row in pq.read_table(path).to_pylist()]
    return sorted(rows, key=lambda row: (row["process"], row["pos"]))


def found(frame: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict() for row in frame.orderBy("process", "pos").collect()]


def test_a_run_is_read_as_it_is_stored(reading: SparkSession, run: Path) -> None:
    assert found(reading.read.format("quire").load(str(run))) == stored(run)
    assert members_of(run) == 3


LIVE = RunIdentity(run="live", group="g", protocol="fifo", options={}, members=2, promises=())


def record(directory: Path) -> None:
    """A process that has sent three messages in one packet, and goes on."""
    log, part = EventLog(0, (Address("all", (0, 1)),)), PartWriter(directory, describe_part(LIVE, 0))
    log.send(0, 0, 3, 1, 10, 0, 64)
    log.packet("GOP", 1, 4, 11, 40, 192)
    part.append(NewNames(tuple(log.names.addresses), tuple(log.names.packet_types)), log.take())
    part.close()


def test_records_are_read_while_their_process_goes_on(reading: SparkSession, tmp_path: Path) -> None:
    record(tmp_path / "parts")
    (log,) = (tmp_path / "parts").glob("*.events")
    with log.open("ab") as file:
        file.write(b"half a frame")

    rows = found(reading.read.format("quire").load(str(tmp_path / "parts")))

    assert [(row["run"], row["pos"], row["kind"], row["seq"], row["lamport"], row["packet"]) for row in rows] == [
        ("live", 0, "send", 0, 1, None), ("live", 1, "send", 1, 2, None), ("live", 2, "send", 2, 3, None),
        ("live", 3, "packet", None, 4, "GOP"),
    ]  # fmt: skip
    assert rows[0]["dests"] == [0, 1]
    assert members_of(tmp_path / "parts") == 2


def test_a_span_of_records_is_found_in_parquet_when_they_are_gone(tmp_path: Path, run: Path) -> None:
    """What a stream was promised while the run was live, it gets from the files that the records became."""
    out = tmp_path / "run"
    shutil.copytree(run, out)
    source = QuireDataSource({"path": str(out)})
    reader = source.streamReader(source.schema())

    batches: Any = reader.read(Span(1, Progress(5, 128, ONCE), Progress(12, 256, ONCE)))
    rows = [row for batch in batches for row in batch.to_pylist()]

    assert rows == [row for row in stored(run) if row["process"] == 1][5:12]
    end = reader.latestOffset({"1": Progress(12, 256, ONCE)._asdict()}, None)  # type: ignore[arg-type]
    assert end["1"] == Progress(len([row for row in stored(run) if row["process"] == 1]), -1)._asdict()


def test_another_run_is_not_taken_for_the_one_that_was_followed(tmp_path: Path, run: Path) -> None:
    source = QuireDataSource({"path": str(run)})

    with pytest.raises(BadInput, match="holds a different run"):
        source.streamReader(source.schema()).latestOffset({"1": Progress(10_000, 640, ONCE)._asdict()}, None)  # type: ignore[arg-type]


def test_a_process_that_was_started_again_is_not_taken_for_the_one_that_was_followed(tmp_path: Path) -> None:
    """Its log may by now be longer than that of the one before."""
    parts = tmp_path / "parts"
    record(parts)
    source = QuireDataSource({"path": str(parts)})
    reader = source.streamReader(source.schema())
    before = reader.latestOffset({}, None)  # type: ignore[arg-type]
    for path in parts.iterdir():
        path.unlink()
    record(parts)

    with pytest.raises(BadInput, match="holds a different run"):
        reader.latestOffset(before, None)  # type: ignore[arg-type]


def test_where_nothing_is_a_stream_waits_and_a_batch_is_refused(tmp_path: Path) -> None:
    source = QuireDataSource({"path": str(tmp_path / "nothing")})

    assert source.streamReader(source.schema()).latestOffset({}, None) == {}  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="neither a run nor a directory"):
        source.reader(source.schema()).partitions()
    with pytest.raises(BadInput, match="neither a run nor a directory"):
        members_of(tmp_path / "nothing")


COMMAND = Path(sys.executable).with_name("quire")


@contextmanager
def started(*commands: Sequence[str | Path], **pipes: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """These commands, ended with the block whatever happens in it."""
    processes = [subprocess.Popen([COMMAND, *command], stdout=subprocess.DEVNULL, **pipes) for command in commands]  # type: ignore[call-overload]
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.communicate()


@contextmanager
def following(spark: SparkSession, path: Path, checkpoint: Path, take: Callable[[DataFrame, int], None]) -> Iterator[Any]:
    stream = spark.readStream.format("quire").load(str(path))
    query = stream.writeStream.foreachBatch(take).option("checkpointLocation", str(checkpoint)).start()
    try:
        query.processAllAvailable()  # Spark gives the source's process ten seconds, which it may need before others start.
        yield query
    finally:
        query.stop()


@pytest.mark.parametrize("protocol", ["single-phase", "two-phase"])
def test_a_run_is_followed_from_its_members_records_to_its_files(reading: SparkSession, tmp_path: Path, protocol: str) -> None:
    """Where there are views, messages and logical times are counted anew when the run has ended."""
    counted_anew = {"seq", "lamport", "object", "txn"} if protocol == "single-phase" else set()

    def same(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        kept = [{name: value for name, value in row.items() if name not in counted_anew} for row in rows]
        return sorted(kept, key=lambda row: (row["process"], row["pos"]))

    out = tmp_path / "runs" / "group"
    rows: list[dict[str, Any]] = []
    load = ("--protocol", protocol, "--members", "3", "--messages", "400", "--rate", "400", "--no-audit", "--out", out)
    with (
        following(reading, out, tmp_path / "checkpoint", lambda frame, _: rows.extend(found(frame))) as query,
        started(("run", *load)) as (group,),
    ):
        assert group.wait(PATIENCE_S) == 0
        query.processAllAvailable()

    assert same(rows) == same(stored(out))


def test_spark_sees_a_run_while_it_is_under_way(reading: SparkSession, tmp_path: Path) -> None:
    """The run is too long to end by itself, so whatever Spark sees of it, it sees while the group is running."""
    out = tmp_path / "runs" / "group"
    rows: list[dict[str, Any]] = []
    seen = threading.Event()

    def take(frame: DataFrame, _: int) -> None:
        rows.extend(found(frame))
        if len({row["process"] for row in rows if row["kind"] == "deliver"}) == 3:
            seen.set()

    load = ("--members", "3", "--messages", "1000000", "--rate", "50", "--no-audit", "--out", out)
    with following(reading, out, tmp_path / "checkpoint", take) as query, started(("run", *load)) as (group,):
        assert seen.wait(PATIENCE_S), query.exception()
        assert (group.poll(), out.exists()) == (None, False)
        query.stop()  # A run that is interrupted leaves nothing that could be followed any further.
        group.send_signal(signal.SIGINT)
        assert group.wait(PATIENCE_S) == 130


def test_spark_sees_what_members_do_while_they_run(reading: SparkSession, tmp_path: Path) -> None:
    """Every micro-batch has the members say something, and the next must bring it, until it has gone well often enough."""
    members, out = free_addresses(2), tmp_path / "parts"
    plan = tmp_path / "plan.toml"
    plan.write_text(f'members = {list(members)}\norder = "total"\nout = "{out}"\n')
    rows: list[dict[str, Any]] = []
    waits_s: list[float] = []
    goes_on = threading.Event()
    said_at = [time.monotonic()]

    def take(frame: DataFrame, batch: int) -> None:
        rows.extend(found(frame))
        waits_s.append(time.monotonic() - said_at[0])
        goes_on.set()

    commands = [("member", plan, "--me", str(me)) for me in range(2)]
    with following(reading, out, tmp_path / "checkpoint", take), started(*commands, stdin=subprocess.PIPE) as group:
        for number in range(6):
            said_at[0] = time.monotonic()
            goes_on.clear()
            for process in group:
                assert process.stdin is not None
                process.stdin.write(b"line %d\n" % number)
                process.stdin.flush()
            assert goes_on.wait(PATIENCE_S), f"micro-batch {number}"
        assert all(process.poll() is None for process in group)

    # While members run, a message has the number of its view in the upper half of its own.
    sends = [(row["process"], row["seq"] & 0xFFFF_FFFF) for row in rows if row["kind"] == "send"]
    assert sorted(set(sends)) == sorted(sends)
    assert {(0, 0), (1, 0), (0, 4), (1, 4)} <= set(sends)
    print("from a line to Spark, s:", [round(wait, 2) for wait in waits_s])
