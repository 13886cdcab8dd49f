"""Transactions that are judged in pieces, some objects in each, are judged as they are in one."""

from __future__ import annotations

import random
from collections import Counter
from functools import reduce
from pathlib import Path

import pytest

from quire.pipeline.auditing.auditor import audit_with
from quire.pipeline.auditing.checks import serialisable
from quire.pipeline.auditing.checks.serialisable import SERIALISABLE, SerialisableResult, SerialisableTask, judge_serialisable
from quire.pipeline.auditing.registry import audit_job
from quire.pipeline.layout import lay_out
from quire.pipeline.tasks import run_here
from quire.trace.store import open_run
from tests.audit.oracle import Event
from tests.audit.traces import timed, write
from tests.audit.txn_traces import random_transactions
from tests.kit.effort import runs

HERE = run_here(audit_job())
TRACES = runs(40, 400)
(KIND,) = SERIALISABLE.tasks


def in_pieces(directory: Path, pieces: int) -> SerialisableResult:
    layout = lay_out(open_run(directory))
    tasks = [SerialisableTask(layout.world, layout.groups, "", pieces, piece) for piece in range(pieces)]
    found: SerialisableResult = reduce(lambda one, other: one.joined(other), map(judge_serialisable, tasks))
    return found


def told(found: SerialisableResult) -> tuple[object, ...]:
    return found.named, found.why, found.cycles, found.wrong


@pytest.mark.parametrize("stamped", [True, False])
def test_pieces_that_settle_it_say_what_one_task_says(tmp_path: Path, stamped: bool) -> None:
    seen: Counter[str] = Counter()
    for seed in range(TRACES):
        directory = tmp_path / str(seed)
        write(directory, random_transactions(random.Random(seed), stamped=stamped))
        whole = in_pieces(directory, 1)
        for pieces in (2, 3):
            found = in_pieces(directory, pieces)
            settled = KIND.settled(found)
            assert not settled or told(found) == told(whole), f"seed {seed}, {pieces} pieces"
            seen["settled"] += settled
            seen["open"] += not settled
            seen["wrong"] += settled and whole.wrong.count > 0
            seen["why"] += settled and bool(whole.why)
    assert min(seen[name] for name in ("settled", "open", "wrong", "why")) >= 3, seen


def test_the_verdict_is_the_same_for_every_number_of_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(12):
        write(tmp_path / str(seed), random_transactions(random.Random(seed), stamped=seed % 2 == 0))
        found = []
        for rows in (1 << 60, 20, 7):
            monkeypatch.setattr(serialisable, "ROWS_PER_PIECE", rows)
            found.append(audit_with(HERE, tmp_path / str(seed), expect=["serialisable"]).checks["serialisable"])
        assert found[0] == found[1] == found[2], f"seed {seed}"


def test_a_message_that_is_about_two_objects_leaves_it_to_one_task(tmp_path: Path) -> None:
    """A delivery that names another object than the send would be another write in another piece."""
    keys = [f"k{number}" for number in range(8)]
    logs = [
        [Event("send", 0, number, (1,), None, key, "w", "t1") for number, key in enumerate(keys)]
        + [Event("send", 0, len(keys), (1,), None, None, "commit", "t1")],
        [Event("deliver", 0, number, None, None, keys[number - 1], "w", "t1") for number in range(len(keys))],
    ]  # fmt: skip
    write(tmp_path / "run", timed(logs))

    assert not KIND.settled(in_pieces(tmp_path / "run", 2))


def test_an_event_without_an_object_leaves_it_to_one_task(tmp_path: Path) -> None:
    logs = [
        [Event("send", 0, 0, (0,), None, None, "w", "t1"), Event("send", 0, 1, (0,), None, None, "commit", "t1")],
    ]  # fmt: skip
    write(tmp_path / "run", timed(logs))

    assert not KIND.settled(in_pieces(tmp_path / "run", 2))
