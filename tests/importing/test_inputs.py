"""Files as people have them: compressed, through pipes, in directories, with lines that are no events."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from quire.cli.app import app
from quire.model.errors import BadInput
from quire.pipeline.importing.importer import import_with
from quire.pipeline.importing.previewing import preview
from quire.pipeline.importing.request import ImportRequest
from quire.pipeline.importing.results import Imported
from quire.pipeline.importing.tasks import IMPORT
from quire.pipeline.tasks import run_here
from tests.importing.kit import rows

HERE = run_here(IMPORT)
LOG = b'{"host":"a","kind":"send","message":"m"}\n{"host":"b","kind":"recv","message":"m"}\n'


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "plain": lambda data: data,
    "a byte order mark": lambda data: b"\xef\xbb\xbf" + data,
    "carriage returns": lambda data: data.replace(b"\n", b"\r\n"),
    "UTF-16": lambda data: data.decode().encode("utf-16"),
    "gzip": gzip.compress,
    "two members of gzip": lambda data: gzip.compress(data[:40]) + gzip.compress(data[40:]),
    "gzip in gzip": lambda data: gzip.compress(gzip.compress(data)),
}


def imported(tmp_path: Path, *files: Path, **wanted: Any) -> Imported:
    return import_with(HERE, files, tmp_path / "run", ImportRequest(**wanted), force=True)


def test_a_log_may_begin_with_comments_that_are_no_events(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(b"# first\n\n# and second\n" + LOG)

    assert imported(tmp_path, tmp_path / "log.jsonl", where="^[^#]").executions[0].events == 2

    with pytest.raises(BadInput, match="is in none of the formats"):
        imported(tmp_path, tmp_path / "log.jsonl")
    (tmp_path / "log.jsonl").write_bytes(b"# nothing\n# else\n")
    with pytest.raises(BadInput, match="is in none of the formats"):
        imported(tmp_path, tmp_path / "log.jsonl", where="^[^#]")


@pytest.mark.parametrize("how", PACKED)
def test_packed_files_are_read_like_plain_ones(tmp_path: Path, how: str) -> None:
    (tmp_path / "log.jsonl").write_bytes(PACKED[how](LOG))

    done = imported(tmp_path, tmp_path / "log.jsonl").executions[0]

    assert (done.hosts, done.events, done.messages) == (("a", "b"), 2, 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.jsonl", "run"]


@pytest.mark.parametrize("how", PACKED)
@pytest.mark.parametrize(
    "log",
    [b'x\na {"a":1}\ny\nb {"a":1, "b":1}\n', b'a {"a":1}\nx\nb {"a":1, "b":1}\ny\n', b'a {"a":1} x\nb {"a":1, "b":1} y\n'],
)
def test_packed_logs_of_every_layout_are_read_like_plain_ones(tmp_path: Path, how: str, log: bytes) -> None:
    (tmp_path / "log.txt").write_bytes(PACKED[how](log))

    done = imported(tmp_path, tmp_path / "log.txt").executions[0]

    assert (done.hosts, done.events, done.links, not done.messages) == (("a", "b"), 2, 1, False)
    assert [row["text"] for row in rows(tmp_path / "run") if not row["implied"]] == ["x", "y"]


def test_zstd_directories_and_pipes_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "logs" / "inner").mkdir(parents=True)
    (tmp_path / "logs" / "_hidden").write_bytes(b"nothing")
    (tmp_path / "logs" / "inner" / "log.jsonl").write_bytes(LOG)
    with pa.OSFile(str(tmp_path / "log.jsonl.zst"), "wb") as file, pa.CompressedOutputStream(file, "zstd") as stream:
        stream.write(LOG)
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(LOG,))
    writer.start()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(LOG)))

    for path in (tmp_path / "logs", tmp_path / "log.jsonl.zst", tmp_path / "pipe", Path("-")):
        assert imported(tmp_path, path).executions[0].events == 2, path
    writer.join()


def test_lines_that_are_no_events_are_skipped_left_out_or_set_apart(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("made by hand\nhost,event\n# a comment,\na,one\nb\nc,two\n")

    done = import_with(
        HERE, [tmp_path / "log.csv"], tmp_path / "run", ImportRequest(skip_lines=1, where="^[^#]"), set_apart=tmp_path / "apart"
    )

    assert [row["text"] for row in rows(tmp_path / "run")] == ["one", "two"]
    assert [row["line"] for row in rows(tmp_path / "run")] == [4, 6]
    assert done.set_apart == 1
    (apart,) = [json.loads(line) for line in (tmp_path / "apart" / "lines.jsonl").read_text().splitlines()]
    assert (apart["line"], apart["text"]) == (5, "b")
    assert "has 1 columns, but the header has 2" in apart["reason"]
    with pytest.raises(BadInput, match="exists already"):
        import_with(HERE, [tmp_path / "log.csv"], tmp_path / "new", ImportRequest(), set_apart=tmp_path / "apart")


def test_broken_lines_of_json_are_set_apart_too(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(LOG + b'{"host":\n{"kind":"send"}\n\xff\n')

    done = import_with(
        HERE, [tmp_path / "log.jsonl"], tmp_path / "run", ImportRequest(chunk_bytes=50), set_apart=tmp_path / "apart"
    )

    assert (done.executions[0].events, done.set_apart) == (2, 3)
    apart = [json.loads(line) for line in (tmp_path / "apart" / "lines.jsonl").read_text().splitlines()]
    assert [line["line"] for line in apart] == [3, 4, 5]


def test_a_dry_run_shows_ten_events_and_writes_nothing(tmp_path: Path) -> None:
    lines = [json.dumps({"host": "a", "event": f"no. {number} \u001b[31m", "extra": 1}) for number in range(40)]
    (tmp_path / "log.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))

    found = preview([tmp_path / "log.jsonl.gz"], ImportRequest())
    result = CliRunner().invoke(app, ["import", str(tmp_path / "log.jsonl.gz"), "--out", str(tmp_path / "run"), "--dry-run"])

    assert [event.line for event in found.events] == list(range(1, 11))
    assert found.unused == ("extra",)
    assert result.exit_code == 0, result.exception
    assert "no. 9" in result.stdout
    assert "\u001b" not in result.stdout
    assert "columns not used: extra; nothing was written" in result.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["log.jsonl.gz"]


def test_hosts_without_links_are_noted_with_the_columns_that_were_not_used(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text('{"host":"a","vclk":1}\n{"host":"b","vclk":2}\n')

    done = imported(tmp_path, tmp_path / "log.jsonl")

    assert done.notes == (
        "there are 2 hosts, but no message, clock or cause links one with another; these columns were not used: vclk",
    )
