"""A check is a module and an entry of the registry, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from quire.cli.app import app
from quire.model.orders import Guarantee
from quire.pipeline.auditing import registry
from quire.pipeline.auditing.auditor import audit_with
from quire.pipeline.tasks import run_here
from quire.report.run_report import report_run
from tests.audit.oracle import Event
from tests.audit.toy_check import GREETING
from tests.audit.traces import plain, timed, write

if TYPE_CHECKING:
    pass

POLITE = plain("s0>01 d0:0 d1:0", "s0>01 d0:0 d1:0")
RUDE = plain("s0>01 d0:0 d1:0", "d0:0 s0>01 d1:0")


def test_every_guarantee_has_a_check() -> None:
    assert [check.guarantee for check in registry.CHECKS] == list(Guarantee)


@pytest.fixture
def command(command: CliRunner, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    """The command with one check more."""
    monkeypatch.setattr(registry, "CHECKS", (*registry.CHECKS, GREETING))
    return command


def test_a_new_check_is_known_to_every_command_that_shows_checks(command: CliRunner, tmp_path: Path) -> None:
    polite, rude = str(write(tmp_path / "polite", POLITE)), str(write(tmp_path / "rude", RUDE))

    holds = command.invoke(app, ["audit", polite, "--expect", "greeting,fifo", "--segments", "2", "--master", "local[2]"])
    assert holds.exit_code == 0, holds.output
    assert "every member sent before it delivered anything" in " ".join(holds.stdout.split())

    violated = command.invoke(app, ["audit", rude, "--expect", "greeting", "--json"])
    said = json.loads(violated.stdout)
    assert (violated.exit_code, said["verdict"], said["expected"]) == (1, "violated", ["greeting"])
    check = said["checks"]["greeting"]
    assert check["because"] == "member 1 delivered 0:0 before it had sent anything"
    assert check["witness"]["positions"] == [{"member": 1, "event": "deliver", "message": "0:0", "pos": 0, "name": [0, 0]}]


@pytest.mark.usefixtures("command")
def test_a_new_check_is_drawn_in_the_report(tmp_path: Path) -> None:
    rude = write(tmp_path / "rude", RUDE)
    audit = audit_with(run_here(registry.audit_job()), rude, expect=["greeting"])

    page = report_run(rude, audit)

    assert "Violated: greeting" in page
    assert "Member 1 delivered 0:0 before it had sent anything." in page
    assert '<g class="event delivered wrong">' in page


def test_a_new_check_is_undecided_where_a_trace_lacks_what_it_needs(command: CliRunner, tmp_path: Path) -> None:
    silent = str(write(tmp_path / "silent", timed([[Event("packet", -1, -1)]])))

    done = command.invoke(app, ["audit", silent, "--expect", "greeting", "--json"])

    assert (done.exit_code, json.loads(done.stdout)["checks"]["greeting"]["because"]) == (
        3,
        "nobody sent or delivered anything",
    )
