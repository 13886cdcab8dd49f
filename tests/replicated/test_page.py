"""The example of docs/replicated.md, run as it stands there: three processes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import quire
from quire.live.runs.fleet import free_addresses

PAGE = Path(__file__).parents[2] / "docs" / "replicated.md"


def test_the_example_runs_as_it_stands(tmp_path: Path) -> None:
    example = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[0]
    for number, address in enumerate(free_addresses(3)):
        example = example.replace(f"127.0.0.1:{7000 + number}", address)
    (tmp_path / "board.py").write_text(example)
    members = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "board.py", str(me)],
            cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for me in range(3)
    ]  # fmt: skip
    for me, each in enumerate(members):
        out, complaints = each.communicate(timeout=120)
        assert (each.returncode, complaints, out.split()) == (0, "", ["True", str(me), "0"])


def test_the_page_names_what_ready_made_objects_have() -> None:
    text = PAGE.read_text()
    for cls in (quire.ReplicatedDict, quire.ReplicatedCounter, quire.ReplicatedQueue, quire.Lock, quire.Election):
        [row] = [line for line in text.splitlines() if line.startswith(f"| `{cls.__name__}")]
        methods = [] if cls is quire.Election else [*cls._commands, *cls._copies]
        assert [name for name in methods if f"`{name}" not in row and f".{name}(" not in row] == []
