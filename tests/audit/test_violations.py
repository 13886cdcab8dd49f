"""A violation goes through everything that may show it, whatever is violated: that is when users need the proof."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from quire.cli.app import app
from quire.cli.ending import conclude
from quire.live.runs.collecting import LiveSummary
from quire.model.orders import Guarantee
from quire.pipeline.auditing.auditor import audit_here
from quire.pipeline.auditing.verdicts import Verdict
from quire.report.run_report import report_run
from quire.trace.statistics import MULTICASTS, RunLatency
from tests.audit.violated import ONE_EACH, VIOLATED


def quire(*arguments: str | Path) -> tuple[int, str]:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout


def summary_of(out: Path) -> LiveSummary:
    """What a live run says of itself before it is audited."""
    return LiveSummary(
        run="test", protocol="none", options={}, members=3, messages=2, deliveries=4, complete=True, crashed=(),
        packets={MULTICASTS: 2}, packets_point_to_point={}, latency=RunLatency(None, None), header_bytes=0,
        header_bytes_point_to_point=0, header_bytes_per_message=0.0, header_entries_per_message=None, arrivals=None,
        wall_s=1.0, digest="0", trace=str(out), source="run", deliveries_per_s=1.0, details={},
    )  # fmt: skip


def end(out: Path, *, json: bool) -> int:
    """The end of `quire run` for the run in this directory."""
    with pytest.raises(typer.Exit) as ended:
        conclude(summary_of(out), out, None, audited=True, reported=True, json=json)
    return ended.value.exit_code


def test_every_guarantee_is_violated_here() -> None:
    assert set(ONE_EACH) == set(Guarantee)


@pytest.mark.parametrize("name", VIOLATED)
def test_every_kind_of_violation_is_reported_with_what_it_speaks_of(name: str, tmp_path: Path) -> None:
    violated = VIOLATED[name]
    run = violated.write(tmp_path / "run")
    audited = audit_here(run)
    check = audited.checks[violated.guarantee]
    assert check.verdict is Verdict.VIOLATED
    assert check.witness is not None
    sent = {(event.origin, event.seq) for log in violated.trace.logs for event in log}
    assert set(check.witness.names) <= sent
    for event in check.witness.positions:
        logged = violated.trace.logs[event.member][event.pos]
        assert logged.kind == event.event
        assert event.name in (None, (logged.origin, logged.seq))

    page = report_run(run, audited)

    headline = re.search(r"Violated: ([a-z, -]+)<", page)
    assert headline is not None
    assert violated.guarantee in headline[1].split(", ")
    assert 'class="witness"' in page
    assert 'class="event' in page


@pytest.mark.parametrize("guarantee", Guarantee)
def test_every_violated_guarantee_is_told_by_every_command(
    guarantee: Guarantee, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ONE_EACH[guarantee].write(tmp_path / "run")

    code, said = quire("audit", run, "--json")
    told = json.loads(said)
    check = told["checks"][guarantee]
    assert (code, check["verdict"]) == (1, "violated")
    assert check["witness"]["positions"]

    code, said = quire("audit", run)
    assert code == 1
    assert f"violated: expected {', '.join(told['expected'])} (as the run promises)" in said

    assert end(run, json=True) == 1
    ended = json.loads(capsys.readouterr().out)
    assert ended["audit"]["checks"][guarantee] == check
    assert ended["report"] == str(run / "report.html")

    assert end(run, json=False) == 1
    assert f"violated {check['violations']} times" in " ".join(capsys.readouterr().out.split())

    code, said = quire("report", run, "--force", "--json")
    assert (code, json.loads(said)["verdict"]) == (0, "violated")


def test_names_in_a_trace_are_shown_as_they_are(tmp_path: Path) -> None:
    """Not taken for the marks by which a terminal is told of colours, one of which ends nothing here."""
    skew = ONE_EACH[Guarantee.SERIALISABLE]
    logs = [[event._replace(object=event.object and "[/red]") for event in log] for log in skew.trace.logs]
    run = skew._replace(trace=skew.trace._replace(logs=logs)).write(tmp_path / "run")

    code, said = quire("audit", run)

    assert code == 1
    assert "read [/red] before" in " ".join(said.split())


@pytest.fixture
def broken_report(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """A report that fails in a way that nobody thought of; and what had been printed by then."""
    printed: list[str] = []

    def fail(*_: object, **__: object) -> None:
        printed.append(capsys.readouterr().out)
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("quire.report.write.write_report", fail)
    return printed


def test_the_verdict_of_a_run_is_printed_before_its_report_is_tried(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], broken_report: list[str]
) -> None:
    run = ONE_EACH[Guarantee.SERIALISABLE].write(tmp_path / "run")

    assert end(run, json=False) == 1

    assert "violated 1 times" in broken_report[0]
    said = capsys.readouterr()
    assert f"next: quire audit {run}" in said.out
    assert said.err == (
        f"quire: could not write a report of {run}, because of ZeroDivisionError('oh'); quire report {run} shows more\n"
    )


@pytest.mark.usefixtures("broken_report")
def test_json_has_the_verdict_of_a_run_without_its_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = ONE_EACH[Guarantee.SERIALISABLE].write(tmp_path / "run")

    assert end(run, json=True) == 1

    said = json.loads(capsys.readouterr().out)
    assert said["audit"]["checks"]["serialisable"]["verdict"] == "violated"
    assert said["report"] is None


def test_whoever_interrupts_the_report_still_gets_the_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ONE_EACH[Guarantee.TOTAL].write(tmp_path / "run")

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("quire.report.write.write_report", interrupted)
    for as_json in (True, False):
        with pytest.raises(KeyboardInterrupt):
            conclude(summary_of(run), run, None, audited=True, reported=True, json=as_json)
        assert "violated" in capsys.readouterr().out
