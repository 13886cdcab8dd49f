"""Commands that are suggested can be typed as they are."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from quire.cli.app import COMMANDS

ROOT = Path(__file__).parents[2]
SCRIPTS = Path(sys.executable).parent


def suggested(*before: str | Path, path: str, cwd: Path) -> str:
    """What `quire simulate` says to type next."""
    done = subprocess.run(
        [*before, "simulate", "--messages", "2", "--out", "a run"],
        cwd=cwd, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = re.search(r"next: (.*)", done.stdout)
    assert found is not None
    return found[1].rstrip()


def test_a_command_that_the_shell_finds_is_called_by_its_name(tmp_path: Path) -> None:
    path = f"{SCRIPTS}:{os.environ['PATH']}"

    assert suggested("quire", path=path, cwd=tmp_path) == "quire audit 'a run'"


def test_a_command_that_the_shell_does_not_find_is_called_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "quire").symlink_to(SCRIPTS / "quire")
    (tmp_path / "other").mkdir()
    another = tmp_path / "other" / "quire"
    another.write_text("#!/bin/sh\n")
    another.chmod(0o755)
    for path in ("/usr/bin:/bin", f"{another.parent}:/usr/bin:/bin"):
        shutil.rmtree(tmp_path / "a run", ignore_errors=True)
        assert suggested("bin/quire", path=path, cwd=tmp_path) == "bin/quire audit 'a run'"


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_the_demo_says_how_to_call_quire_and_with_what() -> None:
    done = subprocess.run(["make", "--dry-run", "demo"], cwd=ROOT, capture_output=True, text=True, check=True)

    lines = re.findall(r"'  (\.venv/bin/quire [^'#]*)", done.stdout)
    assert len(lines) >= 3
    assert lines[0].split() == [".venv/bin/quire", "--help"]
    for line in lines[1:]:
        assert shlex.split(line)[1] in COMMANDS, line
