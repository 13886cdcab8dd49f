"""Parts of a run: readable while they grow, after a crash, and from any place to any other."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.trace.log import Address, EventLog
from quire.trace.parts.description import PartEnd, RunIdentity, describe_part, read_clock
from quire.trace.parts.frames import RECORDS, NewNames, read_frames
from quire.trace.parts.reader import ROWS_MAX, Part, Piece, Reach, part_files
from quire.trace.parts.writer import PartWriter

RUN = RunIdentity(run="a-run", group="g", protocol="fifo", options={}, members=3, promises=())


def write_part(directory: Path, spills: Sequence[Sequence[tuple[int, str, int]]], *, ended: bool = True) -> Part:
    """A process that sends `count` messages to a process with a word, and then some packet of that name, spill by spill."""
    log, writer = EventLog(1), PartWriter(directory, describe_part(RUN, 1))
    addresses = packet_types = sent = lamport = 0
    for spill in spills:
        for dest, word, count in spill:
            log.send(1, sent, count, lamport + 1, 7, log.address(Address(None, (dest,), txn=word)), 5)
            log.packet(word, 1, lamport + count + 1, 8, 40, 5 * count)
            sent, lamport = sent + count, lamport + count + 1
        names = NewNames(tuple(log.names.addresses[addresses:]), tuple(log.names.packet_types[packet_types:]))
        addresses, packet_types = len(log.names.addresses), len(log.names.packet_types)
        writer.append(names, log.take())
    if ended:
        writer.end(PartEnd(clock=read_clock(), details={"well": True}))
    writer.close()
    return Part(writer.description_path)


def rows_of(part: Part, since: Reach | None = None, until: Reach | None = None) -> list[dict[str, Any]]:
    return [row for table in part.rows(since or Reach(), until or part.reach()) for row in table.to_pylist()]


def end_of(part: Part) -> PartEnd | None:
    return next((found for found in part.read() if isinstance(found, PartEnd)), None)


SPILLS = st.lists(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from("abcde"), st.integers(1, 4)), max_size=4), min_size=1, max_size=5
)


@given(SPILLS, st.data())
def test_a_log_that_is_cut_off_anywhere_gives_the_rows_before_the_cut(
    tmp_path_factory: pytest.TempPathFactory, spills: list[list[tuple[int, str, int]]], data: st.DataObject
) -> None:
    part = write_part(tmp_path_factory.mktemp("parts"), spills)
    whole, rows = part.log_path.read_bytes(), rows_of(part)
    cut = data.draw(st.integers(0, len(whole) - 1))
    with part.log_path.open("rb") as file:
        kept = [frame.end for frame in read_frames(file) if frame.end <= cut]
    part.log_path.write_bytes(whole[:cut])

    left = rows_of(part)

    assert left == rows[: len(left)]
    assert part.reach().bytes == max(kept, default=0)
    assert part.reach().rows == len(left)
    assert end_of(part) is None


@given(SPILLS, st.data())
def test_what_is_read_in_two_steps_is_what_is_read_in_one(
    tmp_path_factory: pytest.TempPathFactory, spills: list[list[tuple[int, str, int]]], data: st.DataObject
) -> None:
    part = write_part(tmp_path_factory.mktemp("parts"), spills)
    whole = part.log_path.read_bytes()
    part.log_path.write_bytes(whole[: data.draw(st.integers(0, len(whole)))])
    halfway = part.reach()
    part.log_path.write_bytes(whole)

    assert part.reach(halfway) == part.reach()
    assert rows_of(part, until=halfway) + rows_of(part, since=halfway) == rows_of(part)


@given(SPILLS.filter(any), st.data())
def test_a_damaged_byte_ends_what_can_be_used_and_never_changes_it(
    tmp_path_factory: pytest.TempPathFactory, spills: list[list[tuple[int, str, int]]], data: st.DataObject
) -> None:
    part = write_part(tmp_path_factory.mktemp("parts"), spills)
    rows, damaged = rows_of(part), bytearray(part.log_path.read_bytes())
    at = data.draw(st.integers(0, len(damaged) - 1))
    damaged[at] ^= data.draw(st.integers(1, 255))
    part.log_path.write_bytes(damaged)

    left = rows_of(part)

    assert left == rows[: len(left)]
    assert part.reach().bytes <= at
    assert end_of(part) is None


def test_records_of_which_a_byte_was_changed_are_not_used(tmp_path: Path) -> None:
    part = write_part(tmp_path, [[(0, "x", 1)], [(1, "x", 1)]])
    with part.log_path.open("rb") as file:
        *_, before, changed, _ = read_frames(file)
    log = bytearray(part.log_path.read_bytes())
    log[changed.end - 1] ^= 1
    part.log_path.write_bytes(log)

    assert part.reach().bytes == before.end


def test_rows_say_what_was_recorded(tmp_path: Path) -> None:
    part = write_part(tmp_path, [[(2, "x", 2)], [(0, "y", 1)]])

    assert [(row["run"], row["process"], row["pos"], row["kind"], row["seq"], row["dests"], row["txn"], row["packet"])
            for row in rows_of(part)] == [
        ("a-run", 1, 0, "send", 0, [2], "x", None),
        ("a-run", 1, 1, "send", 1, [2], "x", None),
        ("a-run", 1, 2, "packet", None, None, None, "x"),
        ("a-run", 1, 3, "send", 2, [0], "y", None),
        ("a-run", 1, 4, "packet", None, None, None, "y"),
    ]  # fmt: skip
    end = end_of(part)
    assert end is not None
    assert end.details == {"well": True}


def test_rows_that_are_read_on_from_a_place_are_numbered_on(tmp_path: Path) -> None:
    part = write_part(tmp_path, [[(2, "x", 2)], [(0, "y", 1)]])
    with part.log_path.open("rb") as file:
        halfway = next(frame.end for frame in read_frames(file) if frame.kind == RECORDS)

    assert [row["pos"] for row in rows_of(part, since=Reach(halfway, 3))] == [3, 4]


def test_long_runs_are_read_in_pieces_of_bounded_size(tmp_path: Path) -> None:
    part = write_part(tmp_path, [[(0, "x", 8192)] * 300])

    pieces = [piece.records for piece in part.read() if isinstance(piece, Piece)]

    assert len(pieces) > 1
    assert all(piece[:, 3].sum() <= ROWS_MAX for piece in pieces)
    assert [int(number) for piece in pieces for number in piece[piece[:, 0] == 0, 2]] == list(range(0, 8192 * 300, 8192))


def test_short_frames_are_read_together(tmp_path: Path) -> None:
    """A process that says a little now and then would otherwise have row groups of a few rows."""
    part = write_part(tmp_path, [[(0, "x", 1)]] * 50)

    assert len([piece for piece in part.read() if isinstance(piece, Piece)]) == 1


def test_a_description_is_there_from_the_start_and_says_whose_part_it_is(tmp_path: Path) -> None:
    before = read_clock()
    writer = PartWriter(tmp_path, describe_part(RUN, 2))

    (path,) = part_files(tmp_path)
    part = Part(path)

    assert (part.process, part.description.identity) == (2, RUN)
    assert before.wall_ns <= part.description.clock.wall_ns
    assert before.monotonic_ns <= part.description.clock.monotonic_ns
    assert part.reach() == Reach()
    assert part_files(tmp_path, 2) == [path]
    assert part_files(tmp_path, 1) == []
    writer.close()


def test_parts_of_one_process_are_sorted_by_when_it_was_started(tmp_path: Path) -> None:
    for _ in range(3):
        PartWriter(tmp_path, describe_part(RUN, 0)).close()

    began = [Part(path).description.clock.wall_ns for path in part_files(tmp_path)]

    assert len(began) == 3
    assert began == sorted(began)


ENDLESS = """
import sys
from pathlib import Path
import msgspec
from quire.live.spool import Spool
from quire.trace.log import Address, EventLog
from quire.trace.parts.description import RunIdentity, describe_part
from quire.trace.parts.writer import PartWriter

identity = msgspec.json.decode(sys.argv[2], type=RunIdentity)
log = EventLog(1, (Address("all", (0, 1, 2)),))
spool = Spool(log, PartWriter(Path(sys.argv[1]), describe_part(identity, 1)))
sent = 0
while True:
    log.send(1, sent, 1, sent + 1, 7, 0, 5)
    sent += 1
    if sent % 100 == 0:
        spool.spill()
        print(sent, flush=True)
"""


def test_a_process_that_is_killed_leaves_what_it_had_done(tmp_path: Path) -> None:
    command = [sys.executable, "-c", ENDLESS, str(tmp_path), msgspec.json.encode(RUN).decode()]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for _ in range(20):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)

    (path,) = part_files(tmp_path)
    part = Part(path)
    rows = rows_of(part)

    assert [row["seq"] for row in rows] == list(range(len(rows)))
    assert end_of(part) is None
