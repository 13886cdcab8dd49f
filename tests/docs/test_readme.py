"""The README's first example, as it stands there: three processes, their trace, its proof and its report."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from quire.live.runs.fleet import free_addresses
from tests.kit.patience import PATIENCE_S

README = Path(__file__).parents[2] / "README.md"
LINES_MAX = 100
WRITTEN = ["127.0.0.1:7000", "127.0.0.1:7001", "127.0.0.1:7002"]
"""The addresses of the example. Something else on this machine may have them."""


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)


def test_the_first_example_runs_and_is_proved_as_the_readme_says(tmp_path: Path) -> None:
    example = blocks("python")[0]
    for written, free in zip(WRITTEN, free_addresses(len(WRITTEN)), strict=True):
        assert written in example
        example = example.replace(written, free)
    (tmp_path / "board.py").write_text(example)
    prove = blocks("sh")[1]
    assert "quire collect" in prove
    commands = Path(sys.executable).parent

    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", prove],
        check=False,
        cwd=tmp_path,
        # Three processes write to one pipe: with this set, which makes each write a line piece by piece, they are mixed up.
        env={**os.environ, "PATH": f"{commands}:{os.environ['PATH']}", "PYTHONUNBUFFERED": ""},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )

    assert done.returncode == 0, done.stderr
    heard = re.findall(r"^(\d) hello from (\d)$", done.stdout, re.MULTILINE)
    assert sorted(heard) == sorted([(str(member), str(member)) for member in range(3)] * 3)
    assert "holds: expected integrity, agreement, fifo, causal, total" in " ".join(done.stdout.split())
    assert "<html" in (tmp_path / "runs" / "board" / "report.html").read_text()


def test_the_readme_is_short() -> None:
    assert len(README.read_text().splitlines()) < LINES_MAX


def test_every_file_that_the_readme_names_is_there() -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", README.read_text())
    assert len(targets) > 5
    assert [target for target in targets if not (README.parent / target).exists()] == []
