"""A Spark session for the command line. Libraries take the session that their caller has.

A person who runs one command should read Quire's words only, so the JVM is started with its standard error turned
into a file, which is shown when Spark does not start and forgotten otherwise.
"""

from __future__ import annotations

import os
import re
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

from quire.model.errors import BadInput
from quire.pipeline.java import ensure_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS = {
    "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": "2",  # Nothing here shuffles more than a handful of rows.
    "spark.ui.enabled": "false",  # Nobody watches a command that takes seconds, and it costs a port and half a second.
    "spark.ui.showConsoleProgress": "false",  # It would write over Quire's own progress.
    "spark.driver.memory": "2g",
    "spark.python.worker.reuse": "true",  # A new worker would load the kernels again.
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "false",
}

_ON_THE_SERVER_TOO = {
    # A stream writes three small files a micro-batch to its checkpoint. Spark's usual way starts a process of the shell for
    # each of them, to look for symbolic links, and takes 50 ms; this one renames them just as atomically in 15.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
"""What a client of a Connect server can ask for its own session."""

_ON_THIS_MACHINE = {
    "spark.driver.host": "localhost",  # A laptop without a network resolves nothing else.
    "spark.driver.bindAddress": "127.0.0.1",
}
"""Workers elsewhere must find the driver, so on a cluster Spark is left to choose, or SPARK_LOCAL_IP to say."""


_CONNECT_PORT = 15_002
_ANSWER_S = 5.0

_BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""The JVM only hands out tasks, so it need not optimise itself: that halves the time to the first result."""


@contextmanager
def session(master: str = "local[*]", *, brief: bool = True) -> Iterator[SparkSession]:
    """A session at this master (`local[2]`, `spark://…`; `sc://…` for Spark Connect), stopped when the block ends.

    A `brief` one starts fast; for long work inside the JVM, such as a sort, it is better not to be. Raises BadInput, in
    one sentence, where Spark does not start, or nobody answers at the address.
    """
    remote = master.startswith("sc://")
    _check_answer(master)
    if remote:
        _check_connect()
    else:
        ensure_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    settings = _SETTINGS | _ON_THE_SERVER_TOO | ({"spark.driver.extraJavaOptions": _BRIEF} if brief else {})
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        settings |= _ON_THIS_MACHINE
    spark = _start(master, remote, _ON_THE_SERVER_TOO if remote else settings)
    try:
        yield spark
    finally:
        with _stderr_in_file():
            spark.stop()


def _check_answer(master: str) -> None:
    """Spark would try for a minute, and a Connect client for ten, to reach a server that is not there."""
    scheme, _, rest = master.partition("://")
    if scheme not in ("spark", "sc"):
        return
    problem = f"{master} is no address"
    for address in re.split(r"[/;?]", rest, maxsplit=1)[0].split(","):
        host, _, port = address.rpartition(":") if ":" in address else (address, "", str(_CONNECT_PORT))
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER_S).close()
        except (OSError, ValueError, OverflowError) as error:
            problem = f"{address} does not answer: {getattr(error, 'strerror', None) or error}"
        else:
            return
    raise BadInput(f"Spark did not start at {master}: {problem}")


def _check_connect() -> None:
    for module in ("grpc", "grpc_status", "google.rpc", "zstandard"):
        try:
            import_module(module)
        except ImportError:
            raise BadInput("Spark Connect needs more than is installed: pip install 'quire[connect]'") from None


def _start(master: str, remote: bool, settings: dict[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("quire")
    builder = builder.remote(master) if remote else builder.master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    with _stderr_in_file() as said:
        try:
            return builder.getOrCreate()
        except Exception as error:  # noqa: BLE001 - py4j, gRPC and Spark each raise their own.
            problem = _first_sentence(said(), error)
    raise BadInput(f"Spark did not start at {master}: {problem}")


def _first_sentence(log: str, error: Exception) -> str:
    """What went wrong, from the JVM's words or the exception's, in one line."""
    lines = [line.strip() for text in (str(error), log) for line in text.splitlines()]
    for line in lines:
        for mark in ("Exception: ", "Error: ", "details = "):
            if mark in line:
                return line.split(mark, 1)[1].strip(' "')
    return next((line for line in lines if line), type(error).__name__)


@contextmanager
def _stderr_in_file() -> Iterator[_Reader]:
    """Turn file descriptor 2 into a file, for this process and the ones that it starts meanwhile."""
    sys.stderr.flush()
    saved = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield _Reader(file.fileno())
        finally:
            sys.stderr.flush()
            os.dup2(saved, 2)
            os.close(saved)


class _Reader:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __call__(self) -> str:
        return os.pread(self._descriptor, 65_536, 0).decode(errors="replace")
