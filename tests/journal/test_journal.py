"""A journal of real files: what was appended is there again, one process at a time, and damage is refused."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from quire.journal.disk import OwnDirectory
from quire.journal.errors import JournalCorrupt
from quire.journal.journal import Journal, Recovered
from quire.journal.layout import log_name, snapshot_name
from quire.journal.lock import holder_of
from quire.journal.records import Record
from quire.model.errors import BadInput
from tests.kit.files import content

VIEW, OP = 2, 6


def opened(path: Path) -> Recovered:
    """What a process that opens the journal finds."""
    with_lock = OwnDirectory(path)
    try:
        journal, recovered = Journal.open(with_lock)
        journal.close()
    finally:
        with_lock.close()
    return recovered


def write(path: Path, work: Callable[[Journal], object]) -> None:
    directory = OwnDirectory(path)
    journal, _ = Journal.open(directory)
    work(journal)
    journal.close()
    directory.close()


def three(journal: Journal) -> None:
    journal.append([(VIEW, b"one"), (OP, b"two")])
    journal.append([(OP, b"three")])
    journal.sync()


THREE = [Record(1, VIEW, b"one"), Record(2, OP, b"two"), Record(3, OP, b"three")]


def test_records_are_there_again_and_numbers_go_on(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "board.journal"
    assert opened(path) == Recovered(None, [], None)

    write(path, three)

    assert opened(path) == Recovered(None, THREE, None)
    write(path, lambda journal: journal.append([(OP, b"four")]))
    assert opened(path).records == [*THREE, Record(4, OP, b"four")]
    assert sorted(content(path)) == ["000001.log", "lock"]
    assert (path.stat().st_mode & 0o777, (path / "000001.log").stat().st_mode & 0o777) == (0o700, 0o600)


@pytest.mark.parametrize("tail", [b"\x07", bytes(4096), b"garbage" * 30])
def test_a_torn_tail_is_cut_off_and_said(tmp_path: Path, tail: bytes) -> None:
    write(tmp_path, three)
    log = tmp_path / log_name(1)
    size = log.stat().st_size
    with log.open("ab") as file:
        file.write(tail)

    recovered = opened(tmp_path)

    assert recovered.records == THREE
    assert recovered.torn == (log.name, size, len(tail))
    assert log.stat().st_size == size
    assert opened(tmp_path).torn is None


def damage(file: Path, offset: int) -> None:
    data = bytearray(file.read_bytes())
    data[offset] ^= 0xFF
    file.write_bytes(data)


def test_damage_in_the_middle_is_refused_and_nothing_is_changed(tmp_path: Path) -> None:
    write(tmp_path, three)
    damage(tmp_path / log_name(1), 22)
    before = content(tmp_path)

    with pytest.raises(JournalCorrupt, match=r"000001\.log is damaged at byte 20: intact records follow it; ") as caught:
        opened(tmp_path)

    assert (caught.value.path, caught.value.offset) == (tmp_path / log_name(1), 20)
    assert content(tmp_path) == before


def checkpoint(journal: Journal, *state: bytes) -> None:
    journal.keep(journal.begin([(VIEW, b"view")]), state)


def with_checkpoint(journal: Journal) -> None:
    three(journal)
    checkpoint(journal, b"state", b"", b"s" * 3_000_000)
    journal.append([(OP, b"after")])
    journal.sync()


def test_a_checkpoint_takes_the_place_of_everything_before(tmp_path: Path) -> None:
    write(tmp_path, with_checkpoint)

    recovered = opened(tmp_path)

    assert recovered.snapshot is not None
    assert b"".join(recovered.snapshot.chunks()) == b"state" + b"s" * 3_000_000
    assert max(map(len, recovered.snapshot.chunks())) <= 1 << 20, "nobody needs it whole in memory"
    assert recovered.records == [Record(4, VIEW, b"view"), Record(6, OP, b"after")]
    assert sorted(content(tmp_path)) == ["000002.log", "000002.snapshot", "lock"]


def test_an_empty_state_is_a_state(tmp_path: Path) -> None:
    write(tmp_path, checkpoint)

    recovered = opened(tmp_path)

    assert recovered.snapshot is not None
    assert list(recovered.snapshot.chunks()) == []


def test_a_segment_without_its_snapshot_goes_on_from_the_one_before(tmp_path: Path) -> None:
    def unfinished(journal: Journal) -> None:
        with_checkpoint(journal)
        journal.begin([(VIEW, b"again"), (OP, b"after, again")])
        journal.append([(OP, b"last")])

    write(tmp_path, unfinished)

    assert opened(tmp_path).records == [Record(4, VIEW, b"view"), Record(6, OP, b"after"), Record(10, OP, b"last")]
    assert sorted(content(tmp_path)) == ["000002.log", "000002.snapshot", "000003.log", "lock"]
    write(tmp_path, checkpoint)
    assert sorted(content(tmp_path)) == ["000004.log", "000004.snapshot", "lock"]
    assert opened(tmp_path).records == [Record(11, VIEW, b"view")]


def test_a_segment_that_was_being_begun_is_removed(tmp_path: Path) -> None:
    write(tmp_path, with_checkpoint)
    write(tmp_path, lambda journal: journal.begin([(VIEW, b"again")]))
    begun = tmp_path / log_name(3)
    for size in range(begun.stat().st_size):
        begun.write_bytes(begun.read_bytes()[:size])
        recovered = opened(tmp_path)
        assert recovered.records[-1] == Record(6, OP, b"after")
        assert recovered.torn == ((begun.name, 0, size) if size else None)
        assert not begun.exists()
        write(tmp_path, lambda journal: journal.begin([(VIEW, b"again")]))


def test_size_says_how_much_would_be_read_again(tmp_path: Path) -> None:
    sizes = []

    def watched(journal: Journal) -> None:
        sizes.append(journal.size)
        three(journal)
        sizes.append(journal.size)
        point = journal.begin([(VIEW, b"view")])
        journal.append([(OP, b"after")])
        sizes.append(journal.size)
        journal.keep(point, [b"state"])
        sizes.append(journal.size)

    write(tmp_path, watched)

    assert sizes == [0, 62, 62 + 60, 60]
    write(tmp_path, lambda journal: sizes.append(journal.size))
    assert sizes[-1] == 60


def only_segment(path: Path) -> Path:
    (path / log_name(3)).unlink()
    return path / log_name(2)


@pytest.mark.parametrize(
    ("harm", "sentence"),
    [
        (lambda path: (path / log_name(2)).unlink(), r"000002\.log is damaged at byte 0: the file is missing"),
        (lambda path: only_segment(path).write_bytes(b""), r"000002\.log is damaged at byte 0: the segment lacks"),
        (lambda path: damage(path / snapshot_name(2), 20), r"000002\.snapshot is damaged at byte 0: the snapshot is incompl"),
        (lambda path: damage(path / snapshot_name(2), 2_000_000), r"000002\.snapshot is damaged at byte \d{7}: the snapshot"),
        (lambda path: os.truncate(path / snapshot_name(2), 1_048_615), "snapshot is damaged at byte .*: the snapshot is inc"),
        (lambda path: os.truncate(path / snapshot_name(2), 0), "snapshot is damaged at byte 0: the snapshot is incomplete"),
        (lambda path: (path / log_name(3)).rename(path / log_name(4)), r"000003\.log is damaged at byte 0: the file is"),
        (lambda path: os.truncate(path / log_name(2), 43), r"000002\.log is damaged at byte 38: intact records follow"),
        (lambda path: os.truncate(path / log_name(2), 38), r"000003\.log is damaged at byte 0: intact records follow"),
        (lambda path: damage(path / log_name(3), 3), r"000003\.log is damaged at byte 0: intact records follow"),
    ],
)  # fmt: skip
def test_whatever_is_missing_or_damaged_is_refused(tmp_path: Path, harm: Callable[[Path], object], sentence: str) -> None:
    def two_segments(journal: Journal) -> None:
        with_checkpoint(journal)
        journal.begin([(VIEW, b"again")])
        journal.append([(OP, b"last")])

    write(tmp_path, two_segments)
    harm(tmp_path)
    before = content(tmp_path)

    with pytest.raises(JournalCorrupt, match=sentence):
        opened(tmp_path)

    assert content(tmp_path) == before


HOLDER = """
import sys, pathlib
from quire.journal.disk import OwnDirectory
directory = OwnDirectory(pathlib.Path(sys.argv[1]))
print("locked", flush=True)
sys.stdin.read()
"""


def test_one_process_at_a_time_has_a_journal_and_the_next_is_told_which(tmp_path: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        who = f"process {holder.pid} on {socket.gethostname()}"
        with pytest.raises(BadInput, match=f"{tmp_path} is in use by {who}; a journal belongs to one process at a time"):
            OwnDirectory(tmp_path)
        if Path("/proc/locks").exists():
            assert holder_of(tmp_path) == who
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.communicate()

    assert holder_of(tmp_path) is None
    OwnDirectory(tmp_path).close()


def test_one_process_does_not_open_a_journal_twice(tmp_path: Path) -> None:
    first = OwnDirectory(tmp_path)
    with pytest.raises(BadInput, match=f"is in use by process {os.getpid()} on "):
        OwnDirectory(tmp_path)
    first.close()
    OwnDirectory(tmp_path).close()


def test_a_directory_with_other_things_is_no_journal(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(BadInput, match="is not a journal, because it holds other files; name a new directory"):
        OwnDirectory(tmp_path)
    with pytest.raises(BadInput, match=r"cannot write .*thesis\.tex"):
        OwnDirectory(tmp_path / "thesis.tex")
    assert content(tmp_path) == {"thesis.tex": b"precious"}


def test_a_copy_without_its_lock_is_a_journal(tmp_path: Path) -> None:
    write(tmp_path / "one", three)
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / log_name(1)).write_bytes((tmp_path / "one" / log_name(1)).read_bytes())

    assert opened(tmp_path / "two").records == THREE
