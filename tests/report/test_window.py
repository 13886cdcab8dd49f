"""The part of a run that its report draws: which events, and which of them together."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quire.model.messages import MessageId
from quire.pipeline.auditing.auditor import audit_here
from quire.pipeline.layout import lay_out
from quire.report.run_report import report_run
from quire.report.window import find_centre, find_messages, parse_centre, read_window
from quire.trace.kinds import DELIVER, KINDS, SEND
from quire.trace.store import open_run
from tests.audit.traces import plain, random_trace, timed, write
from tests.report.reported import data_of, rows_of, simulated


@pytest.mark.parametrize("centre", ["start", "end", "witness", "2:7", "@100"])
def test_a_window_holds_so_many_marks_in_local_order_without_gaps_and_its_centre(centre: str, tmp_path: Path) -> None:
    layout = lay_out(open_run(simulated(tmp_path / "run", messages=60)))
    window = read_window(layout, find_centre(layout, parse_centre(centre), ()), 100)
    assert len(window.marks) == 100
    assert "of" in window.description
    rows = window.marks.rows.select(["process", "pos", "lamport", "origin", "seq", "kind"]).to_pylist()
    assert [(row["process"], row["pos"]) for row in rows] == sorted((row["process"], row["pos"]) for row in rows)
    packets = window.packets.select(["process", "pos"]).to_pylist()
    for process in range(4):
        shown = sorted(pos for row, last in zip(rows, window.marks.last_pos.tolist(), strict=True) if row["process"] == process
                       for pos in range(row["pos"], last + 1))  # fmt: skip
        places = sorted({*shown, *(packet["pos"] for packet in packets if packet["process"] == process)})
        assert places == list(range(places[0], places[0] + len(places)))
    if centre == "2:7":
        assert any(row["kind"] == "send" and (row["origin"], row["seq"]) == (2, 7) for row in rows)
    if centre in ("start", "witness"):
        assert min(row["pos"] for row in rows) == 0


def test_a_window_reads_only_the_row_groups_that_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a trace in many row groups, and with the same events for any size of them."""
    source = random.Random(5)
    logs: list[list[str]] = [[] for _ in range(3)]
    for number in range(300):
        p = source.randrange(3)
        sent = sum(word[0] == "s" for word in logs[p])
        logs[p].append(f"s{sent}>012")
        for q in range(3):
            logs[q].append(f"d{p}:{sent}")
        assert number >= 0
    trace = plain(*(" ".join(log) for log in logs))
    read: list[int] = []
    original = pq.ParquetFile.read_row_group

    def counted(self: Any, index: int, **options: Any) -> pa.Table:
        read.append(index)
        return original(self, index, **options)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", counted)
    shown = []
    for rows_per_append in (7, 100_000):
        layout = lay_out(open_run(write(tmp_path / f"run{rows_per_append}", trace, rows_per_append=rows_per_append)))
        centre = find_centre(layout, parse_centre("@200"), ())
        read.clear()
        shown.append(read_window(layout, centre, 60).marks.rows.select(["process", "pos"]).to_pylist())
        if rows_per_append == 7:
            assert len(layout.groups) > 100
            assert len(read) < 60
    assert shown[0] == shown[1]


def test_a_window_of_a_trace_with_useless_logical_times_is_its_beginning(tmp_path: Path) -> None:
    trace = plain("s0>01 d0:0 s1>01 d0:1", "d0:0 d0:1")
    directory = write(tmp_path / "run", trace._replace(clocks=[[None] * len(log) for log in trace.logs]))
    layout = lay_out(open_run(directory))
    window = read_window(layout, find_centre(layout, "start", ()), 3)
    assert "no usable logical times" in window.description
    assert len(window.marks) == 3
    assert len(data_of(report_run(directory, None))["trace"]["process"]) == 6


