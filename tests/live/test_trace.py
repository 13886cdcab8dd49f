"""From a member's records to a run directory."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from quire.live.runs.collecting import collect
from quire.live.runs.plan import Plan
from quire.model.errors import BadInput
from quire.trace.parts.description import PartEnd, read_clock
from quire.trace.parts.frames import read_frames
from quire.trace.parts.survey import RUNNING_OR_CRASHED
from quire.trace.store import open_run
from tests.kit.parts import ENDED, SECOND, log_of, write_part

PLAN = Plan(members=("127.0.0.1:1", "127.0.0.1:2"), protocol="matrix", messages=10)


def record(
    directory: Path, plan: Plan = PLAN, *, pieces: int = 2, began: int = SECOND, ends: Sequence[PartEnd | None] = (ENDED, ENDED)
) -> Path:
    """Member 0 multicasts ten messages in one run; it delivers it in two pieces, and so does member 1 if it has both."""
    logs = [log_of(plan, me) for me in range(2)]
    logs[0].send(0, 0, 10, 1, SECOND, 0, 64)
    logs[0].packet("CAST", 1, 11, SECOND, 40, 640)
    for me, log in enumerate(logs):
        log.deliver(0, 0, 4, 12, SECOND + (me + 1) * 2_000_000, 0, 64)
        if me == 0 or pieces == 2:
            log.deliver(0, 4, 6, 16, SECOND + (me + 1) * 4_000_000, 0, 64)
        write_part(directory, plan, log, began=began, end=ends[me])
    return directory


def only(parts: Path, member: int, suffix: str) -> Path:
    (path,) = parts.glob(f"p{member:05d}-*.{suffix}")
    return path


def test_records_become_rows_in_local_order_with_costs_and_latencies(tmp_path: Path) -> None:
    summary = collect(record(tmp_path / "parts"), tmp_path / "run")

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
    collect(record(tmp_path / "parts"), tmp_path / "run")

    info = open_run(tmp_path / "run").info
    assert (info.source, info.protocol, info.members, info.seed) == ("run", "matrix", 2, None)
    assert info.promises == ("integrity", "agreement", "fifo", "causal")
    assert info.settings["load"] == {"messages": 10, "size": 64, "rate": None, "senders": None}


def test_messages_that_were_not_delivered_everywhere_make_a_run_incomplete(tmp_path: Path) -> None:
    parts = record(tmp_path / "parts", pieces=1)

    assert collect(parts, tmp_path / "run").complete is False


def test_a_part_that_does_not_reach_to_the_end_is_used_as_far_as_it_reaches(tmp_path: Path) -> None:
    parts = record(tmp_path / "parts", pieces=1, ends=(ENDED, None))

    summary = collect(parts, tmp_path / "run")

    assert summary.crashed == (1,)
    assert summary.notes == (f"the part of process 1 does not reach to the end: {RUNNING_OR_CRASHED}",)
    assert not summary.complete
    assert open_run(tmp_path / "run").info.outcome.notes == summary.notes
    assert summary.deliveries == 14


def test_a_process_that_is_still_running_leaves_a_run_that_is_not_whole(tmp_path: Path) -> None:
    """Everything was delivered everywhere, as far as it was sent: but it may send more."""
    parts = record(tmp_path / "parts", ends=(None, ENDED))

    summary = collect(parts, tmp_path / "run")

    assert (summary.deliveries, summary.crashed, summary.complete) == (20, (0,), False)


def test_every_piece_of_a_run_counts_from_when_it_was_sent(tmp_path: Path) -> None:
    logs = [log_of(PLAN, me) for me in range(2)]
    for first, sent_s in ((0, 1), (4, 3)):
        logs[0].send(0, first, 4, first + 1, sent_s * SECOND, 0, 64)
    for first, came_s in ((0, 2), (2, 2), (4, 5), (6, 5)):
        logs[1].deliver(0, first, 2, first + 10, came_s * SECOND, 0, 64)
    for log in logs:
        write_part(tmp_path / "parts", PLAN, log)

    remote = collect(tmp_path / "parts", tmp_path / "run").latency.remote

    assert remote is not None
    assert remote.mean == pytest.approx(1500.0)
    assert remote.max == pytest.approx(2000.0)


def test_a_process_whose_group_failed_is_not_blamed_for_what_it_did_not_deliver(tmp_path: Path) -> None:
    failed = PartEnd(clock=read_clock(), failure="member 0 has been unreachable")
    parts = record(tmp_path / "parts", pieces=1, ends=(ENDED, failed))

    assert collect(parts, tmp_path / "run").notes == (
        "the part of process 1 does not reach to the end: member 0 has been unreachable",
    )


def cut(parts: Path, member: int) -> None:
    """Lose the end of a part, as a crash does: what is left are the names, and no event."""
    path = only(parts, member, "events")
    with path.open("rb") as file:
        names = next(read_frames(file))
    path.write_bytes(path.read_bytes()[: names.end + 7])


def test_deliveries_of_what_a_crashed_process_is_not_known_to_have_sent_are_left_out(tmp_path: Path) -> None:
    """To a reader of the run they would come from nowhere, and nobody is to blame for them."""
    parts = record(tmp_path / "parts")
    cut(parts, 0)

    summary = collect(parts, tmp_path / "run")

    assert (summary.messages, summary.deliveries) == (0, 0)
    assert summary.notes[1:] == ("10 deliveries of messages that such a process sent later are left out",)


def test_what_a_crashed_process_is_known_to_have_sent_is_delivered_to_its_last_message_and_no_further(tmp_path: Path) -> None:
    """It sent two runs, and crashed before it had recorded the third. The other delivers the second in two pieces."""
    logs = [log_of(PLAN, me) for me in range(2)]
    for first, count in ((0, 3), (3, 4)):
        logs[0].send(0, first, count, first + 1, SECOND, 0, 64)
    for first, count in ((0, 3), (3, 1), (4, 3), (7, 2)):
        logs[1].deliver(0, first, count, first + 10, 2 * SECOND, 0, 64)
    for log, end in zip(logs, (None, ENDED), strict=True):
        write_part(tmp_path / "parts", PLAN, log, end=end)

    summary = collect(tmp_path / "parts", tmp_path / "run")

    assert (summary.messages, summary.deliveries) == (7, 7)
    assert summary.notes[1:] == ("2 deliveries of messages that such a process sent later are left out",)


def test_of_the_runs_in_a_directory_the_latest_is_collected(tmp_path: Path) -> None:
    """A group that is started again has another incarnation of every process, so their parts are not mixed up."""
    record(tmp_path / "parts", pieces=1, began=5 * SECOND)
    record(tmp_path / "parts", began=9 * SECOND)
    record(tmp_path / "parts", pieces=1, began=7 * SECOND)

    summary = collect(tmp_path / "parts", tmp_path / "run")

    # The clock says which was recorded last, not the number of the incarnation.
    assert (summary.deliveries, summary.older) == (14, 2)


def test_a_part_of_an_earlier_run_does_not_stand_in_for_one_that_is_missing(tmp_path: Path) -> None:
    record(tmp_path / "parts", began=5 * SECOND)
    record(tmp_path / "parts", began=9 * SECOND)
    for path in (tmp_path / "parts").glob("p00001-*000000009*"):
        path.unlink()
    latest = sorted((tmp_path / "parts").glob("p00001-*"))[-2:]
    for path in latest:
        path.unlink()

    with pytest.raises(BadInput, match="there is no part of process 1"):
        collect(tmp_path / "parts", tmp_path / "run")
    summary = collect(tmp_path / "parts", tmp_path / "run", without=[1])
    assert summary.notes == ("the part of process 1 does not reach to the end: its part is missing",)


def nothing(parts: Path) -> None:
    for path in parts.iterdir():
        path.unlink()


def one_is_missing(parts: Path) -> None:
    only(parts, 1, "json").unlink()


def no_log(parts: Path) -> None:
    only(parts, 0, "events").unlink()


def foreign_text(parts: Path) -> None:
    only(parts, 0, "json").write_text('{"run": 3}')


def another_format(parts: Path) -> None:
    path = only(parts, 0, "json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 1}))


def of_another_run(parts: Path) -> None:
    other = record(parts.with_name("other"), Plan(members=PLAN.members, protocol="matrix", messages=11))
    for suffix in ("json", "events"):
        only(parts, 1, suffix).unlink()
        shutil.copy(only(other, 1, suffix), parts)


DAMAGE: dict[Callable[[Path], None], str] = {
    nothing: "holds no part of a run",
    one_is_missing: r"there is no part of process 1: copy p00001-\* there, or say --without 1",
    no_log: "cannot read .*p00000-.*events: No such file",
    foreign_text: "does not describe a process's part of a run",
    another_format: "has format 1, this version reads format 3",
    of_another_run: "there is no part of process 0",
}


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
def test_parts_that_are_not_one_whole_run_are_refused_in_one_sentence(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    parts = record(tmp_path / "parts")
    damage(parts)

    with pytest.raises(BadInput, match=DAMAGE[damage]) as refused:
        collect(parts, tmp_path / "run")

    assert "\n" not in str(refused.value)
    assert not (tmp_path / "run").exists()
