"""What a person sees first: which commands there are, and which version this is."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from quire.cli.app import COMMANDS
from tests.kit.patience import PATIENCE_S

QUIRE = Path(sys.executable).with_name("quire")
HEAVY = ("numba", "numpy", "pandas", "pyarrow", "pyspark", "py4j", "cryptography")

MEASURED = """
import sys
from quire.cli.main import main
heavy, *calls = sys.argv[1:]
for call in calls:
    sys.argv[1:] = call.split()
    try:
        main()
    except SystemExit as end:
        print(end.code, *sorted(set(heavy.split(",")) & set(sys.modules)), file=sys.stderr)
"""


def quire(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([QUIRE, *arguments], capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def measure(*calls: str) -> tuple[str, list[list[str]]]:
    """What these print, one after the other in one process, and what each needed for it: exit code, heavy libraries."""
    words = [sys.executable, "-c", MEASURED, ",".join(HEAVY), *calls]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    return done.stdout, [line.split() for line in done.stderr.splitlines()]


def test_help_lists_every_command_with_a_whole_sentence_and_loads_none_of_them() -> None:
    said, needed = measure("--help")

    assert needed == [["0"]]
    for name, command in COMMANDS.items():
        assert any(line.split() == [name, *command.summary.split()] for line in said.splitlines()), name


def test_the_help_of_a_command_loads_nothing_that_it_works_with() -> None:
    said, needed = measure(*(f"{name} --help" for name in COMMANDS))

    assert dict(zip(COMMANDS, needed, strict=True)) == {name: ["0"] for name in COMMANDS}
    for name in COMMANDS:
        assert f" {name} [OPTIONS]" in said


def test_the_version_is_that_of_the_package() -> None:
    done = quire("--version")

    assert (done.returncode, done.stdout, done.stderr) == (0, f"quire {version('quire')}\n", "")


def test_without_arguments_the_help_comes_as_a_complaint() -> None:
    done = quire()

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Usage: quire [OPTIONS] COMMAND")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["adit"], "quire: No such command 'adit'. Did you mean 'audit'? (see quire --help)\n"),
        (["--nonsense"], "quire: No such option: --nonsense (see quire --help)\n"),
        (["audit"], "quire: Missing argument 'DIR'. (see quire --help)\n"),
    ],
)
def test_what_does_not_exist_is_refused_in_one_sentence(arguments: list[str], sentence: str) -> None:
    done = quire(*arguments)

    assert (done.returncode, done.stdout, done.stderr) == (2, "", sentence)
