"""`quire run` as people and programs use it."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Timer

import pytest
from typer.testing import CliRunner, Result

from quire.cli.app import app
from quire.live.runs.fleet import free_addresses
from quire.model.errors import BadInput
from quire.pipeline.auditing.auditor import audit_here
from quire.trace.store import open_run
from tests.kit.patience import PATIENCE_S

QUIRE = [sys.executable, "-c", "from quire.cli.main import main; main()"]
UNDER_WAY = rb"[1-9][\d,]* delivered"


def quire(*arguments: str | Path) -> Result:
    """The command in this process; its members are processes of their own all the same."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_a_person_gets_one_table_with_the_verdicts_and_what_to_type_next(tmp_path: Path) -> None:
    out = tmp_path / "run"

    done = quire("run", "--messages", "500", "--out", out)

    assert done.exit_code == 0, done.stderr
    assert done.stderr == ""
    for word in ("deliveries/s", "latency at the origin", "packets per message", "header bytes per message"):
        assert word in done.stdout
    orders = ("integrity", "agreement", "fifo", "causal", "total", "acyclic", "virtual-synchrony", "uniform", "once")
    for order in orders:
        assert f"{order} " in done.stdout
    assert done.stdout.count("holds") == len(orders)
    assert f"quire audit {out}" in done.stdout
    assert "report" in done.stdout
    assert (out / "report.html").read_text().startswith("<!doctype html>")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert len(open_run(out).files) == 3


def test_json_says_what_simulate_says_and_the_audit(tmp_path: Path) -> None:
    arguments = ["--protocol", "fifo", "--members", "2", "--messages", "300", "--senders", "1", "--size", "10", "--json"]

    done = quire("run", *arguments, "--out", tmp_path / "run")

    assert done.exit_code == 0, done.stderr
    said = json.loads(done.stdout)
    assert {
        "run", "protocol", "options", "members", "messages", "deliveries", "packets", "packets_point_to_point", "latency",
        "header_bytes", "wall_s", "digest", "trace", "deliveries_per_s", "audit",
    } <= said.keys()  # fmt: skip
    assert (said["messages"], said["deliveries"], said["complete"], said["source"]) == (300, 600, True, "run")
    assert said["audit"]["verdict"] == said["audit"]["checks"]["fifo"]["verdict"] == "holds"
    assert said["report"] == str(tmp_path / "run" / "report.html")
    assert said["audit"]["expected"] == ["integrity", "agreement", "fifo", "virtual-synchrony", "once"]
    assert said["packets"]["multicasts"] > 0
    assert said["header_bytes"] > 0
    assert said["deliveries_per_s"] > 0


def test_an_existing_run_is_replaced_only_by_force(tmp_path: Path) -> None:
    out = tmp_path / "run"
    some = ["run", "--members", "1", "--messages", "5", "--no-audit", "--out", str(out)]
    assert quire(*some).exit_code == 0
    before = (out / "run.json").stat()

    refused = quire(*some)

    assert isinstance(refused.exception, BadInput)
    assert "exists already" in str(refused.exception)
    assert (out / "run.json").stat().st_mtime_ns == before.st_mtime_ns
    assert quire(*some, "--force").exit_code == 0
    assert (out / "run.json").stat().st_mtime_ns > before.st_mtime_ns


WRONG = [
    "--protocol nonsense", "--option acks=loud", "--option acks", "--members 0", "--members 65", "--members x",
    "--messages 0", "--messages -1", "--messages 99999999999", "--senders 9", "--senders 0,0", "--senders x", "--size -1",
    "--size 9999999999", "--rate 0", "--rate nan", "--timeout 0", "--timeout nan", "--hosts nowhere.toml",
    "--no-such-thing",
]  # fmt: skip


def test_bad_input_is_refused_with_code_2_before_anything_starts(tmp_path: Path) -> None:
    for wrong in WRONG:
        done = quire("run", *wrong.split(), "--out", tmp_path / "run")
        assert done.exit_code == 2 or isinstance(done.exception, BadInput), (wrong, done.exception)
        assert not done.stdout, wrong
        assert "\n" not in str(done.exception), wrong
    assert not list(tmp_path.iterdir())


