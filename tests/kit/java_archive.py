"""An archive of the classes that Spark loads: with it, a Java that a test starts takes less than half as much of a processor.

It is made once for this folder, and kept beside the other caches. Java looks whether it fits the jars and itself, and does
without where it does not.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

CACHE = Path(__file__).parents[2] / ".cache" / "java"
_QUIET = "-Xlog:disable -Xlog:all=off"


def options() -> str:
    """What Java is to be told for the archive to be used; makes it, if there is none yet."""
    from quire.pipeline.java import ensure_java

    archive = CACHE / f"spark-{version('pyspark')}-{_named(ensure_java())}.jsa"
    if not archive.exists():
        _make(archive)
    return f"-XX:SharedArchiveFile={archive} -Xshare:auto {_QUIET}" if archive.exists() else ""


def _named(java: Path) -> str:
    return str(java.resolve()).strip("/").replace("/", "-")


def _make(archive: Path) -> None:
    """Let a Java of its own do a little of everything, and write down at its end what it has loaded. Tests run without, if that
    fails: they only take longer."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
        made = Path(folder) / "made.jsa"
        told = f"-XX:ArchiveClassesAtExit={made} -Djava.io.tmpdir={folder} {_QUIET}"
        environment = {**os.environ, "SPARK_SUBMIT_OPTS": told, "SPARK_LOCAL_DIRS": folder, "SPARK_LOCAL_IP": "127.0.0.1"}
        words = [sys.executable, "-m", "tests.kit.java_archive", folder]
        subprocess.run(words, env=environment, cwd=Path(__file__).parents[2], capture_output=True, check=False)
        if made.exists():
            made.replace(archive)


def _work(folder: Path) -> None:
    from pyspark.sql import SparkSession
    from pyspark.sql.functions import col

    from quire.pipeline.session import settings_for

    builder = SparkSession.builder.master("local[2]").config(map=settings_for("local[2]"))
    spark = builder.getOrCreate()
    rows = spark.range(100).withColumn("group", col("id") % 3)
    rows.write.parquet(str(folder / "rows"))
    read = spark.read.parquet(str(folder / "rows"))
    assert read.mapInArrow(lambda batches: batches, read.schema).groupBy("group").count().orderBy("group").count() == 3
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


if __name__ == "__main__":
    _work(Path(sys.argv[1]))
