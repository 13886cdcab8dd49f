"""Work in progress: gone when it ends, found and removed when its process was killed, and never taken for anything else."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from quire.files.scratch import MARK, Scratch, sweep

HOLD = """
import sys
from pathlib import Path
from quire.files.scratch import Scratch
scratch = Scratch(Path(sys.argv[1]), ".work.")
(scratch.path / "half").mkdir()
(scratch.path / "half" / "file").write_text("half")
print(scratch.path, flush=True)
sys.stdin.read()
"""


class Holder:
    """A process that works in a scratch directory until it is ended."""

    def __init__(self, home: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLD, home], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.path = Path(self.process.stdout.readline().strip())

    def __enter__(self) -> Holder:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


def test_a_scratch_directory_is_gone_when_its_work_ends_however_it_ends(tmp_path: Path) -> None:
    with Scratch(tmp_path, ".work.") as scratch:
        (scratch.path / "file").write_text("x")
    assert not list(tmp_path.iterdir())

    with pytest.raises(KeyboardInterrupt), Scratch(tmp_path, ".work."):
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())


def test_whoever_is_interrupted_before_the_work_begins_leaves_nothing(tmp_path: Path) -> None:
    with Holder(tmp_path) as interrupted:
        assert interrupted.path.exists()
        interrupted.process.send_signal(signal.SIGINT)
        interrupted.process.communicate()
    assert not list(tmp_path.iterdir())


def test_a_copy_of_the_process_does_not_end_its_work(tmp_path: Path) -> None:
    with Scratch(tmp_path, ".work.") as scratch:
        child = multiprocessing.get_context("fork").Process(target=scratch.remove)
        child.start()
        child.join()
        assert scratch.path.exists()


def test_the_next_one_removes_what_a_killed_process_has_left_but_not_what_another_works_in(tmp_path: Path) -> None:
    with Holder(tmp_path) as dead, Holder(tmp_path) as alive:
        with Scratch(tmp_path, ".other."):
            assert dead.path.exists()
        dead.kill()
        assert dead.path.exists()

        with Scratch(tmp_path, ".other."):
            assert not dead.path.exists()
            assert (alive.path / "half" / "file").read_text() == "half"


def test_nothing_is_removed_that_only_looks_like_a_leftover(tmp_path: Path) -> None:
    unmarked = tmp_path / ".run.abcdef"
    unmarked.mkdir()
    (unmarked / "precious").write_text("x")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / MARK).touch()
    (tmp_path / ".link").symlink_to(elsewhere)
    (tmp_path / ".file").write_text("x")

    sweep(tmp_path)

    assert sorted(path.name for path in tmp_path.iterdir()) == [".file", ".link", ".run.abcdef", "elsewhere"]
    assert (unmarked / "precious").exists()
    assert (elsewhere / MARK).exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of others")
def test_a_leftover_of_somebody_else_is_not_touched(tmp_path: Path) -> None:
    """It could say that what lies in it belongs into the directory around it."""
    planted = tmp_path / ".work.planted"
    (planted / "moving").mkdir(parents=True)
    (planted / "moving" / "file").write_text("planted")
    (planted / MARK).touch()
    os.chown(planted / MARK, 12345, 12345)

    sweep(tmp_path)

    assert not (tmp_path / "file").exists()
    assert planted.exists()


def test_a_killed_command_leaves_nothing_that_the_next_one_does_not_remove(tmp_path: Path) -> None:
    """The real command, killed while its members work, and then again to its end."""
    out = tmp_path / "runs" / "one"
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    quire: list[str | Path] = [Path(sys.executable).with_name("quire"), "run", "--no-audit", "--members", "2", "--out", out]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    with subprocess.Popen([*quire, "--messages", "100000000"], env=environment) as command:
        while not list(out.parent.glob(".one.*/*.events")):
            assert command.poll() is None
        command.send_signal(signal.SIGKILL)
    assert list(temporary.iterdir())

    subprocess.run([*quire, "--messages", "5"], check=True, capture_output=True, env=environment)

    assert [path.name for path in out.parent.iterdir()] == ["one"]
    assert not list(temporary.iterdir())
