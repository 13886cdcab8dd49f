"""A real Spark cluster on this machine, from the same package that Quire uses: a master, two workers, a Connect server."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pyspark

from quire.live.ports import free_ports
from quire.pipeline.java import ensure_java
from tests.kit.patience import PATIENCE_S

HOME = Path(pyspark.__file__).parent


class Cluster(NamedTuple):
    master: str
    """spark://…"""
    remote: str
    """sc://…, a server whose work the same workers do."""
    workers: int
    settings: Path
    """A folder with what a driver is to tell its executors, so that they start fast; for SPARK_CONF_DIR."""


_BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@contextmanager
def cluster(work: Path) -> Iterator[Cluster]:
    """Everything is stopped, and the processes are gone, when the block ends.

    The master and the workers live in the server's process, which saves the start of three. Executors are processes of their
    own, as everywhere.
    """
    (connect_port,) = free_ports(1)
    briefly = f"{_BRIEF} {os.environ.get('SPARK_SUBMIT_OPTS', '')}"
    conf = work / "conf"
    conf.mkdir()
    (conf / "spark-defaults.conf").write_text(f"spark.executor.extraJavaOptions {briefly}\n")
    settings = {
        "spark.connect.grpc.binding.port": str(connect_port),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.cores.max": "2",
        "spark.executor.cores": "1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.extraJavaOptions": _BRIEF,
        "spark.executor.extraJavaOptions": briefly,
    }
    options = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    # Slots and memory are what a worker offers, not what it takes; two drivers share these.
    with process(
        work, "connect", "spark-submit", "--class", "org.apache.spark.sql.connect.service.SparkConnectServer",
        "--master", "local-cluster[2,2,4096]", "--driver-memory", "1g", *options, "spark-internal",
    ) as log:  # fmt: skip
        wait_for(log, "Spark Connect server started")
        (master,) = set(re.findall(r"Starting Spark master at (spark://\S+)", log.read_text()))
        yield Cluster(master, f"sc://127.0.0.1:{connect_port}", 2, conf)


@contextmanager
def process(work: Path, name: str, program: str, *arguments: str) -> Iterator[Path]:
    """One of Spark's own programs, and the file to which it writes its log."""
    log = work / f"{name}.log"
    environment = os.environ | {
        "JAVA_HOME": str(ensure_java()), "SPARK_HOME": str(HOME), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_DIRS": str(work),
        "SPARK_DAEMON_JAVA_OPTS": _BRIEF, "PYSPARK_PYTHON": sys.executable,
    }  # fmt: skip
    with log.open("wb") as file:
        started = subprocess.Popen(
            [HOME / "bin" / program, *arguments], stdout=file, stderr=file, env=environment, start_new_session=True
        )  # fmt: skip
    try:
        yield log
    finally:
        os.killpg(started.pid, signal.SIGTERM)
        try:
            started.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(started.pid, signal.SIGKILL)
            started.wait()


def wait_for(log: Path, words: str, times: int = 1) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while log.read_text(errors="replace").count(words) < times:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{log.name} never said {words!r}:\n{log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.05)
