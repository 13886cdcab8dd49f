"""Calls of objects that are judged in segments of logical time are judged as they are in one piece."""

from __future__ import annotations

import random
from collections import Counter
from functools import reduce
from pathlib import Path

import msgspec
import pytest

from quire.pipeline.auditing import call_segments
from quire.pipeline.auditing.auditor import audit_with
from quire.pipeline.auditing.call_segments import cut_by_time
from quire.pipeline.auditing.checks.significant import SIGNIFICANT, SignificantResult, SignificantTask, judge_significant
from quire.pipeline.auditing.registry import audit_job
from quire.pipeline.layout import lay_out
from quire.pipeline.tasks import run_here
from quire.trace.store import open_run
from tests.audit.call_traces import Calls, random_calls
from tests.audit.oracle import Event
from tests.audit.traces import timed, write
from tests.kit.effort import runs

HERE = run_here(audit_job())
TRACES = runs(20, 600)
PIECES = (2, 3, 7)
(KIND,) = SIGNIFICANT.tasks


def in_segments(directory: Path, calls: Calls, pieces: int, reach: int) -> SignificantResult:
    layout = lay_out(open_run(directory))
    segments = [msgspec.structs.replace(segment, reach=reach) for segment in cut_by_time(layout, pieces)]
    task = SignificantTask(layout.world, layout.groups, calls.conflicts)
    tasks = [msgspec.structs.replace(task, segment=segment) for segment in segments] or [task]
    return reduce(SignificantResult.joined, map(judge_significant, tasks))


def test_segments_that_settle_it_say_what_one_task_says(tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for seed in range(TRACES):
        calls = random_calls(random.Random(seed), steps=random.Random(seed).choice((20, 60)))
        write(tmp_path / str(seed), calls.trace)
        whole = in_segments(tmp_path / str(seed), calls, 1, 1)
        for pieces in PIECES:
            for reach in (8, 30):
                found = in_segments(tmp_path / str(seed), calls, pieces, reach)
                settled = KIND.settled(found)
                assert not settled or msgspec.structs.replace(found, part=None) == whole, f"{seed}, {pieces}, {reach}"
                seen[f"settled {reach}"] += settled
                seen["open"] += not settled
                seen["early"] += settled and whole.early > 0
                seen["opposite"] += settled and whole.opposite > 0 and not whole.early
    assert min(seen[name] for name in ("settled 8", "settled 30", "open", "early", "opposite")) >= 3, seen


def test_the_verdict_is_the_same_for_every_number_of_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_segments, "REACHES_PER_SEGMENT", 2)
    verdicts: Counter[str] = Counter()
    for seed in range(30):
        calls = random_calls(random.Random(seed), steps=40)
        settings: dict[str, object] = {"conflicts": calls.conflicts}
        write(tmp_path / str(seed), calls.trace, settings=settings)
        found = []
        for pieces in (1, *PIECES):
            monkeypatch.setattr(call_segments, "ROWS_PER_SEGMENT", -(-sum(map(len, calls.trace.logs)) // pieces))
            found.append(audit_with(HERE, tmp_path / str(seed), expect=["significant"]).checks["significant"])
        assert all(other == found[0] for other in found[1:]), f"seed {seed}"
        verdicts[found[0].verdict] += 1
    assert len(verdicts) == 2, verdicts


def request(origin: int, number: int, *, txn: str | None = "root") -> Event:
    return Event("send", origin, number, (1,), None, "x", "add", txn)


def start(number: int, instance: str) -> Event:
    return Event("deliver", 0, number, None, None, "x", "add", instance)


def judged(directory: Path, logs: list[list[Event]], reach: int) -> SignificantResult:
    trace = timed(logs)
    write(directory, trace)
    return in_segments(directory, Calls(trace, {}), 2, reach)


QUICK = [[request(0, number) for number in range(8)], [start(number, f"i{number}") for number in range(8)]]


def test_what_is_delivered_late_leaves_it_to_one_task(tmp_path: Path) -> None:
    busy = [Event("send", 1, number, (0,), None, "y", "add", "other") for number in range(20)]
    logs = [QUICK[0], [*busy, *QUICK[1]]]

    assert not KIND.settled(judged(tmp_path / "short", logs, 3))
    assert KIND.settled(judged(tmp_path / "long", logs, 60))


def test_an_instance_that_lasts_long_leaves_it_to_one_task(tmp_path: Path) -> None:
    """What it knew when it ended is known to whoever begins then, and nobody near sees where it began."""
    began = [start(0, "i0"), *(Event("send", 1, number, (0,), None, "y", "add", "i0") for number in range(20))]
    logs = [[request(0, 0)], [*began, Event("send", 1, 20, (0,), None, None, "ok", "i0")]]

    assert not KIND.settled(judged(tmp_path / "short", logs, 3))
    assert KIND.settled(judged(tmp_path / "long", logs, 60))


def test_messages_that_are_not_numbered_from_0_on_leave_it_to_one_task(tmp_path: Path) -> None:
    logs = [[request(0, number) for number in range(1, 9)], [start(number, f"i{number}") for number in range(1, 9)]]

    assert not KIND.settled(judged(tmp_path / "run", logs, 40))


def test_what_is_not_named_is_counted_over_all_segments(tmp_path: Path) -> None:
    logs = [[request(0, number, txn=None if number % 2 else "root") for number in range(8)], QUICK[1]]
    found = judged(tmp_path / "run", logs, 40)

    assert KIND.settled(found)
    assert (found.why, found.violations) == ("4 sends and deliveries do not name their instance in txn", 0)
