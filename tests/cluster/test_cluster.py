"""Every command that uses Spark on a real cluster of two workers, and over Spark Connect."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from quire.cli.app import app
from quire.pipeline.causality.tasks import CAUSALITY
from quire.pipeline.causality.times import follow
from quire.pipeline.exporting import EXPORT, export_with
from quire.pipeline.importing.importer import import_with
from quire.pipeline.importing.request import ImportRequest
from quire.pipeline.importing.tasks import IMPORT
from quire.pipeline.tasks import run_here
from quire.simulation.config import SimulationConfig, WorkloadConfig
from quire.simulation.simulate import simulate
from tests.causality.test_oracle import all_clocks
from tests.cli.commands import Command
from tests.cluster.standalone import Cluster, cluster
from tests.importing.kit import contents
from tests.kit.effort import cases
from tests.kit.patience import PATIENCE_S

GRID = """
title = "Small"

[[grid]]
protocol = ["single-phase", "fifo"]
members = 3
load = 50.0
messages = 10
seeds = 2
"""


@pytest.fixture(scope="module")
def spark_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run to audit and to follow, its log to import, and events to order."""
    work = tmp_path_factory.mktemp("inputs")
    simulate(SimulationConfig(members=4, seed=2, workload=WorkloadConfig(messages=200)), out=work / "run")
    export_with(run_here(CAUSALITY), run_here(EXPORT), work / "run", work / "log.txt")
    (work / "events").mkdir()
    for number in range(6):
        clocks = range(number * 100, number * 100 + 100)
        table = pa.table({"source": ["ab"[clock % 2] for clock in clocks], "clock": list(clocks)})
        path = work / "events" / f"{number}.parquet"
        pq.write_table(table, path)
        os.utime(path, (1_000_000 + number, 1_000_000 + number))  # Spark takes files by their times.
    (work / "grid.toml").write_text(GRID)
    return work


def commands(inputs: Path, out: Path) -> list[list[str]]:
    """Every command that uses Spark, the audit first."""
    stream = ["--stream", "--sources", "a,b", "--idle", "wait", "--once", "--end", "--files-per-batch", "2"]
    return [
        ["audit", str(inputs / "run"), "--segments", "3", "--json"],
        ["order", str(inputs / "events"), str(out / "batch"), "--json"],
        ["order", str(inputs / "events"), str(out / "stream"), *stream, "--json"],
        ["order", str(inputs / "run"), str(out / "causal"), "--causal", "--json"],
        ["causality", str(inputs / "run"), "--out", str(out / "times"), "--segments", "3", "--json"],
        ["import", str(inputs / "log.txt"), "--out", str(out / "imported"), "--json"],
        ["export", str(inputs / "run"), "--format", "shiviz", "--out", str(out / "exported.txt")],
        ["sweep", str(inputs / "grid.toml"), "--out", str(out / "sweep"), "--json"],
    ]


def perform(cluster: Cluster, kind: str, words: list[list[str]]) -> list[dict[str, Any]]:
    place = [f"--{kind}", getattr(cluster, kind)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.cluster.commands", json.dumps([command + place for command in words])],
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
        env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_CONF_DIR": str(cluster.settings)},
    )  # fmt: skip
    assert done.returncode == 0, "\n".join(line for line in done.stderr.splitlines() if not line.startswith("\tat "))
    return [json.loads(line) for line in done.stdout.splitlines()]


def read(directory: Path) -> list[dict[str, Any]]:
    return [row for path in sorted(directory.glob("*.parquet")) for row in pq.read_table(path).to_pylist()]


def test_the_audit_runs_on_the_workers_of_a_cluster(spark_cluster: Cluster, inputs: Path, tmp_path: Path) -> None:
    (audited,) = perform(spark_cluster, "master", commands(inputs, tmp_path)[:1])
    assert audited["code"] == 0
    assert json.loads(audited["said"])["verdict"] == "holds"


@pytest.mark.parametrize("kind", cases(["remote"], ["master"]))
def test_all_commands_run_where_they_are_told(spark_cluster: Cluster, inputs: Path, tmp_path: Path, kind: str) -> None:
    done = perform(spark_cluster, kind, commands(inputs, tmp_path))

    assert [said["code"] for said in done] == [0] * 8, done
    audited, ordered, streamed, causal, followed, imported, exported, swept = done
    verdict = json.loads(audited["said"])
    assert {
        name: check["verdict"] for name, check in verdict["checks"].items() if name in verdict["expected"]
    } == dict.fromkeys(verdict["expected"], "holds")
    assert json.loads(streamed["said"]) == {
        "out": str(tmp_path / "stream"), "left": 600, "waiting": 0, "rejected": 0, "omitted": 0, "missing": 0,
        "micro_batches": 3,
    }  # fmt: skip
    assert json.loads(ordered["said"])["events"] == 600
    for out in (tmp_path / "stream", tmp_path / "batch"):
        assert [(row["clock"], row["position"]) for row in read(out)] == [(at, at) for at in range(600)]
    assert {name: json.loads(swept["said"])[name] for name in ("cells", "failed")} == {"cells": 4, "failed": 0}

    times = all_clocks(follow(run_here(CAUSALITY), inputs / "run", segments=1))
    assert {(row["process"], row["pos"]): tuple(row["clock"]) for row in read(tmp_path / "times")} == times
    assert json.loads(followed["said"])["out"] == str(tmp_path / "times")
    by_past = sorted(times, key=lambda place: (sum(times[place]), place))
    assert [(row["process"], row["pos"]) for row in read(tmp_path / "causal")] == by_past
    assert json.loads(causal["said"])["by"] == "causal"

    import_with(run_here(IMPORT), [inputs / "log.txt"], tmp_path / "expected", ImportRequest())
    assert contents(tmp_path / "imported") == contents(tmp_path / "expected")
    assert json.loads(imported["said"])["executions"][0]["events"] == len(times)
    assert (tmp_path / "exported.txt").read_bytes() == (inputs / "log.txt").read_bytes(), exported


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds the processes in /proc")
@pytest.mark.parametrize("kind", cases(["remote"], ["master"]))
def test_a_stream_that_is_interrupted_stops_there_too_and_goes_on_elsewhere(
    spark_cluster: Cluster, command: CliRunner, inputs: Path, tmp_path: Path, kind: str
) -> None:
    """Were it still running there, two would write to one directory. How far it is, that directory says."""
    out = tmp_path / "out"
    words: list[str | Path] = ["order", inputs / "events", out, "--stream", "--sources", "a,b", "--idle", "wait"]
    place = [f"--{kind}", getattr(spark_cluster, kind)]
    with Command(*words, *place, temporary=tmp_path / "temporary") as real:
        real.wait_for_file(out, "part-*")
        real.interrupt(group=True)
        code, printed, complaints = real.end()
        real.wait_until_alone()

    assert (code, printed) == (130, ""), complaints
    assert complaints.startswith("quire: stopped; ")
    assert complaints.endswith("; the same command resumes there\nquire: interrupted\n")
    assert "Traceback" not in complaints
    resumed = command.invoke(app, [*map(str, words), "--once", "--end", "--json"])
    assert (resumed.exit_code, json.loads(resumed.stdout)["left"]) == (0, 600), resumed.exception
    assert [(row["clock"], row["position"]) for row in read(out)] == [(at, at) for at in range(600)]
