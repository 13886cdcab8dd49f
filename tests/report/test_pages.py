"""Reports as files: what they say is what the trace holds, and nothing in a trace can break out of them."""

from __future__ import annotations

import json
import random
import re
from html import unescape
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quire.model.errors import BadInput
from quire.pipeline.auditing.verdicts import Verdict
from quire.pipeline.layout import lay_out
from quire.pipeline.tasks import run_here
from quire.report.order import Event, steps
from quire.report.run_report import audit_here, report_run
from quire.report.scan import scan
from quire.report.sweep_report import agrees, curves, report_sweep
from quire.report.window import EVENTS_MAX, find_messages, parse_spot, read_window, spot_of
from quire.report.write import write_report
from quire.simulation.config import NetworkConfig, SimulationConfig, WorkloadConfig
from quire.simulation.simulate import simulate
from quire.sweep.chunks import CHUNKS
from quire.sweep.figures import Claim, Figure
from quire.sweep.grid import Grid, GridFile, read_grid
from quire.sweep.store import SweepStore, open_sweep
from quire.sweep.sweeper import sweep_into
from quire.trace.schema import DELIVER, KINDS, SEND
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
        assert distribution.quantile(0.5) == pytest.approx(exact[(len(exact) - 1) // 2], rel=0.006)
        assert distribution.quantile(1.0) == pytest.approx(exact[-1], rel=0.006)
        assert distribution.mean() == pytest.approx(sum(exact) / len(exact), rel=0.006)
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


@pytest.mark.parametrize("spot", ["start", "end", "witness", "2:7", "@100"])
def test_a_window_holds_so_many_events_in_local_order_without_gaps_and_its_spot(spot: str, tmp_path: Path) -> None:
    layout = lay_out(open_run(simulated(tmp_path / "run", messages=60)))
    window = read_window(layout, spot_of(layout, parse_spot(spot), ()), 100)
    kinds = [KINDS[kind] for kind in window.kind]
    assert len(kinds) - kinds.count("packet") == 100
    assert not window.whole
    rows = window.rows.select(["process", "pos", "lamport", "origin", "seq", "kind"]).to_pylist()
    assert [row["lamport"] for row in rows] == sorted(row["lamport"] for row in rows)
    for process in range(4):
        places = [row["pos"] for row in rows if row["process"] == process]
        assert places == list(range(places[0], places[0] + len(places)))
    if spot == "2:7":
        assert any(row["kind"] == "send" and (row["origin"], row["seq"]) == (2, 7) for row in rows)
    if spot in ("start", "witness"):
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
        spot = spot_of(layout, parse_spot("@200"), ())
        read.clear()
        shown.append(read_window(layout, spot, 60).rows.select(["process", "pos"]).to_pylist())
        if rows_per_append == 7:
            assert len(layout.groups) > 100
            assert len(read) < 60
    assert shown[0] == shown[1]


def test_a_window_of_a_trace_with_useless_logical_times_is_its_beginning(tmp_path: Path) -> None:
    trace = plain("s0>01 d0:0 s1>01 d0:1", "d0:0 d0:1")
    directory = write(tmp_path / "run", trace._replace(clocks=[[None] * len(log) for log in trace.logs]))
    layout = lay_out(open_run(directory))
    window = read_window(layout, spot_of(layout, "start", ()), 3)
    assert "no usable logical times" in window.where
    assert len(window.rows) == 3
    assert len(data_of(report_run(directory, None))["trace"]["process"]) == 6


def test_too_many_members_are_narrowed_to_the_busiest_and_those_of_the_story(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quire.report.window.MEMBERS_MAX", 2)
    layout = lay_out(open_run(simulated(tmp_path / "run")))
    window = read_window(layout, spot_of(layout, "start", ()), 100, keep=(3,))
    assert len(window.members) == 2
    assert 3 in window.members


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


def test_witnesses_of_random_faulty_traces_can_all_be_drawn(tmp_path: Path) -> None:
    for seed in range(12):
        trace = random_trace(random.Random(seed))
        if any(trace.logs) and all(trace.logs):
            directory = write(tmp_path / str(seed), trace)
            data_of(report_run(directory, audit_here(directory)))


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
    assert data_of(page)["trace"]["words"]["op"]["words"][0].startswith("</script>")


def test_a_page_loads_nothing_and_forbids_itself_to(tmp_path: Path) -> None:
    page = report_run(simulated(tmp_path / "run"), None)
    assert "default-src 'none'" in unescape(page)
    assert "unsafe" not in page
    assert not re.search(r"https?://|//[a-z0-9.-]+/|@import|url\(", page)
    assert ' style="' not in page, "the policy would forbid it"


def test_the_page_is_the_same_for_the_same_run(tmp_path: Path) -> None:
    directory = simulated(tmp_path / "run")
    audit = msgspec.structs.replace(audit_here(directory), wall_s=0.0)
    assert report_run(directory, audit) == report_run(directory, audit)


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
        for figure in grid.file.figure:
            found = curves(figure, rows)
            for claim in figure.claim:
                assert agrees(claim, found[claim.series or next(iter(found))][claim.x]), (figure.title, claim)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"spot": "soon"}, "--window knows no place 'soon'"),
        ({"spot": "9:9"}, "the trace has no message 9:9"),
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
    path.write_text("mine")
    with pytest.raises(BadInput, match="exists already"):
        write_report(directory, path)
    assert path.read_text() == "mine"
    write_report(directory, path, force=True)
    assert path.read_text().startswith("<!doctype html>")


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"is .* a run directory"):
        write_report(tmp_path, tmp_path / "report.html")


def test_messages_are_found_wherever_they_are(tmp_path: Path) -> None:
    trace = timed(plain("s0>01 d0:0 s1>01 d0:1", "d0:0 d0:1").logs)
    layout = lay_out(open_run(write(tmp_path / "run", trace, rows_per_append=1)))
    assert [(event.process, event.pos) for event in find_messages(layout, [(0, 1)])] == [(0, 2), (0, 3), (1, 1)]
