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
from quire.pipeline.auditing.auditor import audit_here
from quire.pipeline.auditing.verdicts import Verdict
from quire.pipeline.layout import lay_out
from quire.pipeline.tasks import run_here
from quire.report.run_report import report_run
from quire.report.scan import scan
from quire.report.sweep_report import agrees, curves, report_sweep
from quire.report.window import EVENTS_MAX
from quire.report.write import write_report
from quire.sweep.chunks import CHUNKS
from quire.sweep.figures import Claim, Figure
from quire.sweep.grid import Grid, GridFile, read_grid
from quire.sweep.store import SweepStore, open_sweep
from quire.sweep.sweeper import sweep_into
from quire.trace.store import open_run
from tests.audit.traces import plain, random_trace, write
from tests.report.reported import data_of, rows_of, simulated


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
