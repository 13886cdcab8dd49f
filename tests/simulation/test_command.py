"""`quire simulate` as people and programs use it: in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from quire.cli.app import app
from quire.model.errors import BadInput
from quire.trace.store import read_info
from tests.kit.files import content
from tests.kit.patience import PATIENCE_S


def quire(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from quire.cli.main import main; main()", "simulate", *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


def test_json_says_everything_and_nothing_else_is_on_stdout(tmp_path: Path) -> None:
    out = tmp_path / "run"
    group = "--protocol single-phase --option acks=economical --members 5 --messages 200 --senders 0,3 --interval 50"
    network = "--delay constant:10 --batch 1 --seed 7 --reorder --loss 0.1"
    done = quire(*group.split(), *network.split(), "--out", str(out), "--json")
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    result = json.loads(done.stdout)
    assert {
        "run", "protocol", "options", "members", "messages", "deliveries", "packets", "packets_point_to_point", "latency",
        "header_bytes", "simulated_ms", "wall_s", "digest", "trace",
    } <= result.keys()  # fmt: skip
    assert (result["messages"], result["deliveries"], result["options"]["acks"]) == (400, 2000, "economical")
    assert result["packets"]["multicasts"] == result["packets"]["GOP"] + result["packets"]["ACK"]
    for end in ("origin", "remote"):
        assert {"p50", "p99", "max"} <= result["latency"][end].keys()
    assert result["trace"] == str(out)
    assert read_info(out).run == result["run"]


def test_a_person_gets_a_table_and_the_next_command(tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = quire("--messages", "5", "--out", str(out))
    assert done.returncode == 0, done.stderr
    assert f"quire audit {out}" in done.stdout
    assert "packets per message" in done.stdout


def test_an_incomplete_run_is_kept_and_says_so(tmp_path: Path) -> None:
    done = quire("--loss", "0.2", "--links", "raw", "--json", "--out", str(tmp_path / "run"))
    assert done.returncode == 0
    assert json.loads(done.stdout)["complete"] is False
    assert "incomplete" in done.stderr
    assert read_info(tmp_path / "run").outcome.complete is False


def test_an_existing_run_is_replaced_only_by_force(tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert quire("--messages", "5", "--out", str(out)).returncode == 0
    before = content(out)
    refused = quire("--messages", "6", "--out", str(out))
    assert refused.returncode == 2
    assert "exists already" in refused.stderr
    assert content(out) == before
    assert quire("--messages", "6", "--out", str(out), "--force").returncode == 0
    assert content(out) != before


WRONG = [
    "--protocol nonsense", "--option acks=loud", "--option volume=11", "--option acks", "--members 0", "--members -3",
    "--members 99999999999999999999", "--members x", "--messages 0", "--messages -1",
    "--messages 99999999999999999999999", "--senders 9", "--senders 0,0", "--senders x", "--interval nan",
    "--interval -5", "--interval 1e300", "--spacing odd", "--burst 0", "--batch 0", "--batch 99999999", "--size -1",
    "--size 9999999999", "--mode lazy", "--delay warp:9", "--delay constant:nan", "--loss nan", "--loss 1",
    "--loss -0.1", "--duplicate 1.5", "--links good", "--crash 1", "--crash 9@10", "--crash 1@5,1@6",
    "--crash 0@1 --crash 1@1 --crash 2@1", "--detect -1", "--pause 1@x+5",
    "--pause 1@5+9 --pause 1@7+1", "--partition 0/0@1+1", "--partition 0@1+1",
    "--seed -1", "--seed 99999999999999999999", "--no-such-thing",
]  # fmt: skip


def test_bad_input_is_refused_with_code_2_and_leaves_nothing_behind(tmp_path: Path) -> None:
    for wrong in WRONG:
        done = CliRunner().invoke(app, ["simulate", *wrong.split(), "--out", str(tmp_path / "run")])
        # Typer ends by itself on arguments that it cannot read; main() turns the rest into one sentence and code 2.
        assert done.exit_code == 2 or isinstance(done.exception, BadInput), (wrong, done.exception)
        assert not done.stdout, wrong
        assert "\n" not in str(done.exception), wrong
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("wrong", ["--option acks=loud", "--loss nan", "--members x"])
def test_bad_input_is_one_sentence_on_stderr(tmp_path: Path, wrong: str) -> None:
    done = quire(*wrong.split(), "--out", str(tmp_path / "run"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())
