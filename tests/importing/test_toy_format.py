"""A format is one module and one entry: a toy one is added to a copy of the package, and the command imports a file with it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import quire
from tests.kit.patience import PATIENCE_S

MODULE = '''
"""Arrows: `a>m1` sends message m1 from host a, `m1>b` delivers it at host b."""

import msgspec

from quire.model.errors import BadInput
from quire.pipeline.importing.chunks import read_chunk
from quire.pipeline.importing.formats.contract import Likeness, LineFormat
from quire.trace.kinds import DELIVER, SEND


class ArrowSettings(msgspec.Struct, frozen=True):
    messages: str


class Arrows(LineFormat[ArrowSettings]):
    settings = ArrowSettings

    def recognise(self, log):
        return Likeness.CERTAIN if b">" in log.head.split(b"\\n")[0] else Likeness.NONE

    def settle(self, logs, request):
        return ArrowSettings(messages="m")

    def events(self, piece, settings, found):
        data, own, _ = read_chunk(piece.chunk)
        for number, line in enumerate(data[:own].decode().splitlines(), piece.first_line):
            left, arrow, right = line.partition(">")
            if not arrow:
                raise BadInput(f"{piece.name} line {number} has no arrow")
            if right.startswith(settings.messages):
                yield number, "", left, {"kind": SEND, "key": right, "dests": ["a", "b"], "text": line}
            else:
                yield number, "", right, {"kind": DELIVER, "causes": [left], "text": line}


FORMAT = Arrows()
'''
ENTRY = '    Entry("arrows", "hosts and messages with arrows between them", "arrows"),\n'


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with the toy format, and with what was compiled: all but these modules are as they were."""
    root = tmp_path_factory.mktemp("copy")
    formats = root / "quire" / "pipeline" / "importing" / "formats"
    shutil.copytree(Path(quire.__file__).parent, root / "quire")
    (formats / "arrows.py").write_text(MODULE)
    registry = formats / "registry.py"
    text = registry.read_text()
    begin = "FORMATS: tuple[Entry, ...] = (\n"
    assert text.count(begin) == 1
    registry.write_text(text.replace(begin, begin + ENTRY))
    return root


def command(package: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(package), "COLUMNS": "200"}
    script = "from quire.cli.main import main; main()"
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, words)],
        env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip


def test_a_toy_format_is_recognised_imported_on_spark_and_in_the_help(package: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text("a>m1\nm1>a\nb>m2\nm1>b\nm2>b\nm2>a\n")

    done = command(package, "import", log, "--out", tmp_path / "run", "--master", "local[1]")

    assert done.returncode == 0, done.stderr
    assert "6 events of 2 hosts, 2 messages, 4 deliveries" in done.stdout
    rows = [row for process in range(2) for row in pq.read_table(tmp_path / f"run/trace/p0000{process}.parquet").to_pylist()]
    assert [(row["process"], row["kind"], row["origin"], row["seq"], row["text"]) for row in rows] == [
        (0, "send", 0, 0, "a>m1"), (0, "deliver", 0, 0, "m1>a"), (0, "deliver", 1, 0, "m2>a"),
        (1, "send", 1, 0, "b>m2"), (1, "deliver", 0, 0, "m1>b"), (1, "deliver", 1, 0, "m2>b"),
    ]  # fmt: skip
    help_text = " ".join(command(package, "import", "--help").stdout.split())
    assert "arrows (hosts and messages with arrows between them)" in help_text


def test_a_toy_format_refuses_what_it_does_not_take(package: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text("a>m1\n")

    refused = command(package, "import", log, "--out", tmp_path / "run", "--map", "host=x")

    assert refused.returncode == 2
    assert f"--map is for jsonl and csv, but {log} is arrows" in refused.stderr
