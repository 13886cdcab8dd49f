"""`--force`, of every command that takes it: it replaces what an earlier call of the same command wrote, and nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from quire.cli.app import app
from quire.live.runs.fleet import free_addresses
from quire.model.errors import BadInput

Call = Callable[..., Result]

MARKS = {
    "simulate": "run.json", "run": "run.json", "collect": "run.json", "import": "run.json", "imports": "executions.json",
    "order": "order.json", "sweep": "sweep.json", "keys": "authority.pem",
}  # fmt: skip
"""The commands that write a directory, and the file by which it is known."""

FILES = ("export", "report", "secret")
"""The commands that write a single file."""


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    inputs = tmp_path_factory.mktemp("inputs")
    (inputs / "log.jsonl").write_text('{"host":"a"}\n{"host":"b"}\n')
    (inputs / "logs.txt").write_text('x\na {"a":1}\n=== next ===\nx\na {"a":1}\n')
    (inputs / "events").mkdir()
    (inputs / "events" / "a.json").write_text('{"source":"a","clock":1}\n')
    (inputs / "grid.toml").write_text('title = "t"\n[[grid]]\nprotocol = "fifo"\nmembers = 2\nmessages = 2\nseeds = 2\n')
    (inputs / "group.toml").write_text(f"members = {list(free_addresses(1))}\norder = 'fifo'\nmessages = 2\n")
    invoke = CliRunner().invoke
    invoke(app, ["simulate", "--messages", "2", "--out", str(inputs / "run")], catch_exceptions=False)
    invoke(app, ["member", str(inputs / "group.toml"), "--me", "0", "--out", str(inputs / "parts")], catch_exceptions=False)
    return inputs


@pytest.fixture
def call(command: CliRunner, inputs: Path) -> Call:
    """A command, by its name, that writes to `out`."""
    words = {
        "simulate": ["simulate", "--messages", "3", "--out"],
        "run": ["run", "--members", "1", "--messages", "3", "--no-audit", "--out"],
        "collect": ["collect", str(inputs / "parts"), "--out"],
        "import": ["import", str(inputs / "log.jsonl"), "--out"],
        "imports": ["import", str(inputs / "logs.txt"), "--delimiter", "^=== (?<trace>.*) ===$", "--out"],
        "order": ["order", str(inputs / "events")],
        "sweep": ["sweep", str(inputs / "grid.toml"), "--out"],
        "keys": ["keys", "board", "--members", "2", "--out"],
        "export": ["export", str(inputs / "run"), "--out"],
        "report": ["report", str(inputs / "run"), "--no-audit", "--out"],
        "secret": ["keys", "board", "--secret", "--out"],
    }
    return lambda name, out, *more: command.invoke(app, [*words[name], str(out), *more])


def content(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def refused(result: Result) -> str:
    assert isinstance(result.exception, BadInput), (result.exception, result.output)
    assert "\n" not in str(result.exception)
    return str(result.exception)


@pytest.mark.parametrize("name", MARKS)
def test_what_an_earlier_call_wrote_is_replaced_and_every_other_file_stays(call: Call, tmp_path: Path, name: str) -> None:
    out = tmp_path / "out"
    assert call(name, out).exit_code == 0
    ours = set(content(out))
    mine = {"key.pem": b"precious", "deep/letter.txt": b"precious"}
    mine |= {f"{Path(path).parent}/notes.txt": b"precious" for path in ours}
    mine["./notes.txt"] = b"precious"
    for path, text in mine.items():
        (out / path).parent.mkdir(exist_ok=True)
        (out / path).write_bytes(text)
    before = content(out)

    if name != "sweep":  # A sweep goes on.
        assert "--force" in refused(call(name, out))
    assert content(out) == before
    assert call(name, out, "--force").exit_code == 0

    after = content(out)
    assert {path: text for path, text in after.items() if path not in ours} == {
        str(Path(path)): text for path, text in mine.items()
    }
    assert set(after) >= ours
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("mark", ["{}", "", '{"name": "another program\'s"}', "[]", "not JSON", "\x00"])
@pytest.mark.parametrize("name", MARKS)
def test_a_directory_that_only_has_a_file_of_that_name_is_not_touched(call: Call, tmp_path: Path, name: str, mark: str) -> None:
    out = tmp_path / "out"
    (out / "trace").mkdir(parents=True)
    for path in (MARKS[name], "trace/p00000.parquet", "trace/key.pem", "key.pem"):
        (out / path).write_text(mark)
    before = content(out)

    assert "will not be replaced" in refused(call(name, out, "--force")) or name == "sweep"

    assert content(out) == before


@pytest.mark.parametrize(("name", "folder"), [("simulate", "trace"), ("sweep", "results")])
def test_a_table_of_somebody_else_among_what_would_be_replaced_is_not_touched(
    call: Call, tmp_path: Path, name: str, folder: str
) -> None:
    out = tmp_path / "out"
    assert call(name, out).exit_code == 0
    pq.write_table(pa.table({"precious": [1]}), out / folder / "mine.parquet")
    before = content(out)

    assert "mine.parquet is not a" in refused(call(name, out, "--force"))

    assert content(out) == before


@pytest.mark.parametrize(("name", "folder"), [("simulate", "trace"), ("sweep", "results")])
def test_damaged_output_is_replaced(call: Call, tmp_path: Path, name: str, folder: str) -> None:
    out = tmp_path / "out"
    assert call(name, out).exit_code == 0
    before = content(out)
    for path in (out / folder).iterdir():
        path.write_bytes(b"cut off")

    assert call(name, out, "--force").exit_code == 0

    assert content(out) == before


@pytest.mark.parametrize("name", [name for name in MARKS if name != "keys"])
def test_a_directory_of_something_else_is_not_touched(call: Call, tmp_path: Path, name: str) -> None:
    """A home, say. Keys may be added to a directory that holds something else."""
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id").write_text("precious")

    refused(call(name, home, "--force"))

    assert content(home) == {".ssh/id": b"precious"}


@pytest.mark.parametrize("name", ["simulate", "import", "order", "keys"])
def test_links_lead_to_what_is_replaced_and_never_to_what_is_elsewhere(call: Call, tmp_path: Path, name: str) -> None:
    out, link = tmp_path / "out", tmp_path / "link"
    assert call(name, out).exit_code == 0
    link.symlink_to("out")
    assert call(name, link, "--force").exit_code == 0
    assert link.is_symlink()

    folder = {"simulate": "trace", "import": "trace", "order": None, "keys": "member-0"}[name]
    if folder is not None:
        elsewhere = tmp_path / "elsewhere"
        (out / folder).rename(elsewhere)
        (out / folder).symlink_to("../elsewhere")
        before = content(elsewhere)
        refused(call(name, out, "--force"))
        assert content(elsewhere) == before


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_replaced_only_by_its_like(call: Call, tmp_path: Path, name: str) -> None:
    out = tmp_path / "file"
    assert call(name, out).exit_code == 0
    written = out.read_bytes()
    assert "--force" in refused(call(name, out))
    assert call(name, out, "--force").exit_code == 0
    assert (out.read_bytes() == written) == (name != "secret")

    for text in ("precious", "{}", "precious\nprecious\n"):
        out.write_text(text)
        assert "so it will not be replaced" in refused(call(name, out, "--force"))
        assert out.read_text() == text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


@pytest.mark.parametrize("name", FILES)
def test_a_link_to_a_file_stays_a_link(call: Call, tmp_path: Path, name: str) -> None:
    out, link = tmp_path / "file", tmp_path / "link"
    assert call(name, out).exit_code == 0
    link.symlink_to("file")

    assert call(name, link, "--force").exit_code == 0

    assert link.is_symlink()
    assert out.stat().st_size


def test_the_report_of_a_run_goes_with_it_but_not_somebody_elses(call: Call, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert call("simulate", out).exit_code == 0
    assert CliRunner().invoke(app, ["report", str(out), "--no-audit"]).exit_code == 0
    assert call("simulate", out, "--force").exit_code == 0
    assert not (out / "report.html").exists(), "it is about the old run"

    (out / "report.html").write_text("<html>mine</html>")
    assert call("simulate", out, "--force").exit_code == 0
    assert (out / "report.html").read_text() == "<html>mine</html>"


def test_old_keys_go_with_their_authority(call: Call, tmp_path: Path) -> None:
    """They would be worthless, and taken for good ones."""
    out = tmp_path / "out"
    words = ["keys", "board", "--out", str(out), "--members"]
    assert CliRunner().invoke(app, [*words, "4"]).exit_code == 0
    shutil.copytree(out / "member-0", out / "member-00")

    assert CliRunner().invoke(app, [*words, "2", "--force"]).exit_code == 0

    assert sorted(path.name for path in out.iterdir() if path.is_dir()) == ["member-0", "member-00", "member-1"]
    assert (out / "member-0").stat().st_mode & 0o777 == 0o700
    assert (out / "member-0" / "key.pem").stat().st_mode & 0o777 == 0o600


def test_parts_that_wait_for_those_of_other_hosts_are_replaced_as_anything_else(tmp_path: Path) -> None:
    here, nobody = free_addresses(2)
    hosts = tmp_path / "hosts.toml"
    hosts.write_text(f"members = ['{here}', '192.0.2.1:{nobody.rpartition(':')[2]}']\ninsecure = true\n")
    (tmp_path / "run.parts").mkdir()
    (tmp_path / "run.parts" / "precious").write_text("precious")

    done = CliRunner().invoke(app, ["run", "--hosts", str(hosts), "--out", str(tmp_path / "run"), "--force"])

    assert "is not a directory of parts, so it will not be replaced" in refused(done)
    assert (tmp_path / "run.parts" / "precious").exists()


def test_the_refusal_is_one_sentence_and_exit_code_2(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{}")

    done = subprocess.run(
        [Path(sys.executable).with_name("quire"), "simulate", "--out", tmp_path, "--force"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (
        f"quire: {tmp_path} is not a run directory, so it will not be replaced: "
        f"{tmp_path}/run.json is not the description of a run: Object missing required field `run`\n"
    )
