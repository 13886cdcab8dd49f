"""The same command gives the same bytes: in any process, whatever order its sets happen to have there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.files import content

BAD = "--delay exponential:10 --loss 0.1 --duplicate 0.1 --reorder --spacing poisson --members 4 --messages 20 --seed 7"
RUNS = {
    "single-phase": "--members 4 --messages 40 --seed 7",
    "faults": f"{BAD} --pause 1@100+50 --crash 3@300",
    "two-phase": f"{BAD} --protocol two-phase",
    "causal-vector": f"{BAD} --protocol causal-vector",
    "hierarchy": f"{BAD} --protocol hierarchy --members 9",
    "sequencer": f"{BAD} --protocol sequencer --option groups=2 --option changes=3 --option moves=2",
    "objects": f"{BAD} --protocol objects --option aborts=10",
    "transactions": f"{BAD} --protocol transactions",
    "majority": f"{BAD} --protocol transactions --option replication=majority",
}
SIMULATE_AND_REPORT = """
import sys
from pathlib import Path
from quire.cli.app import app
from quire.report.run_report import report_run
from quire.simulation.omission import Evaluation, evaluate
home, *runs = sys.argv[1:]
for number, run in enumerate(runs):
    out = Path(home, str(number))
    app(["simulate", *run.split(), "--out", str(out)], standalone_mode=False)
    (out / "report.html").write_text(report_run(out, None))
    (out / "evaluation.txt").write_text(repr(evaluate(Evaluation(processors=3, transactions=2))))
"""


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """All runs and their reports, once for each of two ways to hash strings."""
    made = []
    for hash_seed in ("1", "12345"):
        made.append(tmp_path_factory.mktemp(f"hash-{hash_seed}"))
        subprocess.run(
            [sys.executable, "-c", SIMULATE_AND_REPORT, made[-1], *RUNS.values()],
            check=True,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
        )
    return made


@pytest.mark.parametrize("name", RUNS)
def test_the_same_command_writes_the_same_bytes_whatever_the_hash_seed(homes: list[Path], name: str) -> None:
    number = str([*RUNS].index(name))
    first, second = (content(home / number) for home in homes)
    assert len(first) > 3
    assert first.keys() == second.keys()
    assert [file for file in first if first[file] != second[file]] == []
    assert not any(str(home).encode() in data for home in homes for data in first.values()), "it says where it was written"
