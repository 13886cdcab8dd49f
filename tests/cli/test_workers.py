"""Who performs the tasks of a command: Spark where it was asked for, and where there is much to do."""

from __future__ import annotations

import gzip
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from quire.cli.app import app
from quire.cli.spark import LOCAL
from quire.cli.workers import workers
from quire.pipeline import session as sessions
from tests.audit.traces import plain, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUN = plain("s0>01 d0:0", "d0:0")


@pytest.mark.usefixtures("command")
@pytest.mark.parametrize(
    ("where", "small", "on_spark"),
    [(None, True, False), (None, False, True), ("local[2]", True, True), ("local[2]", False, True)],
)
def test_spark_is_used_if_it_is_asked_for_or_needed(where: str | None, small: bool, on_spark: bool) -> None:
    with workers(where, small=small, doing="nothing") as found:
        assert (found.spark is not None) == on_spark


@pytest.mark.parametrize(
    "words", [["export", "run", "--out", "log"], ["causality", "run"], ["import", "logs.jsonl", "--out", "imported"]]
)
def test_what_is_large_is_given_to_spark(
    command: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    """Here, on the session that is there; what comes of it is the same."""
    write(tmp_path / "run", RUN)
    (tmp_path / "logs.jsonl").write_text('{"host":"a"}\n{"host":"b"}\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("quire.cli.workers.FEW_EVENTS", 0)
    monkeypatch.setattr("quire.cli.workers.FEW_LOG_BYTES", 0)
    asked: list[str] = []
    there = sessions.session

    def session(master: str) -> AbstractContextManager[SparkSession]:
        asked.append(master)
        return there(master)

    monkeypatch.setattr(sessions, "session", session)

    done = command.invoke(app, words)

    assert (done.exit_code, asked) == (0, [LOCAL]), done.exception


def test_a_small_log_is_imported_here_though_it_is_packed(
    command: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "logs.jsonl.gz").write_bytes(gzip.compress(b'{"host":"a"}\n'))
    monkeypatch.setattr(sessions, "session", None)

    done = command.invoke(app, ["import", str(tmp_path / "logs.jsonl.gz"), "--out", str(tmp_path / "run")])

    assert done.exit_code == 0, done.exception
