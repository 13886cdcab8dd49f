"""`quire order --stream` as a person and a script meet it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from quire.cli.app import app
from quire.simulation.config import SimulationConfig, WorkloadConfig
from quire.simulation.simulate import simulate

if TYPE_CHECKING:
    pass

TOTAL = ["--stream", "--once", "--sources", "a,b", "--idle", "wait"]


def lines(directory: Path, name: str, *rows: str) -> None:
    directory.mkdir(exist_ok=True)
    (directory / f"{name}.jsonl").write_text("".join(row + "\n" for row in rows))


def order(command: CliRunner, *arguments: str | Path) -> dict[str, object]:
    result = command.invoke(app, ["order", *map(str, arguments), "--json"])
    assert result.exit_code == 0, result.exception
    assert result.stderr == ""
    said: dict[str, object] = json.loads(result.stdout)
    return said


def test_the_same_command_goes_on_and_says_what_it_did(command: CliRunner, tmp_path: Path) -> None:
    events, out = tmp_path / "in", tmp_path / "out"
    lines(events, "1", '{"source": "a", "clock": 1}', '{"source": "b", "clock": 4}', "not JSON")
    assert order(command, events, out, *TOTAL) == {
        "out": str(out), "left": 1, "waiting": 1, "rejected": 1, "omitted": 0, "missing": 0, "micro_batches": 1,
    }  # fmt: skip

    lines(events, "2", '{"source": "a", "clock": 3}', '{"source": "a", "clock": 9}', '{"source": "b", "clock": 4}')
    said = order(command, events, out, *TOTAL, "--end")

    assert said == {"out": str(out), "left": 4, "waiting": 0, "rejected": 2, "omitted": 0, "missing": 0, "micro_batches": 2}
    parts = [pq.read_table(path) for path in sorted(out.glob("part-*"))]
    assert [clock for part in parts for clock in part["clock"].to_pylist()] == [1, 3, 4, 9]
    rejected = [row for path in sorted(out.glob("_rejected/part-*")) for row in pq.read_table(path).to_pylist()]
    assert [(row["_corrupt_record"], row["reason"][:16]) for row in rejected] == [
        ("not JSON", "it has no source"), (None, "it is late: 4 is"),
    ]  # fmt: skip


def test_a_run_is_ordered_by_its_processes_logical_time(command: CliRunner, tmp_path: Path) -> None:
    simulate(SimulationConfig(members=3, seed=1, workload=WorkloadConfig(messages=10)), out=tmp_path / "run")

    said = order(command, tmp_path / "run", tmp_path / "out", "--stream", "--once", "--end", "--idle", "wait")

    rows = [row for path in sorted((tmp_path / "out").glob("part-*")) for row in pq.read_table(path).to_pylist()]
    assert len(rows) == said["left"] == pq.read_table(tmp_path / "run" / "trace").num_rows
    assert [(row["lamport"], row["process"]) for row in rows] == sorted((row["lamport"], row["process"]) for row in rows)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--stream"], "a stream needs --sources a,b,c"),
        (["--stream", "--sources", "a"], "say what to do about silent sources: --idle wait, or --idle SECONDS"),
        (["--stream", "--sources", "a", "--idle", "never"], "--idle is 'wait' or a number of seconds, not 'never'"),
        (["--stream", "--sources", "a", "--idle", "wait", "--end"], "so it needs --once"),
        (["--stream", "--sources", "a", "--idle", "wait", "--force"], "--force cannot be combined with --stream"),
        ([*TOTAL, "--omit-superseded"], "--omit-superseded needs --within CLOCKS"),
        ([*TOTAL, "--within", "3"], "--within is for --omit-superseded"),
        ([*TOTAL, "--omit-superseded", "--within", "-1"], "0 or more"),
        ([*TOTAL, "--omit-superseded", "--within", "3"], "the events have no column 'object'"),
        (["--stream", "--sources", "a", "--causal", "--omit-superseded"], "needs total order"),
        (["--within", "3"], "--within is for --stream"),
        (["--stream", "--sources", "a", "--idle", "wait", "--to", "csv"], "--to must be parquet or json, not 'csv'"),
        (["--stream", "--sources", "a", "--causal", "--idle", "wait"], "are for total order"),
        (["--idle", "wait"], "--idle is for --stream"),
        ([*TOTAL, "--clock", "when"], "the events have no column 'when'"),
        ([*TOTAL, "--schema", "nonsense("], "cannot be read"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(
    command: CliRunner, tmp_path: Path, arguments: list[str], sentence: str
) -> None:  # fmt: skip
    lines(tmp_path / "in", "1", '{"source": "a", "clock": 1}')

    result = command.invoke(app, ["order", str(tmp_path / "in"), str(tmp_path / "out"), *arguments])

    assert type(result.exception).__name__ == "BadInput"
    assert sentence in str(result.exception)
    assert "\n" not in str(result.exception)
    assert not (tmp_path / "out").exists()


def test_places_that_cannot_be_are_refused(command: CliRunner, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    lines(tmp_path / "in", "1", '{"source": "a", "clock": 1}')
    (tmp_path / "file").write_text("")
    for events, out, sentence in (
        ("empty", "out", "holds no .parquet or .json files yet"),
        ("file", "out", "is a file; a stream is a directory"),
        ("nothing", "out", "is neither a run nor a directory in which one is being recorded"),
        ("in", "file", "is not a directory"),
        ("in", "in", "holds no order to continue"),
    ):
        result = command.invoke(app, ["order", str(tmp_path / events), str(tmp_path / out), *TOTAL])
        assert type(result.exception).__name__ == "BadInput", events
        assert sentence in str(result.exception)