class Watched:
    """The real command on a terminal of its own, so that it shows how far its members are. Use it in `with`, which leaves
    no process, however the test went."""

    def __init__(self, *arguments: str | Path) -> None:
        self._screen, terminal = pty.openpty()
        self.process = subprocess.Popen(
            [*QUIRE, "run", *arguments], stdout=subprocess.PIPE, stderr=terminal, env={**os.environ, "COLUMNS": "100"}
        )
        os.close(terminal)
        self.shown = b""

    def __enter__(self) -> Watched:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()
        os.close(self._screen)

    def wait_until_shown(self, pattern: bytes) -> None:
        while not re.search(pattern, self.shown):
            try:
                self.shown += os.read(self._screen, 65536)
            except OSError:  # The terminal is gone with the process.
                raise AssertionError(f"{pattern!r} was not shown, but {self.shown!r}") from None

    def members(self) -> list[int]:
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(child) for child in children.read_text().split()]

    def end(self) -> int:
        """Read on until the terminal is gone with the process: one that nobody reads would keep it waiting."""
        overdue = Timer(PATIENCE_S, self.process.kill)
        overdue.start()
        with suppress(OSError):
            while data := os.read(self._screen, 65536):
                self.shown += data
        overdue.cancel()
        return self.process.wait()


@pytest.fixture
def watched() -> Iterator[Callable[..., Watched]]:
    with ExitStack() as stack:
        yield lambda *arguments: stack.enter_context(Watched(*arguments))


