"""Warms the caches for the first use: run `python -m quire.cli.warming` once after an installation.

It imports some small logs, and audits a small run on Spark and one of every other kind here. That compiles the kernels, whose
machine code is cached, and makes Java write an archive of the classes that it has loaded (`pipeline/class_archive`). Without
this, some seconds are lost: for the kernels on the first use of each, for the classes every time.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from quire.files.scratch import Scratch

_RUN = "run"
_SERVICES = ("sequencer", "objects", "transactions")
_HISTORY = "history.jsonl"
_LOGS = {
    "hosts.log": 'a {"a": 1}\nsends\nb {"a": 1, "b": 1}\nreceives\n',
    "clocks.csv": 'host,clock,event\na,"{""a"": 1}",sends\nb,"{""a"": 1, ""b"": 1}",receives\n',
    "names.jsonl": '{"host": "a", "sends": "m"}\n{"host": "b", "receives": "m"}\n',
    "spans.csv": "TraceID,SpanID,ParentID,PodName,StartTimeUnixNano,EndTimeUnixNano\nt,1,,a,1,4\nt,2,1,b,2,3\n",
    _HISTORY: (
        '{"type": "ok", "process": 0, "value": [["append", "x", 1], ["append", "y", 1]]}\n'
        '{"type": "ok", "process": 1, "value": [["r", "x", null], ["r", "y", [1]]]}\n'
        '{"type": "ok", "process": 2, "value": [["r", "x", [1]]]}\n'
    ),
}
"""The logs to import: one of each kind that has its own kernels. The history violates what is expected of it, so that the
search for cycles is compiled, too."""


def warm_up() -> None:
    """Import, judge and audit in separate processes, at the same time: Java writes the archive when it exits."""
    from quire.pipeline.class_archive import archive_for, make_archive
    from quire.pipeline.java import ensure_java
    from quire.simulation.config import SimulationConfig
    from quire.simulation.simulate import simulate

    archive = archive_for(ensure_java())
    archive.unlink(missing_ok=True)  # Java does not write one while it uses another.
    with Scratch.temporary("warming") as scratch:
        simulate(SimulationConfig(protocol="single-phase", members=3), scratch.path / _RUN)
        made = scratch.path / "classes.jsa"
        environment = {**os.environ, "SPARK_SUBMIT_OPTS": make_archive(made), "SPARK_LOCAL_DIRS": str(scratch.path)}
        words = [sys.executable, "-m", "quire.cli.warming", str(scratch.path)]
        started = [
            subprocess.Popen([*words, what], env=environment, stderr=subprocess.PIPE, text=True)  # noqa: S603
            for what in _USES
        ]
        complaints = [process.communicate()[1] for process in started]
        if any(process.returncode for process in started):
            raise RuntimeError(f"small imports, or audits of small runs, failed: {''.join(complaints)}")
        if made.exists():  # Not every Java can write one.
            archive.parent.mkdir(parents=True, exist_ok=True)
            beside = archive.with_suffix(f".{os.getpid()}")
            beside.write_bytes(made.read_bytes())
            beside.replace(archive)


def _import(folder: Path) -> None:
    for name in _LOGS:
        _imported(folder, name, "imported")


def _imported(folder: Path, name: str, why: str) -> Path:
    """The run that the log becomes."""
    from quire.pipeline.importing.importer import import_with
    from quire.pipeline.importing.request import ImportRequest
    from quire.pipeline.importing.tasks import IMPORT
    from quire.pipeline.tasks import run_here

    log, out = folder / why / name, folder / why / f"{name} as a run"
    log.parent.mkdir(exist_ok=True)
    log.write_text(_LOGS[name])
    import_with(run_here(IMPORT), [log], out, ImportRequest())
    return out


def _judge(folder: Path) -> None:
    """Judge a small run of each kind that has its own checks, and a history at every level of isolation; and two requests that
    two destinations begin in opposite orders, which none of these does."""
    import numpy as np

    from quire.model.orders import Guarantee
    from quire.pipeline.auditing.auditor import audit_here
    from quire.pipeline.auditing.conflicts import opposite_orders
    from quire.simulation.config import Crash, FaultConfig, SimulationConfig
    from quire.simulation.simulate import simulate

    runs = {name: SimulationConfig(protocol=name) for name in _SERVICES}
    runs["views"] = SimulationConfig(faults=FaultConfig(crashes=(Crash(2, 500),)))
    for name, config in runs.items():
        simulate(config, folder / name)
        audit_here(folder / name)
    levels = (Guarantee.READ_COMMITTED, Guarantee.READ_ATOMIC, Guarantee.TRANSACTIONAL_CAUSAL, Guarantee.SERIALISABLE)
    audit_here(_imported(folder, _HISTORY, "judged"), expect=levels)
    opposite_orders(
        np.array([0, 2, 4]), np.array([0, 1, 1, 0]), np.zeros(4, np.int64), np.zeros(2, np.int64), np.ones((1, 1, 1), np.bool_),
        2, np.ones(4, np.bool_),
    )  # fmt: skip


def _audit(folder: Path) -> None:
    """Audit the run in one piece and in segments, read and write a little, and wait until Java has exited."""
    from pyspark import SparkContext
    from pyspark.sql import functions as F  # noqa: N812

    from quire.pipeline.auditing.auditor import audit
    from quire.pipeline.session import session

    with session("local[2]") as spark:
        for segments in (1, 2):
            audit(spark, folder / _RUN, segments=segments)
        spark.range(100).write.parquet(str(folder / "rows"))
        spark.read.parquet(str(folder / "rows")).groupBy((F.col("id") % 3).alias("rest")).count().orderBy("rest").collect()
    gateway = SparkContext._gateway
    assert gateway is not None
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


_USES = {"import": _import, "judge": _judge, "audit": _audit}

if __name__ == "__main__":
    if sys.argv[1:]:
        _USES[sys.argv[2]](Path(sys.argv[1]))
    else:
        warm_up()
