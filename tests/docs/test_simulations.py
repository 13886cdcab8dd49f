"""Simulations in the documentation: each command is run as it stands there, only with fewer messages."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from quire.cli.app import app

DOCS = Path(__file__).parents[2] / "docs"
MESSAGES = 10


def commands() -> list[str]:
    """In blocks and within sentences, without those that leave something out."""
    found: set[str] = set()
    for page in DOCS.glob("*.md"):
        text = page.read_text().replace("\\\n", "")
        found |= {*re.findall(r"^quire simulate [^#\n]+", text, re.MULTILINE), *re.findall(r"`(quire simulate [^`\n]+)`", text)}
    return sorted(" ".join(command.split()) for command in found if "…" not in command)


@pytest.mark.parametrize("command", commands())
def test_a_simulation_in_the_documentation_runs(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, [*shlex.split(command)[1:], "--messages", str(MESSAGES)])
    assert done.exit_code == 0, (done.output, done.exception)
    assert ("--out" in command) == any(tmp_path.iterdir())
