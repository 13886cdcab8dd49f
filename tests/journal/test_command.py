"""`quire journal`: what it shows, what it says of tails and of damage, and that it changes nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from quire.journal.disk import OwnDirectory
from quire.journal.journal import Journal
from tests.kit.files import content

QUIRE = Path(sys.executable).with_name("quire")
INCARNATION, VIEW, OP = 1, 2, 6


def quire(*words: str | Path, cwd: Path) -> tuple[int, str, str]:
    done = subprocess.run([QUIRE, "journal", *words], cwd=cwd, capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, done.stdout, done.stderr


def as_json(path: Path) -> tuple[int, dict[str, Any]]:
    code, out, complaints = quire(path.name, "--json", cwd=path.parent)
    assert complaints == ""
    return code, json.loads(out)


@pytest.fixture
def board(tmp_path: Path) -> Path:
    """A journal with a checkpoint, and another that was not completed."""
    path = tmp_path / "board.journal"
    with OwnDirectory(path) as directory:
        journal, _ = Journal.open(directory)
        journal.append([(INCARNATION, b"1"), (VIEW, b"view"), (OP, b"one"), (OP, b"more")])
        journal.keep(journal.begin([(INCARNATION, b"1"), (VIEW, b"view")]), [b"state"])
        journal.append([(OP, b"two"), (OP, b"three")])
        journal.begin([(VIEW, b"view")])
        journal.append([(OP, b"four")])
        journal.sync()
        journal.close()
    return path


def tear(board: Path) -> None:
    with (board / "000003.log").open("ab") as file:
        file.write(b"\x03\0\0\0half")


def damage(board: Path) -> None:
    data = bytearray((board / "000002.log").read_bytes())
    data[60] ^= 1
    (board / "000002.log").write_bytes(data)


def test_everything_that_is_in_it_is_shown(board: Path) -> None:
    code, out, complaints = quire("board.journal", cwd=board.parent)

    assert (code, complaints) == (0, "")
    assert [" ".join(line.split()) for line in out.splitlines() if line.strip()] == [
        "board.journal: whole",
        "file bytes records numbers",
        "000002.snapshot 39 before 5",
        "000002.log 98 5 5 to 9",
        "000003.log 59 3 10 to 12",
        "type records last",
        "incarnation 1 5",
        "view 2 10",
        "op 3 12",
        "snapshot 2 11",
    ]


def test_machines_are_told_the_same(board: Path) -> None:
    code, found = as_json(board)

    assert code == 0
    assert found == {
        "path": "board.journal",
        "verdict": "whole",
        "in_use_by": None,
        "records": 8,
        "last": 12,
        "snapshot": {"file": "000002.snapshot", "bytes": 39, "before": 5},
        "segments": [
            {"file": "000002.log", "bytes": 98, "records": 5, "first": 5, "last": 9},
            {"file": "000003.log", "bytes": 59, "records": 3, "first": 10, "last": 12},
        ],
        "types": {
            "incarnation": {"records": 1, "last": 5},
            "view": {"records": 2, "last": 10},
            "op": {"records": 3, "last": 12},
            "snapshot": {"records": 2, "last": 11},
        },
        "torn": None,
        "damage": None,
        "surplus": [],
    }


def test_a_torn_tail_is_said_and_is_no_error(board: Path) -> None:
    tear(board)

    code, found = as_json(board)
    shown = quire("board.journal", cwd=board.parent)

    assert (code, found["verdict"], found["torn"]) == (0, "torn", {"file": "000003.log", "offset": 59, "bytes": 8})
    assert shown[0] == 0
    assert shown[1].startswith(
        "board.journal: torn tail: the last 8 bytes of 000003.log, from byte 59, were being written when the process or "
        "the machine stopped; the next start removes them\n"
    )


def test_damage_is_said_with_its_offset_and_what_to_do_and_is_an_error(board: Path) -> None:
    damage(board)

    code, found = as_json(board)
    shown = quire("board.journal", cwd=board.parent)

    assert (code, found["verdict"]) == (1, "damaged")
    assert found["damage"] == {
        "file": "000002.log",
        "offset": 56,
        "why": "intact records follow it",
        "what_to_do": "move board.journal elsewhere and start without it, as a new member",
    }
    assert (shown[0], shown[2]) == (1, "")
    assert shown[1].startswith(
        "board.journal: damaged. 000002.log is damaged at byte 56: intact records follow it; "
        "move board.journal elsewhere and start without it, as a new member\n"
    )


@pytest.mark.parametrize("harm", [lambda _: None, tear, damage])
def test_looking_changes_nothing(board: Path, harm: Any) -> None:
    harm(board)
    (board / "000004.snapshot.new").write_bytes(b"never completed")
    (board / "notes.txt").write_text("not ours")
    before = content(board), {path: path.stat().st_mtime_ns for path in board.rglob("*")}, sorted(os.listdir(board.parent))

    _, found = as_json(board)

    assert found["surplus"] == ["000004.snapshot.new"]
    assert before == (content(board), {path: path.stat().st_mtime_ns for path in board.rglob("*")}, os.listdir(board.parent))


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="this machine does not tell who holds a lock")
def test_a_journal_that_is_in_use_is_looked_at_too(board: Path) -> None:
    with OwnDirectory(board) as directory:
        journal, _ = Journal.open(directory)
        tear(board)
        code, out, _ = quire("board.journal", cwd=board.parent)
        journal.close()

    assert code == 0
    assert "whole so far; the last 8 bytes of 000003.log, from byte 59, are being written\n" in out
    assert f"in use by process {os.getpid()} on " in out


def test_an_empty_journal_is_whole(tmp_path: Path) -> None:
    with OwnDirectory(tmp_path / "new"):
        pass

    code, found = as_json(tmp_path / "new")

    assert (code, found["verdict"], found["records"], found["segments"]) == (0, "whole", 0, [])


def test_what_is_no_journal_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    for name, why in (
        ("none", "it is not a directory"),
        ("file", "it is not a directory"),
        ("folder", "it has neither segments nor a lock"),
    ):
        assert quire(name, cwd=tmp_path) == (2, "", f"quire: {name} is not a journal: {why}\n")
