"""What all tests share: one Spark session, because starting one takes longer than most tests."""

from __future__ import annotations

import gc
import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from typer.testing import CliRunner
from xdist.scheduler import LoadFileScheduling

from quire.cli.warming import warm_up
from quire.pipeline.class_archive import use_archive
from quire.pipeline.java import ensure_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from xdist.remote import Producer
    from xdist.scheduler import Scheduling


# A shell lets what it runs in the background ignore Ctrl-C, and nohup a terminal's end; so would all processes that tests start
# and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


# How long an example takes says nothing on a machine that does other things, too.
settings.register_profile("quire", deadline=None, report_multiple_bugs=False, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("quire")


FIRST = (
    "tests/cluster", "tests/ordering", "tests/cli", "tests/bench", "tests/packaging",
    "tests/live/test_hosts.py", "tests/transactions", "tests/views", "tests/exhaustive", "tests/faults",
    "tests/audit", "tests/importing", "tests/live", "tests/simulation",
)  # fmt: skip
"""What takes longest, so that no worker is left with it when the others are done. Whole files go to one worker."""


SESSIONS = 2
"""How many workers run tests on Spark. A session is as expensive as many tests on it, and fast only after a while."""


def pytest_configure(config: pytest.Config) -> None:
    """Before there are any workers, who take this over: let Java start fast."""
    gc.disable()  # Until everything is collected: what is imported until then stays, and looking through it takes seconds.
    if not hasattr(config, "workerinput") and config.getoption("numprocesses", default=None):
        if not use_archive(ensure_java()):
            warm_up()
        # For all Java processes that tests start: none of them lives long enough for optimised code to pay off.
        os.environ.setdefault("SPARK_SUBMIT_OPTS", f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {use_archive(ensure_java())}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def rank(item: pytest.Item) -> int:
        return next((index for index, start in enumerate(FIRST) if item.nodeid.startswith(start)), len(FIRST))

    items.sort(key=rank)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling | None:
    return FilesAndSessions(config, log) if config.getvalue("dist") == "loadfile" else None


class FilesAndSessions(LoadFileScheduling):  # type: ignore[misc]  # It has no types.
    """Whole files go to one worker, and all files whose tests use the session to few workers, each of which has one."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        super().__init__(config, log)
        files = sorted(Path(__file__).parent.rglob("test_*.py"))
        on_spark = [path for path in files if re.search(r"\b(spark: SparkSession|command: CliRunner)\b", path.read_text())]
        # Areas stay together: by and large, the first half takes as long as the second.
        turns = {path: at * SESSIONS // len(on_spark) for at, path in enumerate(on_spark)}
        self._sessions = {str(path.relative_to(config.rootpath)): turn for path, turn in turns.items()}

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return f"session {self._sessions[file]}" if file in self._sessions else file


def pytest_xdist_auto_num_workers() -> int:
    """Twice as many as there are cores: half of the time a test waits for a process to start, or for a timeout."""
    return 2 * (os.cpu_count() or 1)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local session with the settings of the command line, started when the first test asks for it."""
    from quire.pipeline.session import session

    with session("local[2]") as started:
        yield started


@pytest.fixture
def command(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    """Commands in this process, on the session that is there."""

    @contextmanager
    def session(master: str, *, brief: bool = True) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr("quire.pipeline.session.session", session)
    return CliRunner()
