"""Have everything ready for the first use: `python -m quire.cli.warming`, once after an installation.

It audits a small run on Spark. That compiles the loops of the audit, whose machine code is kept, and has Java write down the
classes that it has loaded (`pipeline/class_archive`). Whoever does not do this waits some seconds longer: for the loops at the
first audit, for the classes at each.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from quire.files.scratch import Scratch

_RUN = "run"


def warm_up() -> None:
    """Audit a small run in a process of its own, because Java writes the archive when it ends, and this one goes on."""
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
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode:
            raise RuntimeError(f"the audit of a small run failed: {done.stderr}")
        if made.exists():  # Not every Java can write one.
            archive.parent.mkdir(parents=True, exist_ok=True)
            beside = archive.with_suffix(f".{os.getpid()}")
            beside.write_bytes(made.read_bytes())
            beside.replace(archive)


def _audit(folder: Path) -> None:
    """Audit the run whole and in pieces, read and write a little, and wait until Java has ended."""
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


if __name__ == "__main__":
    if sys.argv[1:]:
        _audit(Path(sys.argv[1]))
    else:
        warm_up()
