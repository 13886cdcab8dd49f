"""`quire watch` on the command line, about a run that `quire member` and `quire run` make."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from quire.cli.app import app
from quire.http.addresses import read_http_address
from quire.http.client import Client
from quire.live.runs.plan import read_plan
from quire.model.errors import BadInput
from tests.kit.patience import PATIENCE_S
from tests.watch.watched import QUIRE, Processes


def watch(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([QUIRE, "watch", *arguments], capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def test_the_same_is_a_table_in_a_terminal() -> None:
    with Processes(a="reads", b="reads") as processes:
        done = watch(*processes.observed.values(), "--text", "--once")
    assert done.returncode == 0, done.stderr
    assert "board" in done.stdout
    assert [line.split()[:2] for line in done.stdout.splitlines() if line[:2] in ("a ", "b ")][:2] == [
        ["a", "running"],
        ["b", "running"],
    ]
    assert "holds" in done.stdout.splitlines()[0], "it was judged before it is drawn"
    assert all(line.split()[3] != "–" for line in done.stdout.splitlines() if line[:2] in ("a ", "b ")), "rates are known"


def test_what_cannot_be_watched_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{}")
    for arguments, says in (
        ((), "say what to watch"),
        (("nowhere/at/all",), "is no directory"),
        ((str(tmp_path),), "has ended"),
        (("127.0.0.1:1", "--group", "board.toml"), "not several"),
        (("127.0.0.1:1", "--once"), "--once is for --text"),
        (("127.0.0.1:1", "--listen", "0.0.0.0:0"), "give a token"),
    ):
        done = CliRunner().invoke(app, ["watch", *arguments, "--no-browser"])
        assert isinstance(done.exception, BadInput), (arguments, done.output)
        assert says in str(done.exception)
        assert "\n" not in str(done.exception)


def test_a_run_is_watched_while_it_is_recorded(tmp_path: Path) -> None:
    out = tmp_path / "run"
    making = [QUIRE, "run", "--members", "2", "--messages", "1000000", "--rate", "50", "--out", str(out), "--no-audit"]
    run = subprocess.Popen(making, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    watching = subprocess.Popen([QUIRE, "watch", str(out), "--no-browser"], stderr=subprocess.PIPE, text=True)
    try:
        assert watching.stderr is not None
        page = next(line for line in watching.stderr if "watching at" in line)
        client = Client(read_http_address(page.split("//")[1].strip().rstrip("/")))
        asyncio.run(asyncio.wait_for(until_judged(client, {"0", "1"}), PATIENCE_S))
    finally:
        for process in (watching, run):
            process.kill()
            process.communicate()


def test_a_run_that_has_not_begun_is_said_to_be_waited_for(tmp_path: Path) -> None:
    watching = subprocess.Popen([QUIRE, "watch", str(tmp_path / "run"), "--no-browser"], stderr=subprocess.PIPE, text=True)
    try:
        assert watching.stderr is not None
        assert "waiting for one to begin" in watching.stderr.readline()
    finally:
        watching.kill()
        watching.communicate()


def test_a_run_shows_its_own_faults_on_the_page_that_it_opens(tmp_path: Path) -> None:
    words = ["--members", "3", "--messages", "1000000", "--rate", "50", "--no-audit", "--out", str(tmp_path / "run")]
    making = [QUIRE, "run", "--watch", "--faults", "kill 2@200ms, restart 2@1s", *words]
    no_browser = os.environ | {"BROWSER": "true"}
    with subprocess.Popen(making, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=no_browser) as run:
        try:
            assert run.stderr is not None
            page = next(line for line in run.stderr if "watching at" in line)
            client = Client(read_http_address(page.split("//")[1].strip().rstrip("/")))
            asyncio.run(asyncio.wait_for(until_told(client, "without 2", "2 joined"), PATIENCE_S))
        finally:
            run.send_signal(signal.SIGINT)
            _, complaints = run.communicate(timeout=PATIENCE_S)
    assert run.returncode == 130, complaints


async def until_told(client: Client, *wanted: str) -> None:
    """Return when the page tells all this."""
    while True:
        state = msgspec.json.decode(await client.get("/state"))
        told = [sentence["text"] for sentence in state["incidents"]]
        if all(any(words in text for text in told) for words in wanted):
            return client.close()
        await asyncio.sleep(0.1)


async def until_judged(client: Client, names: set[str]) -> None:
    """Return when the page has a verdict about these processes and their rates, and draws what they do."""
    while True:
        state = msgspec.json.decode(await client.get("/state"))
        found = {process["name"] for process in state["processes"]}
        rated = all(process["last"]["delivered"] and process["view"] for process in state["processes"])
        if found == names and rated and state["verdict"]["verdict"] == "holds" and state["diagram"]:
            assert state["title"] == {"group": "quire", "protocol": "single-phase"}
            return client.close()
        await asyncio.sleep(0.1)


def test_a_groups_file_says_where_its_members_are_observed(tmp_path: Path) -> None:
    file = tmp_path / "board.toml"
    file.write_text(
        'members = ["127.0.0.1:7000", "127.0.0.1:7001"]\norder = "total"\nobserve = ["127.0.0.1:9400", "127.0.0.1:9401"]\n'
    )
    plan = read_plan(file)
    assert plan.network(1).observe == "127.0.0.1:9401"
    file.write_text('members = ["127.0.0.1:7000", "127.0.0.1:7001"]\norder = "total"\nobserve = ["127.0.0.1:9400"]\n')
    with pytest.raises(BadInput, match="one address for each"):
        read_plan(file).check(0)
    assert "does not say where" in watch("--group", str(_without(file))).stderr


def _without(file: Path) -> Path:
    file.write_text('members = ["127.0.0.1:7000", "127.0.0.1:7001"]\n')
    return file
