"""Warms the caches for the first use: run `python -m quire.cli.warming` once after an installation.

It imports some small logs, and audits a small run on Spark. That compiles the kernels of both, whose machine code is cached,
and makes Java write an archive of the classes that it has loaded (`pipeline/class_archive`). Without this, some seconds are
lost: for the kernels on the first import and the first audit, for the classes on each.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from quire.files.scratch import Scratch

_RUN = "run"
_LOGS = {
    "hosts.log": 'a {"a": 1}\nsends\nb {"a": 1, "b": 1}\nreceives\n',
    "clocks.csv": 'host,clock,event\na,"{""a"": 1}",sends\nb,"{""a"": 1, ""b"": 1}",receives\n',
    "names.jsonl": '{"host": "a", "sends": "m"}\n{"host": "b", "receives": "m"}\n',
    "spans.csv": "TraceID,SpanID,ParentID,PodName,StartTimeUnixNano,EndTimeUnixNano\nt,1,,a,1,4\nt,2,1,b,2,3\n",
}
"""The logs to import: one of each kind that has its own kernels."""


def warm_up() -> None:
    """Import and audit in separate processes, at the same time: Java writes the archive when it exits."""
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
            raise RuntimeError(f"small imports, or the audit of a small run, failed: {''.join(complaints)}")
        if made.exists():  # Not every Java can write one.
            archive.parent.mkdir(parents=True, exist_ok=True)
            beside = archive.with_suffix(f".{os.getpid()}")
            beside.write_bytes(made.read_bytes())
            beside.replace(archive)


def _import(folder: Path) -> None:
    from quire.pipeline.importing.importer import import_with
    from quire.pipeline.importing.request import ImportRequest
    from quire.pipeline.importing.tasks import IMPORT
    from quire.pipeline.tasks import run_here

    for name, text in _LOGS.items():
        (folder / name).write_text(text)
        import_with(run_here(IMPORT), [folder / name], folder / f"{name} imported", ImportRequest())


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


_USES = {"import": _import, "audit": _audit}

if __name__ == "__main__":
    if sys.argv[1:]:
        _USES[sys.argv[2]](Path(sys.argv[1]))
    else:
        warm_up()
