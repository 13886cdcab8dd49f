"""Examples in the documentation that begin with a file: they are run as they stand there, and say what is said there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from quire.cli.app import app
from quire.pipeline.importing.formats.registry import FORMATS

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("import.md", "causality.md")


class Step(NamedTuple):
    """A command of a transcript, and what comes after it: the content of a file, or what the command prints."""

    words: list[str]
    lines: list[str]


def transcripts(page: str) -> Iterator[list[Step]]:
    """Blocks of code that begin with `$ cat FILE`."""
    for block in re.findall(r"^```\n(\$ cat .*?)^```$", (DOCS / page).read_text(), re.MULTILINE | re.DOTALL):
        steps: list[Step] = []
        for line in block.splitlines():
            if line.startswith("$ "):
                steps.append(Step(shlex.split(line[2:]), []))
            else:
                steps[-1].lines.append(line)
        yield steps


ALL = [(page, steps) for page in PAGES for steps in transcripts(page)]


def squeezed(text: str) -> list[str]:
    """Lines without the spaces that fill columns."""
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize(("page", "steps"), ALL, ids=[f"{page}-{steps[0].words[1]}" for page, steps in ALL])
def test_an_example_does_what_the_page_says(
    command: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str, steps: list[Step]
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    for words, lines in steps:
        if words[0] == "cat":
            Path(words[1]).write_text("\n".join(lines) + "\n")
            continue
        assert words[0] == "quire"
        done = command.invoke(app, words[1:])
        assert isinstance(done.exception, SystemExit | None), (words, done.exception)
        assert done.exit_code in (0, 1), (words, done.output)
        assert squeezed(done.stdout)[: len(lines)] == squeezed("\n".join(lines)), words


def test_every_format_has_an_example() -> None:
    said = [" ".join([*step.words, *step.lines]) for steps in transcripts("import.md") for step in steps]
    shown = {name for text in said for name in re.findall(r"(?: as |--format )(\w+)", text)}
    assert shown >= {entry.name for entry in FORMATS}
