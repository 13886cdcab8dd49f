"""Spark sessions for the command line; library functions take the caller's session instead.

The user of a command should see only Quire's output, so the JVM is started with its standard error redirected to a file, which
is used to explain why Spark did not start, and discarded otherwise.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from socketserver import BaseServer
from typing import TYPE_CHECKING, Any

from quire.model.errors import BadInput, CannotWrite, SparkFailed
from quire.pipeline.class_archive import use_archive
from quire.pipeline.java import ensure_java
from quire.pipeline.jvm import Interruptible, Jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NAME = "quire"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"

_SETTINGS: dict[str, Any] = {
    "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": "2",  # Nothing here shuffles more than a handful of rows.
    "spark.ui.enabled": "false",  # Nobody watches a command that takes seconds, and it costs a port and half a second.
    "spark.ui.showConsoleProgress": "false",  # It would write over Quire's own progress.
    "spark.driver.memory": "2g",
    "spark.python.worker.reuse": "true",  # A new worker would load the kernels again.
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "false",
}

_ON_THE_SERVER_TOO: dict[str, Any] = {
    # A stream writes three small files per micro-batch to its checkpoint. Spark's default starts a shell process for each, to
    # look for symbolic links, and takes 50 ms; this one renames them just as atomically in 15.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
"""Settings that also a client of a Connect server can make for its session."""

_ON_THIS_MACHINE = {
    "spark.driver.host": "localhost",  # A laptop without a network resolves nothing else.
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.python.daemon.module": "quire.pipeline.daemon",
}
"""Only for local masters: on a cluster, workers must reach the driver, so its address is left to Spark or SPARK_LOCAL_IP."""

_NEEDED_HERE = ("pyspark.testing.utils", "quire.pipeline.tasks", "quire.pipeline.compiled")
"""The modules that this process imports while Java starts. Spark's client imports the first, with pandas, on its first call."""


_FULL = re.compile(r"No space left on device|Disk quota exceeded|File too large")

_CONNECT_PORT = 15_002
_ANSWER_S = 5.0

_BRIEF = {
    _JAVA_OPTIONS: "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
}
"""The JVM only hands out tasks, so it need not optimise or compile: that halves the time to the first result."""


@contextmanager
def session(master: str = "local[*]", *, brief: bool = True) -> Iterator[SparkSession]:
    """A session at this master (`local[2]`, `spark://…`; `sc://…` for Spark Connect), stopped when the block ends.

    A `brief` session starts fast, but is not suited to long work inside the JVM, such as a sort. Raises BadInput, with a
    message of one sentence, if Spark does not start or nobody answers at the address; SparkFailed if it fails later. On Ctrl-C,
    everything that was started for the session is ended before the block is interrupted.
    """
    remote = master.startswith("sc://")
    _check_answer(master)
    if remote:
        _check_connect()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    with _connect(master) if remote else _launch(master, settings_for(master, brief=brief)) as spark:
        yield spark


def settings_for(master: str, *, brief: bool = True) -> dict[str, Any]:
    """The settings for a Spark that is started here."""
    settings = _SETTINGS | _ON_THE_SERVER_TOO | (_BRIEF if brief else {})
    told = [settings.get(_JAVA_OPTIONS, ""), use_archive(ensure_java())]
    settings[_JAVA_OPTIONS] = " ".join(filter(None, told))
    return settings | _ON_THIS_MACHINE if master.startswith("local") else settings


@contextmanager
def _launch(master: str, settings: dict[str, Any]) -> Iterator[SparkSession]:
    """A session with its own Java process on this machine, which is ended with the block, however the block ends."""
    threading.Thread(target=_import_meanwhile).start()
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    jvm = Jvm()

    def end() -> None:
        _hush()
        jvm.end()

    with Interruptible(end) as interruptible:
        with _starting(master), jvm.adopting(interruptible):
            SparkContext.getOrCreate(SparkConf().setMaster(master).setAppName(_NAME).setAll(list(settings.items())))
            interruptible.again()
            spark = SparkSession.builder.config(map=settings).getOrCreate()
        try:
            with _spark_failures():
                yield spark
        finally:
            if not interruptible.interrupted:
                with _stderr_in_file():
                    spark.stop()


def _import_meanwhile() -> None:
    """Import the modules in a non-daemon thread: an interpreter that exits while compiled modules are loading would abort."""
    for module in _NEEDED_HERE:
        with suppress(ImportError):  # Reported where the module is used.
            import_module(module)


def _hush() -> None:
    """Suppress the reports about connections that are cut when Java ends. PySpark's threads print a traceback for each, in
    three ways; this process is ending, and prints nothing else that way."""
    logging.disable()
    threading.excepthook = lambda _: None
    BaseServer.handle_error = lambda *_: None  # type: ignore[method-assign]


@contextmanager
def _connect(master: str) -> Iterator[SparkSession]:
    """A session at a Connect server; its jobs are cancelled when the command is interrupted."""
    from pyspark.sql import SparkSession

    with _starting(master):
        spark = SparkSession.builder.appName(_NAME).remote(master).config(map=_ON_THE_SERVER_TOO).getOrCreate()

    def cancel() -> None:
        with suppress(Exception):  # The server may be gone, too.
            spark.interruptAll()

    try:
        with Interruptible(cancel), _spark_failures():
            yield spark
    finally:
        with _stderr_in_file():
            spark.stop()


def _check_answer(master: str) -> None:
    """Check that a server answers: Spark would try for a minute, and a Connect client for ten, to reach a missing one."""
    scheme, _, rest = master.partition("://")
    if scheme not in ("spark", "sc"):
        return
    problem = f"{master} is not an address"
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
            raise BadInput("Spark Connect needs more packages: pip install 'quire[connect]'") from None


@contextmanager
def _starting(master: str) -> Iterator[None]:
    """Turn errors in this block into one sentence, and hide what Spark prints meanwhile."""
    with _stderr_in_file() as said:
        try:
            yield
            return
        except Exception as error:  # noqa: BLE001 - py4j, gRPC and Spark each raise their own.
            problem = _first_sentence(said(), error)
    raise BadInput(f"Spark did not start at {master}: {problem}")


@contextmanager
def _spark_failures() -> Iterator[None]:
    """Turn a failure of Spark itself into one sentence."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        if _FULL.search(str(error)):
            raise CannotWrite(f"Spark could not write its output: {reason_of_failure(error)}") from error
        raise SparkFailed(f"Spark failed: {reason_of_failure(error)}") from error


def reason_of_failure(error: Exception) -> str:
    """Why Spark failed, in one line: the system's message if a disk is full, else the beginning of the error."""
    text = str(error).strip()
    if full := _FULL.search(text):
        return full[0]
    return next(iter(text.splitlines()), type(error).__name__)


def _first_sentence(log: str, error: Exception) -> str:
    """What went wrong, in one line, from the JVM's output or the exception."""
    lines = [line.strip() for text in (str(error), log) for line in text.splitlines()]
    for line in lines:
        for mark in ("Exception: ", "Error: ", "details = "):
            if mark in line:
                return line.split(mark, 1)[1].strip(' "')
    return next((line for line in lines if line), type(error).__name__)


@contextmanager
def _stderr_in_file() -> Iterator[_Reader]:
    """Redirect file descriptor 2 to a file, for this process and those that it starts meanwhile."""
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
