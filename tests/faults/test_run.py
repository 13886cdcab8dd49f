"""`quire run --faults`: real processes are killed, stopped, cut off and restarted, and everything that is promised holds."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from quire.cli.app import app
from quire.cli.main import main
from quire.model.errors import BadInput
from quire.pipeline.auditing.auditor import audit_here
from quire.report.run_report import report_run
from tests.kit.patience import PATIENCE_S
from tests.live.hosts import hosts

PROMISED = {"integrity", "agreement", "fifo", "causal", "total", "virtual-synchrony", "uniform", "once"}


def run(out: Path, faults: str, *arguments: str) -> dict[str, Any]:
    """What the command says of a run with these faults, in which everything that is promised holds."""
    words = ["run", "--faults", faults, "--no-audit", "--json", "--out", str(out), *arguments]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, (done.stderr, done.exception)
    audit = audit_here(out)
    assert set(audit.expected) >= PROMISED
    assert {name: check.because for name, check in audit.checks.items() if check.violations} == {}
    assert {audit.checks[name].verdict for name in audit.expected} == {"holds"}
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def whats(said: dict[str, Any]) -> list[tuple[str, str]]:
    return [(each["what"], each["about"]) for each in said["happened"]]


def test_members_are_killed_stopped_and_restarted_and_nothing_is_lost(tmp_path: Path) -> None:
    said = run(tmp_path / "run", "kill 2@300ms, restart 2@600ms, stop 1@900ms for 1.5s", "--messages", "300")

    told = whats(said)
    assert told[0] == ("view 2", "0, 1, 2")
    for each in (("kill", "2"), ("restart", "2"), ("stop", "1"), ("continue", "1"), ("excluded", "1")):
        assert each in told
    assert told.index(("view 3", "0, 1")) > told.index(("kill", "2"))
    assert (said["crashed"], said["complete"]) == ([], True)
    # Everybody has sent everything, some of it more than once, because it was lost with a view.
    assert said["messages"] >= 900


def test_a_group_goes_on_without_those_who_stay_away(tmp_path: Path) -> None:
    said = run(tmp_path / "run", "kill 0@300ms, kill 1@1s", "--members", "5", "--rate", "100")

    assert said["crashed"] == [0, 1]
    assert whats(said)[-1] == ("view 4", "2, 3, 4")


def test_a_hierarchy_goes_on_without_its_agents(tmp_path: Path) -> None:
    faults = ("--faults", "kill 0@300ms, restart 0@1s", "--protocol", "hierarchy", "--clusters", "a,a,b,b", "--members", "4")
    done = CliRunner().invoke(app, ["run", *faults, "--rate", "100", "--no-audit", "--json", "--out", str(tmp_path / "run")])
    assert done.exit_code == 0, (done.stderr, done.exception)
    audit = audit_here(tmp_path / "run")
    assert {"causal", "virtual-synchrony", "once"} <= set(audit.expected)
    assert {audit.checks[name].verdict for name in audit.expected} == {"holds"}
    assert ("view 3", "1, 2, 3") in whats(json.loads(done.stdout))


SEQUENCERS = ("--protocol", "sequencer", "--members", "3", "--option", "sequencers=3", "--option", "groups=2")
"""Clients 0 to 2, and sequencers 3 to 5."""


def test_clients_of_sequencers_go_on_when_these_are_killed_stopped_and_restarted(tmp_path: Path) -> None:
    faults = ("--faults", "kill 3@300ms, restart 3@600ms, stop 4@1s for 200ms", "--backups", "1", "--rate", "100")
    done = CliRunner().invoke(app, ["run", *SEQUENCERS, *faults, "--no-audit", "--json", "--out", str(tmp_path / "run")])
    assert done.exit_code == 0, (done.stderr, done.exception)
    audit = audit_here(tmp_path / "run")
    assert {"integrity", "agreement", "total", "memberships"} <= set(audit.expected)
    assert {audit.checks[name].verdict for name in audit.expected} == {"holds"}
    said = json.loads(done.stdout)
    told = whats(said)
    faults_told = [each for each in told if not each[0].startswith("unit ")]
    assert faults_told == [("kill", "3"), ("restart", "3"), ("stop", "4"), ("continue", "4")]
    followers = [about.partition(", with backup ")[::2] for what, about in told if what == "unit 3"]
    assert followers[0] in [("run by 4", "5"), ("run by 5", "4")], (
        "whoever was its backup takes over from the one that was killed"
    )
    assert (said["complete"], said["messages"]) == (True, 3 * 320)
    report = report_run(tmp_path / "run", None)
    section = report.partition('id="what-happened"')[2].partition("</section>")[0]
    rows = re.findall(r"<td[^>]*>([^<]*)</td><td[^>]*>([^<]*)</td><td[^>]*>([^<]*)</td>", section)
    assert rows == [(f"{each['at_s']:.3f}", each["what"], each["about"]) for each in said["happened"]]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--faults", "kill 0@1s", "--backups", "1"), "only processes 3 to 5 can be killed"),
        (("--faults", "full 3@1s for 1s", "--backups", "1"), "only processes 3 to 5 can be killed"),
        (("--faults", "kill 6@1s", "--backups", "1"), "has members 0 to 5"),
        (("--faults", "kill 3@1s"), "end with their first fault; choose one of .*, or sequencer with --backups"),
        (("--backups", "3"), "3 backups need more than 3 sequencers"),
    ],
)
def test_what_sequencers_cannot_survive_is_refused(tmp_path: Path, arguments: tuple[str, ...], why: str) -> None:
    done = CliRunner().invoke(app, ["run", *SEQUENCERS, *arguments, "--no-audit", "--out", str(tmp_path / "run")])
    assert isinstance(done.exception, BadInput)
    assert re.search(why, str(done.exception))


def test_members_that_cannot_reach_each_other_come_together_again(tmp_path: Path) -> None:
    with hosts(1):
        pass  # Where there can be no hosts of their own, this says so.

    said = run(tmp_path / "run", "partition 0|1,2@300ms for 2s, cut 1>2@3s for 1.5s", "--rate", "100")

    told = whats(said)
    for each in (("partition", "0|1,2"), ("blocked", "0"), ("view 3", "1, 2"), ("heal", "0|1,2"), ("cut", "1>2")):
        assert each in told
    listed = subprocess.run(["ip", "netns", "list"], check=True, capture_output=True, text=True).stdout
    assert f"quire{os.getpid()}" not in listed


def test_a_member_whose_disk_is_full_ends_and_comes_back_when_there_is_room(tmp_path: Path) -> None:
    with hosts(1):
        pass  # Whoever may make networks may mount disks, too.

    said = run(tmp_path / "run", "full 1@300ms for 1.5s, full 0@2.5s for 500ms", "--rate", "100")

    told = whats(said)
    assert told.index(("full", "1")) < told.index(("view 3", "0, 2")) < told.index(("room", "1"))
    assert ("room", "0") in told
    assert (said["crashed"], said["complete"]) == ([], True)
    assert f"quire{os.getpid()} " not in Path("/proc/mounts").read_text()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--faults", "kill 7@1s"), "'kill 7@1s' names member 7, but a group of 3 has members 0 to 2"),
        (("--faults", "explode 1@1s"), "cannot read the fault 'explode 1@1s'"),
        (
            ("--faults", "kill 1@1s", "--protocol", "two-phase"),
            "groups of two-phase are fixed and end with their first fault; choose one of single-phase, causal-vector, fifo",
        ),
        (("--faults", "kill 1@1s", "--protocol", "sequencer"), "groups of sequencer are fixed"),
        (("--faults", "kill 1@1s", "--hosts", "some.toml"), "--faults needs all members on this machine"),
        (("--protocol", "hierarchy", "--clusters", "a,b"), "clusters needs one name for each of the 3 members, not 2"),
        (("--protocol", "two-phase", "--clusters", "a,a,b"), "two-phase knows no clusters; choose the protocol hierarchy"),
        (("--protocol", "fifo", "--clusters", "a,a,b"), "fifo knows no clusters; choose the protocol hierarchy"),
        (("--protocol", "hierarchy", "--clusters", "x//y,a,a"), "a cluster's name has 1 to 64 printable characters"),
    ],
)
def test_what_cannot_be_done_is_refused_in_a_sentence(tmp_path: Path, arguments: tuple[str, ...], says: str) -> None:
    done = refused(tmp_path, *arguments)
    assert isinstance(done.exception, BadInput)
    assert says in str(done.exception)
    assert list(tmp_path.iterdir()) == []


def test_without_root_only_partitions_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    done = refused(tmp_path, "--faults", "kill 1@1s, partition 0|1@2s for 1s")
    assert str(done.exception) == (
        "'partition 0|1@2s for 1s' is not possible here: network namespaces need root and the command ip; "
        "kill, stop and restart are possible"
    )


def test_without_root_no_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    done = refused(tmp_path, "--faults", "full 1@1s for 1s")
    assert str(done.exception) == (
        "'full 1@1s for 1s' is not possible here: disks that can be full need root and the command mount; "
        "kill, stop and restart are possible"
    )


def refused(tmp_path: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["run", "--no-audit", "--out", str(tmp_path / "run"), *arguments])


def test_an_interruption_in_the_middle_of_faults_leaves_nothing_behind(tmp_path: Path) -> None:
    program = f"import sys; sys.argv = ['quire', *sys.argv[1:]]; from quire.cli.main import {main.__name__}; main()"
    command = [sys.executable, "-c", program, "run", "--members", "3", "--no-audit", "--out", str(tmp_path / "run")]
    home = tmp_path / "temporary"
    home.mkdir()
    with subprocess.Popen(
        [*command, "--faults", "stop 1@1ms for 5m"], env={**os.environ, "TMPDIR": str(home)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            members = wait_until_one_is_stopped(process.pid)
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE_S) == 130
        finally:
            process.kill()
        assert process.stderr is not None
        assert (
            process.stderr.read()
            == "quire: the run ended before all faults were injected; no run was written\nquire: interrupted\n"
        )
    assert not [member for member in members if Path(f"/proc/{member}").exists()]
    assert list(home.iterdir()) == []
    assert [path.name for path in tmp_path.iterdir()] == ["temporary"]


def wait_until_one_is_stopped(parent: int) -> list[int]:
    """The members that a command has started, as soon as one of them is stopped."""
    while True:
        children = [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]
        states = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] for pid in children]
        if "T" in states:
            return children