def test_too_many_members_are_narrowed_to_the_busiest_and_those_of_the_story(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quire.report.window.MEMBERS_MAX", 2)
    layout = lay_out(open_run(simulated(tmp_path / "run")))
    window = read_window(layout, find_centre(layout, "start", ()), 100, keep=(3,))
    assert len(window.members) == 2
    assert 3 in window.members


def in_a_row(origin: int, numbers: range) -> str:
    return " ".join(f"d{origin}:{number}" for number in numbers)


def demo_like(messages: int = 3_000, run: int = 1_000) -> Any:
    """Three members send so many messages in runs, as live members do, and deliver them in the same order."""
    logs: list[list[str]] = [[], [], []]
    for first in range(0, messages, run):
        for sender in range(3):
            numbers = range(first, first + run)
            logs[sender] += [f"s{number}>012" for number in numbers]
            for log in logs:
                log.append(in_a_row(sender, numbers))
    return plain(*(" ".join(log) for log in logs))


def test_messages_in_a_row_are_one_mark_so_a_window_shows_every_member_and_what_it_delivered(tmp_path: Path) -> None:
    directory = write(tmp_path / "run", demo_like())
    trace = data_of(report_run(directory, None))["trace"]
    marks = list(zip(trace["process"], trace["kind"], trace["origin"], trace["seq"], trace["count"], strict=True))
    for member in range(3):
        runs = [(member, SEND, member, first, 1_000) for first in range(0, 3_000, 1_000)]
        assert [mark for mark in marks if mark[:2] == (member, SEND)] == runs
        delivered = [mark[2:4] for mark in marks if mark[:2] == (member, DELIVER)]
        assert delivered == [(sender, first) for first in range(0, 3_000, 1_000) for sender in range(3)]
    assert len(marks) == 36
    assert max(trace["step"]) < 30


def test_every_event_of_a_random_trace_is_in_one_mark_and_marks_are_of_messages_in_a_row(tmp_path: Path) -> None:
    together = 0
    for seed in range(30):
        trace = random_trace(random.Random(seed))
        if not any(trace.logs):
            continue
        directory = write(tmp_path / str(seed), trace)
        layout = lay_out(open_run(directory))
        marks = read_window(layout, find_centre(layout, "start", ())).marks
        found = []
        for row, kind, count in zip(marks.rows.to_pylist(), marks.kind.tolist(), marks.count.tolist(), strict=True):
            together += count > 1
            for number in range(count):
                seq = row["seq"] if row["seq"] is None else row["seq"] + number
                found.append((row["process"], KINDS[kind], row["origin"], seq, row["group"]))
        events = [row for row in rows_of(directory) if row["kind"] != "packet"]
        keys = [(row["process"], row["kind"], row["origin"], row["seq"], row["group"]) for row in events]
        assert sorted(found, key=str) == sorted(keys, key=str)
    assert together, "some marks have several messages"


def test_messages_of_one_instant_are_not_drawn_with_those_of_another(tmp_path: Path) -> None:
    trace = plain("s0>0 s1>0 s2>0 s3>0 s4>0 s5>0 s6>0 s7>0", "")
    directory = write(tmp_path / "run", trace)
    for path in (directory / "trace").glob("*.parquet"):
        table = pq.read_table(path)
        times = pa.array([1] * 4 + [5] * 4, pa.int64())
        pq.write_table(table.set_column(table.schema.get_field_index("time_ns"), table.schema.field("time_ns"), times), path)
    found = data_of(report_run(directory, None))["trace"]
    assert (found["count"], found["time"]) == ([4, 4], [0, 4])


def test_the_events_of_a_witness_are_never_hidden_in_a_run(tmp_path: Path) -> None:
    late = " ".join(in_a_row(0, part) for part in (range(17), range(18, 19), range(17, 18), range(19, 40)))
    sends = " ".join(f"s{number}>012" for number in range(40))
    directory = write(tmp_path / "run", plain(f"{sends} {in_a_row(0, range(40))}", in_a_row(0, range(40)), late))
    data = data_of(report_run(directory, audit_here(directory)))
    trace = data["trace"]
    counts = {(p, pos): count for p, pos, count in zip(trace["process"], trace["pos"], trace["count"], strict=True)}
    assert data["witnesses"]["fifo"]
    assert all(counts[process, pos] == 1 for events in data["witnesses"].values() for process, pos in events)
    assert max(trace["count"]) > 10


def test_a_run_that_is_too_long_to_be_read_says_that_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quire.report.window.ROWS_MAX", 900)
    directory = write(tmp_path / "run", demo_like(messages=1_000, run=1_000), rows_per_append=100)
    layout = lay_out(open_run(directory))
    marks = read_window(layout, find_centre(layout, "start", ()), 100).marks
    assert marks.cut.any()
    assert all(count < 1_000 for count, cut in zip(marks.count.tolist(), marks.cut.tolist(), strict=True) if cut)
    assert all(count == 1_000 for count, cut in zip(marks.count.tolist(), marks.cut.tolist(), strict=True) if not cut)


def test_messages_are_found_wherever_they_are(tmp_path: Path) -> None:
    trace = timed(plain("s0>01 d0:0 s1>01 d0:1", "d0:0 d0:1").logs)
    layout = lay_out(open_run(write(tmp_path / "run", trace, rows_per_append=1)))
    assert [(event.process, event.pos) for event in find_messages(layout, [MessageId(0, 1)])] == [(0, 2), (0, 3), (1, 1)]
