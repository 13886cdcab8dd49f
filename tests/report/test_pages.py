"""Reports as files: what they say is what the trace holds, and nothing in a trace can break out of them."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quire.model.errors import BadInput
from quire.model.messages import MessageId
from quire.pipeline.auditing.auditor import audit_here
from quire.pipeline.auditing.verdicts import Verdict
from quire.pipeline.layout import lay_out
from quire.pipeline.tasks import run_here
from quire.report.order import Event, steps
from quire.report.run_report import report_run
from quire.report.scan import scan
from quire.report.sweep_report import agrees, curves, report_sweep
from quire.report.window import EVENTS_MAX, find_centre, find_messages, parse_centre, read_window
from quire.report.write import write_report
from quire.simulation.config import NetworkConfig, SimulationConfig, WorkloadConfig
from quire.simulation.simulate import simulate
from quire.sweep.chunks import CHUNKS
from quire.sweep.figures import Claim, Figure
from quire.sweep.grid import Grid, GridFile, read_grid
from quire.sweep.store import SweepStore, open_sweep
from quire.sweep.sweeper import sweep_into
from quire.trace.kinds import DELIVER, KINDS, SEND
from quire.trace.store import open_run
from tests.audit.traces import plain, random_trace, timed, write


def simulated(directory: Path, protocol: str = "single-phase", **workload: Any) -> Path:
    network = NetworkConfig(delay="exponential:10")
    given = {"messages": 20, "spacing": "poisson", "interval_ms": 7.0, **workload}
    simulate(SimulationConfig(protocol=protocol, members=4, network=network, workload=WorkloadConfig(**given)), directory)
    return directory


def rows_of(directory: Path) -> list[dict[str, Any]]:
    return [row for path in sorted((directory / "trace").glob("*.parquet")) for row in pq.read_table(path).to_pylist()]


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def test_the_scan_finds_what_a_plain_loop_finds(tmp_path: Path) -> None:
    directory = simulated(tmp_path / "run")
    rows = rows_of(directory)
    found = scan(lay_out(open_run(directory)))
    sent = {(row["origin"], row["seq"]): row["time_ns"] for row in rows if row["kind"] == "send"}
    deliveries = [row for row in rows if row["kind"] == "deliver"]
    origin = sorted(row["time_ns"] - sent[row["origin"], row["seq"]] for row in deliveries if row["origin"] == row["process"])
    remote = sorted(row["time_ns"] - sent[row["origin"], row["seq"]] for row in deliveries if row["origin"] != row["process"])
    assert (found.messages, found.deliveries, found.backwards) == (len(sent), len(deliveries), 0)
    assert (found.origin.total(), found.remote.total()) == (len(origin), len(remote))
    for distribution, exact in ((found.origin, origin), (found.remote, remote)):
        assert distribution.quantile(50) == pytest.approx(exact[(len(exact) - 1) // 2], rel=0.0006)
        assert distribution.longest() == exact[-1]
        assert distribution.mean() == sum(exact) / len(exact)
    packets = [row for row in rows if row["kind"] == "packet"]
    assert sum(cost.packets for cost in found.packets.values()) == len(packets)
    assert sum(cost.copies for cost in found.packets.values()) == sum(row["fanout"] for row in packets)
    assert sum(cost.header_bytes for cost in found.packets.values()) == sum(row["header_bytes"] for row in packets)
    assert (found.on_the_way[:, -1] == 0).all(), "everything arrived"
    assert found.on_the_way.max() > 0


def test_a_trace_without_times_is_scanned_by_logical_time_and_says_nothing_of_latency(tmp_path: Path) -> None:
    directory = write(tmp_path / "run", plain("s0>01 d0:0", "d0:0 s0>01 d1:0"))
    found = scan(lay_out(open_run(directory)))
    assert (found.axis, found.messages, found.deliveries) == ("lamport", 2, 3)
    assert not found.origin
    assert "has no times" in report_run(directory, None)


def test_steps_put_every_event_after_what_came_before_it_even_where_logs_contradict_each_other() -> None:
    for seed in range(200):
        trace = random_trace(random.Random(seed))
        events = [
            Event(p, {"send": SEND, "deliver": DELIVER}.get(e.kind, 2), e.origin, e.seq, at or 0)
            for p, log in enumerate(trace.logs)
            for e, at in zip(log, trace.clocks[p], strict=True)
        ]
        step = steps(events)
        last: dict[int, int] = {}
        for event, at in zip(events, step, strict=True):
            assert at > last.get(event.process, -1)
            last[event.process] = at


def test_steps_put_a_delivery_after_its_send() -> None:
    trace = plain("s0>012 d0:0", "d0:0 s0>012 d1:0", "d1:0 d0:0")
    events = [
        Event(p, SEND if e.kind == "send" else DELIVER, e.origin, e.seq, 0) for p, log in enumerate(trace.logs) for e in log
    ]
    step = steps(events)
    sent = {(e.origin, e.seq): at for e, at in zip(events, step, strict=True) if e.kind == SEND}
    assert all(at > sent[e.origin, e.seq] for e, at in zip(events, step, strict=True) if e.kind == DELIVER)


def test_steps_put_a_run_after_all_the_sends_that_it_delivers_of() -> None:
    events = [
        Event(0, SEND, 0, 0, 0, 100), Event(0, DELIVER, 1, 0, 3), Event(0, SEND, 0, 100, 4, 50),
        Event(1, SEND, 1, 0, 1), Event(1, DELIVER, 0, 90, 2, 20), Event(1, DELIVER, 0, 120, 9, 5),
    ]  # fmt: skip
    step = steps(events)
    assert step[4] > max(step[0], step[2]), "its messages are of both runs"
    assert step[5] > step[4]
    assert step[1] > max(step[0], step[3])


def test_steps_of_the_same_time_are_near_each_other() -> None:
    """A process that only sends is not drawn far ahead of the others."""
    events = [Event(0, SEND, 0, number, 10 * number) for number in range(50)]
    events += [Event(1, DELIVER, 0, number, 10 * number + 1) for number in range(50)]
    events += [Event(2, SEND, 2, number, 400 + number) for number in range(5)]
    step = steps(events)
    assert min(step[-5:]) > 35


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


def test_a_violation_is_told_drawn_and_marked(tmp_path: Path) -> None:
    directory = write(tmp_path / "run", plain("s0>012 d0:0 d1:0", "d0:0 s0>012 d1:0", "d1:0 d0:0"))
    audit = audit_here(directory)
    assert audit.verdict == Verdict.VIOLATED
    page = report_run(directory, audit)
    assert "Violated: causal, total, acyclic" in page
    assert "Member 2 delivered 1:0 before 0:0, though member 1 had delivered 0:0 before it sent 1:0." in page
    assert page.count('class="witness"') == 2, "total and acyclic share theirs"
    assert "Drawn under total." in page
    assert set(data_of(page)["witnesses"]) == {"causal", "total", "acyclic"}


def test_a_message_that_never_came_is_drawn_as_missing(tmp_path: Path) -> None:
    directory = write(tmp_path / "run", plain("s0>01 d0:0", "s0>1 d1:0"))
    assert '<g class="never">' in report_run(directory, audit_here(directory))


def test_witnesses_of_random_faulty_traces_are_all_drawn(tmp_path: Path) -> None:
    drawn = 0
    for seed in range(24):
        trace = random_trace(random.Random(seed))
        if not any(trace.logs):
            continue
        directory = write(tmp_path / str(seed), trace)
        audit = audit_here(directory)
        witnesses = {check.witness for check in audit.checks.values() if check.witness is not None}
        page = report_run(directory, audit)
        assert page.count('class="witness"') == len(witnesses), f"seed {seed}"
        assert set(data_of(page)["witnesses"]) == {name for name, check in audit.checks.items() if check.violations}
        drawn += len(witnesses)
    assert drawn > 24, "most of these traces have faults"


def with_times(directory: Path, time_of: Callable[[dict[str, Any]], int]) -> Path:
    """The run with other times."""
    for path in (directory / "trace").glob("*.parquet"):
        table = pq.read_table(path)
        times = pa.array([time_of(row) for row in table.to_pylist()], pa.int64())
        pq.write_table(table.set_column(table.schema.get_field_index("time_ns"), "time_ns", times), path)
    return directory


def some_at_once(row: dict[str, Any]) -> int:
    """All is sent at zero. Of 600 messages one is delivered at once, one very much later, and the others soon."""
    if row["kind"] != "deliver":
        return 0
    strange = {(0, 7): 0, (1, 7): 10**9}
    return strange.get((row["origin"], row["seq"]), 1000 + int(row["seq"]))


@pytest.mark.parametrize(
    "time_of",
    [lambda _: 0, lambda row: int(row["pos"] == 3), some_at_once, lambda row: -row["pos"]],
    ids=["none", "one", "some", "back"],
)
def test_a_trace_with_times_of_zero_is_reported(time_of: Callable[[dict[str, Any]], int], tmp_path: Path) -> None:
    directory = with_times(simulated(tmp_path / "run", messages=150), time_of)

    page = report_run(directory, None)

    if time_of is some_at_once:
        found = scan(lay_out(open_run(directory))).remote
        bars = [
            text.rpartition(": ")
            for text in re.findall(r"<title>([0-9.]+ to [^<]*)</title>", page.partition("elsewhere</h3>")[2])
        ]
        assert found.values[0] == 0
        assert bars[0][0].startswith("0 to "), "what took no time is counted with the shortest"
        counted = sum(int(count.replace(",", "")) for _, _, count in bars)
        assert counted == found.total()
    assert "How long it took" in page


EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\u202e\x00"


def test_nothing_in_a_trace_breaks_out_of_its_page(tmp_path: Path) -> None:
    trace = plain("s0>01 d0:0", "d0:0")
    directory = write(tmp_path / "run", trace, run="safe")
    info = json.loads((directory / "run.json").read_text())
    info.update(protocol=EVIL, source=EVIL, options={EVIL: EVIL}, settings={"workload": {EVIL: [EVIL]}}, groups={EVIL: [0, 1]})
    (directory / "run.json").write_text(json.dumps(info))
    for path in (directory / "trace").glob("*.parquet"):
        table = pq.read_table(path)
        for name in ("group", "op"):
            field = table.schema.field(name)
            evil = pa.array([EVIL] * len(table)).dictionary_encode().cast(field.type)
            table = table.set_column(table.schema.get_field_index(name), field, evil)
        pq.write_table(table, path)
    page = report_run(directory, audit_here(directory))
    assert "<img" not in page
    assert page.count("<script") == 2
    assert "\u202e" not in page
    assert "\x00" not in page
    assert data_of(page)["trace"]["names"]["op"]["names"][0].startswith("</script>")


def test_a_page_loads_nothing_and_forbids_itself_to(tmp_path: Path) -> None:
    page = report_run(simulated(tmp_path / "run"), None)
    assert "default-src 'none'" in unescape(page)
    assert "unsafe" not in page
    assert not re.search(r"https?://|//[a-z0-9.-]+/|@import|url\(", page)
    assert ' style="' not in page, "the policy would forbid it"


def small_sweep(directory: Path) -> Path:
    file = GridFile(
        title="Small <b>sweep</b>",
        grid=({"protocol": ["single-phase acks=basic", "fifo"], "members": [2, 4], "messages": 4, "seeds": 2},),
        figure=(
            Figure(
                title="Multicasts", x="members", y="multicasts", by="protocol", paper="N", truth="N",
                claim=(
                    Claim(series="single-phase acks=basic", x=2, y=2.0, tolerance=0.0, says="paper"),
                    Claim(series="single-phase acks=basic", x=4, y=5.0),
                    Claim(series="fifo", x=9, y=1.0),
                ),
            ),
        ),
    )  # fmt: skip
    grid = Grid(file, "test")
    with SweepStore(directory, grid) as store:
        sweep_into(store, grid, run=run_here(CHUNKS), workers=1)
    return directory


def test_a_sweep_is_drawn_beside_what_is_claimed_and_differences_are_said(tmp_path: Path) -> None:
    page = report_sweep(small_sweep(tmp_path / "sweep"))
    assert "1 of 3 claims agree with what was measured" in page
    assert "✓ agrees" in page
    assert "✗ differs" in page
    assert "not measured" in page
    assert "-20.0 %" in page
    assert "Small &lt;b&gt;sweep&lt;/b&gt;" in page
    assert "The paper says" in page


def test_a_sweep_without_figures_is_drawn_all_the_same(tmp_path: Path) -> None:
    grid = Grid(GridFile(title="t", grid=({"members": [2, 3], "load": [5.0, 50.0], "messages": 3},)), "test")
    with SweepStore(tmp_path / "sweep", grid) as store:
        assert "not finished" in report_sweep(tmp_path / "sweep")
        sweep_into(store, grid, run=run_here(CHUNKS), workers=1)
    assert report_sweep(tmp_path / "sweep").count('class="plot"') > 3


def test_what_the_hierarchy_paper_claims_agrees_with_what_is_counted(tmp_path: Path) -> None:
    for name in ("yen-headers", "yen-figure-7"):
        file = read_grid(name).file
        grid = Grid(msgspec.structs.replace(file, grid=tuple({**table, "seeds": 1} for table in file.grid)), name)
        with SweepStore(tmp_path / name, grid) as store:
            sweep_into(store, grid, run=run_here(CHUNKS), workers=1)
        rows = open_sweep(tmp_path / name).rows
        assert any(figure.claim for figure in grid.file.figure)
        for figure in grid.file.figure:
            found = curves(figure, rows)
            for claim in figure.claim:
                assert agrees(claim, found[claim.series or next(iter(found))][claim.x]), (figure.title, claim)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"centre": "soon"}, "--window cannot be 'soon'"),
        ({"centre": "9:9"}, "the trace has no message 9:9"),
        ({"events": 0}, f"--events must be from 1 to {EVENTS_MAX}"),
    ],
)
def test_what_cannot_be_shown_is_refused_in_one_sentence(given: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    directory = simulated(tmp_path / "run", messages=2)
    with pytest.raises(BadInput, match=re.escape(sentence)):
        write_report(directory, tmp_path / "report.html", **given)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_an_existing_report_is_replaced_only_when_asked(tmp_path: Path) -> None:
    directory = simulated(tmp_path / "run", messages=2)
    path = tmp_path / "report.html"
    write_report(directory, path)
    before = path.stat().st_mtime_ns
    with pytest.raises(BadInput, match="exists already"):
        write_report(directory, path)
    assert path.stat().st_mtime_ns == before
    write_report(directory, path, force=True)
    assert path.stat().st_mtime_ns != before
    assert path.read_text().startswith("<!doctype html>")
    path.write_text("mine")
    with pytest.raises(BadInput, match="is not a report made by Quire, so it will not be replaced"):
        write_report(directory, path, force=True)
    assert path.read_text() == "mine"


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"is .* a run directory"):
        write_report(tmp_path, tmp_path / "report.html")


def test_messages_are_found_wherever_they_are(tmp_path: Path) -> None:
    trace = timed(plain("s0>01 d0:0 s1>01 d0:1", "d0:0 d0:1").logs)
    layout = lay_out(open_run(write(tmp_path / "run", trace, rows_per_append=1)))
    assert [(event.process, event.pos) for event in find_messages(layout, [MessageId(0, 1)])] == [(0, 2), (0, 3), (1, 1)]
