"""A disk that is full, for every command that writes: one sentence, exit code 3, nothing half-written, never a traceback.

A limit on the length of files stands for it on every machine. Where this process may mount one, a small disk is filled for
real, under Spark too.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from quire.live.runs.fleet import free_addresses
from quire.simulation.config import NetworkConfig, SimulationConfig, WorkloadConfig
from quire.simulation.simulate import simulate
from tests.kit.effort import cases
from tests.kit.patience import PATIENCE_S

QUIRE = Path(sys.executable).with_name("quire")

LIMITED = ["sh", "-c", 'ulimit -f 8; exec "$@"', "sh"]
"""No file may have more than 8 blocks, which are 4 or 8 KiB."""

MOUNTED = 'mkdir disk && mount -t tmpfs -o size=64k disk disk && "$@"; code=$?; ls -A disk; exit $code'
"""A small disk that only this command sees; what is on it at last is told after everything else."""

NEEDED: dict[str, list[str]] = {
    "simulate": ["simulate", "--messages", "3000", "--delay", "exponential:10", "--out", "disk/out"],
    "run": ["run", "--members", "2", "--messages", "20000", "--rate", "100000", "--no-audit", "--out", "disk/out"],
    "report": ["report", "run", "--no-audit", "--out", "disk/out"],
    "keys": ["keys", "board", "--members", "60", "--out", "disk/out"],
    "order": ["order", "events", "disk/out"],
    "import": ["import", "log.jsonl", "--out", "disk/out"],
    "export": ["export", "run", "--out", "disk/out"],
    "causality": ["causality", "run", "--out", "disk/out"],
}
"""Commands that need more than a small disk has."""


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    inputs = tmp_path_factory.mktemp("inputs")
    config = SimulationConfig(
        protocol="single-phase",
        members=3,
        workload=WorkloadConfig(messages=3000),
        network=NetworkConfig(delay="exponential:10"),
    )
    simulate(config, inputs / "run")
    noise = random.Random(1)
    (inputs / "log.jsonl").write_text("\n".join(json.dumps({"host": f"h{number % 5}"}) for number in range(30_000)))
    (inputs / "events").mkdir()
    rows = [{"source": number % 3, "clock": number, "text": f"{noise.getrandbits(128):x}"} for number in range(10_000)]
    (inputs / "events" / "a.json").write_text("\n".join(map(json.dumps, rows)))
    return inputs


@pytest.fixture(scope="module")
def small_disk(tmp_path_factory: pytest.TempPathFactory) -> Sequence[str]:
    """What comes before a command that is to find a disk of 64 KiB in the directory `disk`."""
    words = ["unshare", "--mount", "sh", "-c", MOUNTED, "sh"]
    here = tmp_path_factory.mktemp("try")
    if (
        shutil.which("unshare") is None
        or subprocess.run([*words, "true"], cwd=here, capture_output=True, check=False).returncode
    ):
        pytest.skip("this machine lets nobody mount a disk")
    return words


def call(*words: str | Path, before: Sequence[str], cwd: Path) -> tuple[int, str, str]:
    done = subprocess.run([*before, QUIRE, *words], cwd=cwd, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("name", cases([name for name in NEEDED if name != "import"], ["import"]))
def test_a_disk_that_fills_up_is_one_sentence_and_leaves_nothing_behind(
    inputs: Path, tmp_path: Path, small_disk: Sequence[str], name: str
) -> None:
    for path in inputs.iterdir():
        (tmp_path / path.name).symlink_to(path)

    code, out, complaints = call(*NEEDED[name], before=small_disk, cwd=tmp_path)

    assert (code, out) == (3, ""), complaints
    assert complaints.startswith("quire: ")
    assert "No space left on device" in complaints
    assert complaints.count("\n") == 1


def test_a_sweep_on_a_full_disk_can_go_on_elsewhere(tmp_path: Path, small_disk: Sequence[str]) -> None:
    # The description, with its long title, leaves room for hardly any results.
    grid = '[[grid]]\nprotocol = "fifo"\nmembers = 2\nmessages = 2\nseeds = 200\n'
    (tmp_path / "grid.toml").write_text(f'title = "{"t" * 50_000}"\n{grid}')

    code, out, complaints = call("sweep", "grid.toml", "--out", "disk/out", before=small_disk, cwd=tmp_path)

    assert (code, out) == (3, "out\n"), complaints
    assert complaints.startswith("quire: cannot write disk/out/results/")
    assert complaints.endswith(": No space left on device\n")


@pytest.mark.parametrize("name", ["simulate", "run", "report"])
def test_a_file_that_may_not_grow_is_one_sentence_and_leaves_nothing_behind(inputs: Path, tmp_path: Path, name: str) -> None:
    for path in inputs.iterdir():
        (tmp_path / path.name).symlink_to(path)
    (tmp_path / "disk").mkdir()

    code, out, complaints = call(*NEEDED[name], before=LIMITED, cwd=tmp_path)

    assert (code, out) == (3, ""), complaints
    assert complaints.startswith("quire: ")
    assert "File too large" in complaints
    assert complaints.count("\n") == 1
    assert not list((tmp_path / "disk").iterdir())


@pytest.mark.parametrize("protocol", ["single-phase", "sequencer"])
def test_a_run_that_cannot_be_recorded_does_not_go_on_to_its_end(tmp_path: Path, protocol: str) -> None:
    """It would take the better part of an hour."""
    words = ["run", "--protocol", protocol, "--members", "2", "--messages", "100000000", "--rate", "50000", "--out", "out"]

    code, out, complaints = call(*words, before=LIMITED, cwd=tmp_path)

    assert (code, out) == (3, ""), complaints
    assert re.fullmatch(
        r"quire: member \d gave up: the trace in .* is not complete: File too large; no run was written\n", complaints
    )
    assert not list(tmp_path.iterdir())


def test_the_old_output_stays_where_there_is_no_room_for_the_new(inputs: Path, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    assert call("simulate", "--messages", "2", "--out", "disk/out", before=[], cwd=tmp_path)[0] == 0
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    assert call(*NEEDED["simulate"], "--force", before=LIMITED, cwd=tmp_path)[0] == 3

    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_member_that_cannot_record_takes_part_to_the_end_and_says_so(tmp_path: Path) -> None:
    """The group goes on: what its application does matters more than the trace of it."""
    plan = tmp_path / "group.toml"
    plan.write_text(f"members = {list(free_addresses(2))}\norder = 'total'\nmessages = 5000\nrate = 50000\n")
    with subprocess.Popen([QUIRE, "member", plan, "--me", "1"], stdout=subprocess.PIPE, text=True) as other:
        code, out, complaints = call("member", plan, "--me", "0", "--out", "parts", before=LIMITED, cwd=tmp_path)
        assert other.communicate(timeout=PATIENCE_S)[0] == "member 1: 5,000 sent, 10,000 delivered\n"

    assert (code, out, other.returncode) == (3, "", 0)
    assert complaints.endswith("quire: the trace in parts is not complete: File too large\n")
    assert "Traceback" not in complaints


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_what_cannot_be_printed_is_a_sentence_too(tmp_path: Path) -> None:
    for words in (["--help"], ["simulate", "--json"], ["simulate"]):
        with Path("/dev/full").open("w") as full:
            done = subprocess.run([QUIRE, *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        assert (done.returncode, done.stderr) == (3, "quire: No space left on device\n"), words


LIBRARY = """
import asyncio, quire, sys

async def main(address: str) -> None:
    unrecorded = []
    def on_event(event: quire.Event) -> None:
        if event.kind == "unrecorded":
            unrecorded.append(event.why)
    async with quire.join("board", me=0, members=[address], order="total", trace="parts", on_event=on_event) as group:
        delivered = aiter(group)
        while not unrecorded:
            await group.multicast(b"x")
            await anext(delivered)
        await group.multicast(b"still here")
        print((await anext(delivered)).payload, unrecorded)

asyncio.run(main(sys.argv[1]))
"""


def test_a_group_of_an_application_goes_on_and_the_application_is_told(tmp_path: Path) -> None:
    address = free_addresses(1)[0]

    done = subprocess.run(
        [*LIMITED, sys.executable, "-c", LIBRARY, address],
        cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert done.stdout == "b'still here' ['the trace in parts is not complete: File too large']\n"
    assert "Traceback" not in done.stderr
