"""From a member's records to a run directory."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from quire.live.runs.parts import assemble, write_part
from quire.live.runs.plan import Plan
from quire.live.spool import Spool
from quire.model.errors import BadInput
from quire.trace.logs import ROWS_MAX, read_records
from quire.trace.store import open_run

PLAN = Plan(members=("127.0.0.1:1", "127.0.0.1:2"), protocol="fifo", messages=10)
SECOND = 1_000_000_000


def record(directory: Path, plan: Plan = PLAN) -> Path:
    """Member 0 multicasts ten messages in one run; both deliver it in two pieces."""
    directory.mkdir(exist_ok=True)
    spools = [Spool(me, 2, directory / f"p0000{me}.records") for me in range(2)]
    spools[0].recorder.send(0, 0, 10, 1, SECOND, 0, 64)
    spools[0].recorder.packet("CAST", 1, 11, SECOND, 40, 640)
    spools[0].spill()
    for me, spool in enumerate(spools):
        spool.recorder.deliver(0, 0, 4, 12, SECOND + (me + 1) * 2_000_000, 0, 64)
        spool.recorder.deliver(0, 4, 6, 16, SECOND + (me + 1) * 4_000_000, 0, 64)
        spool.finish()
        write_part(directory, plan, plan.settings(me), spool.recorder)
    return directory


def test_records_become_rows_in_local_order_with_costs_and_latencies(tmp_path: Path) -> None:
    summary = assemble(record(tmp_path / "parts"), tmp_path / "run")

    rows = pq.read_table(tmp_path / "run" / "trace" / "p00000.parquet").to_pylist()
    assert [row["pos"] for row in rows] == list(range(21))
    assert [row["kind"] for row in rows] == ["send"] * 10 + ["packet"] + ["deliver"] * 10
    assert [row["seq"] for row in rows if row["kind"] == "deliver"] == list(range(10))
    assert rows[0]["dests"] == [0, 1]
    assert summary.packets == {"CAST": 1, "multicasts": 1}
    assert (summary.header_bytes, summary.messages, summary.deliveries, summary.complete) == (40, 10, 20, True)
    assert summary.latency.origin is not None
    assert summary.latency.remote is not None
    assert (summary.latency.origin.p50, summary.latency.origin.max) == (4.0, 4.0)
    assert summary.latency.origin.mean == pytest.approx((4 * 2 + 6 * 4) / 10)
    assert (summary.latency.remote.p50, summary.latency.remote.max) == (8.0, 8.0)
    # Member 0 delivered ten messages in 4 ms; member 1 in the 4 ms between its two events.
    assert summary.deliveries_per_s == pytest.approx(10 / 0.004)


def test_the_run_says_what_ran(tmp_path: Path) -> None:
    assemble(record(tmp_path / "parts"), tmp_path / "run")

    info = open_run(tmp_path / "run").info
    assert (info.source, info.protocol, info.members, info.seed) == ("run", "fifo", 2, None)
    assert info.promises == ("integrity", "agreement", "fifo")
    assert info.settings["load"] == {"messages": 10, "size": 64, "rate": None, "senders": None}


def test_messages_that_were_not_delivered_everywhere_make_a_run_incomplete(tmp_path: Path) -> None:
    parts = record(tmp_path / "parts")
    records = parts / "p00001.records"
    records.write_bytes(records.read_bytes()[:64])
    description = json.loads((parts / "p00001.json").read_text())
    (parts / "p00001.json").write_text(json.dumps({**description, "records": 1}))

    assert assemble(parts, tmp_path / "run").complete is False


def test_long_runs_are_read_in_pieces_of_bounded_size(tmp_path: Path) -> None:
    spool = Spool(0, 1, tmp_path / "records")
    for number in range(300):
        spool.recorder.deliver(0, number * 8192, 8192, 1 + number * 8192, number, 0, 0)
    spool.finish()

    pieces = list(read_records(tmp_path / "records"))

    assert len(pieces) > 1
    assert all(piece[:, 3].sum() <= ROWS_MAX for piece in pieces)
    assert [int(number) for piece in pieces for number in piece[:, 5]] == list(range(300))


def test_a_spool_that_cannot_write_says_so(tmp_path: Path) -> None:
    spool = Spool(0, 1, tmp_path / "nowhere" / "records")

    with pytest.raises(FileNotFoundError):
        spool.finish()


def nothing(parts: Path) -> None:
    for path in parts.iterdir():
        path.unlink()


def one_is_missing(parts: Path) -> None:
    (parts / "p00001.json").unlink()


def half_a_copy(parts: Path) -> None:
    path = parts / "p00000.records"
    path.write_bytes(path.read_bytes()[:-64])


def no_records(parts: Path) -> None:
    (parts / "p00000.records").unlink()


def foreign_text(parts: Path) -> None:
    (parts / "p00000.json").write_text('{"run": 3}')


def of_another_run(parts: Path) -> None:
    other = record(parts.with_name("other"), Plan(members=PLAN.members, protocol="fifo", messages=11))
    for name in ("p00001.json", "p00001.records"):
        shutil.copy(other / name, parts / name)


DAMAGE: dict[Callable[[Path], None], str] = {
    nothing: "holds no part of a run",
    one_is_missing: r"lacks the parts of members \[1\]; copy p00001.json and p00001.records there",
    half_a_copy: "p00000.records is not whole; copy it again",
    no_records: "cannot read .*p00000.records: No such file",
    foreign_text: "does not describe a member's part of a run",
    of_another_run: "members 0 and 1 took part in different runs: run ",
}


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
def test_parts_that_are_not_one_whole_run_are_refused_in_one_sentence(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    parts = record(tmp_path / "parts")
    damage(parts)

    with pytest.raises(BadInput, match=DAMAGE[damage]) as refused:
        assemble(parts, tmp_path / "run")

    assert "\n" not in str(refused.value)
    assert not (tmp_path / "run").exists()