def exists(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds the member processes in /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_drains_ends_all_members_and_leaves_nothing_behind(
    watched: Callable[..., Watched], tmp_path: Path, number: signal.Signals
) -> None:
    command = watched("--messages", "100000000", "--no-audit", "--out", tmp_path / "run")
    command.wait_until_shown(UNDER_WAY)
    members = command.members()

    command.process.send_signal(number)

    assert command.end() == 130
    assert b"messages that were sent are delivered everywhere; no run was written\r\n" in command.shown
    assert b"Traceback" not in command.shown
    assert len(members) == 3
    assert not any(map(exists, members))
    assert not list(tmp_path.iterdir())


def test_ctrl_c_before_the_members_have_met_ends_at_once(watched: Callable[..., Watched], tmp_path: Path) -> None:
    here, nobody = free_addresses(2)
    hosts = tmp_path / "hosts.toml"
    hosts.write_text(f"members = ['{here}', '192.0.2.1:{nobody.rpartition(':')[2]}']\ninsecure = true\n")
    command = watched("--hosts", hosts, "--out", tmp_path / "run")
    command.wait_until_shown(rb"joining")

    command.process.send_signal(signal.SIGINT)

    assert command.end() == 130
    assert b"quire: nothing was sent; no run was written\r\n" in command.shown
    assert [path.name for path in tmp_path.iterdir()] == ["hosts.toml"]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds the member processes in /proc")
def test_a_killed_member_is_named_and_the_others_go_on_to_a_run_that_holds(
    watched: Callable[..., Watched], tmp_path: Path
) -> None:
    out = tmp_path / "run"
    command = watched("--messages", "2000", "--rate", "400", "--no-audit", "--out", out)
    command.wait_until_shown(UNDER_WAY)
    members = command.members()

    os.kill(members[2], signal.SIGKILL)

    assert command.end() == 0
    sentence = b"quire: member 2 was lost: its process was ended by SIGKILL; the others went on without it"
    assert sentence in command.shown
    assert b"Traceback" not in command.shown
    assert not any(map(exists, members))
    outcome = open_run(out).info.outcome
    assert (outcome.crashed, outcome.complete) == ((2,), False)
    assert outcome.deliveries >= 2 * 2 * 2000
    checks = audit_here(out).checks
    assert {name: check.because for name, check in checks.items() if check.violations} == {}
    assert checks["virtual-synchrony"].verdict == "holds"


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds the member processes in /proc")
def test_where_too_many_are_killed_the_run_ends_undecided(watched: Callable[..., Watched], tmp_path: Path) -> None:
    command = watched("--messages", "100000000", "--out", tmp_path / "run")
    command.wait_until_shown(UNDER_WAY)
    members = command.members()

    os.kill(members[0], signal.SIGSTOP)  # So that it does not go on alone for a moment, as it could if it knew.
    for member in (1, 2):
        os.kill(members[member], signal.SIGKILL)
    os.kill(members[0], signal.SIGCONT)

    assert command.end() == 3
    assert re.search(rb"member [12] was lost: .* SIGKILL; the others could not go on without it; no run", command.shown)
    assert not any(map(exists, members))
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds the member processes in /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_fixed_group_ends_with_a_member_that_is_named(
    watched: Callable[..., Watched], tmp_path: Path, number: signal.Signals
) -> None:
    command = watched("--protocol", "two-phase", "--messages", "100000000", "--timeout", "3", "--out", tmp_path / "run")
    command.wait_until_shown(UNDER_WAY)
    members = command.members()

    os.kill(members[2], number)

    assert command.end() == 3
    sentence = (
        rb"member 2 was lost: its process was ended by SIGKILL; members 0 and 1 noticed and gave up; no run was written"
        if number == signal.SIGKILL
        else rb"gave up: member 2 .* has been unreachable for 3\.\d s.*; no run was written"
    )
    assert re.search(sentence, command.shown)
    assert b"Traceback" not in command.shown
    assert not any(map(exists, members))
    assert not list(tmp_path.iterdir())


def test_hosts_that_are_all_this_machine_need_nobody_else(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts.toml"
    hosts.write_text(f"group = 'board'\nmembers = {list(free_addresses(2))}\norder = 'causal'\nmessages = 20\n")

    done = quire("run", "--hosts", hosts, "--size", "5", "--no-audit", "--json", "--out", tmp_path / "run")

    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["protocol"] == "causal-vector"
    info = open_run(tmp_path / "run").info
    assert info.settings == {"group": "board", "load": {"messages": 20, "rate": None, "senders": None, "size": 5}}


def test_hosts_elsewhere_are_told_what_to_type_and_their_parts_are_collected(tmp_path: Path) -> None:
    """Member 1 is said to be at another address, where a member of this machine answers by listening elsewhere."""
    here, elsewhere = free_addresses(2)
    port = elsewhere.rpartition(":")[2]
    hosts = tmp_path / "hosts.toml"
    # No machine has this address; nothing is sent there, because the member with the higher number connects.
    hosts.write_text(f"members = ['{here}', '192.0.2.1:{port}']\nprotocol = 'fifo'\ninsecure = true\n")
    with subprocess.Popen(
        [*QUIRE, "run", "--hosts", hosts, "--messages", "50", "--out", tmp_path / "run"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as command:  # fmt: skip
        assert command.stderr is not None
        assert "run these on the other hosts" in command.stderr.readline()
        address, *words = command.stderr.readline().split()
        assert address == f"192.0.2.1:{port}"
        assert words[:5] == ["quire", "member", "hosts.toml", "--me", "1"]

        other = subprocess.run(
            [*QUIRE, *words[1:], "--listen", elsewhere],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        out, complaints = command.communicate(timeout=PATIENCE_S)

    assert (other.returncode, other.stderr) == (0, "")
    assert (command.returncode, complaints) == (3, ""), "the run is not decided until it is collected"
    assert "p00001-*" in out
    for path in (tmp_path / "parts").glob("p00001-*"):
        path.rename(tmp_path / "run.parts" / path.name)
    collected = quire("collect", tmp_path / "run.parts", "--json", "--out", tmp_path / "run")
    assert collected.exit_code == 0, collected.stderr
    assert json.loads(collected.stdout)["deliveries"] == 200
    assert len(open_run(tmp_path / "run").files) == 2
