"""Significant order against brute force, on random calls in no order and in good order."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from quire.model.errors import BadInput
from quire.model.orders import Guarantee
from quire.pipeline import Check, Verdict, audit
from quire.pipeline.auditing.auditor import audit_with
from quire.pipeline.auditing.checks.significant import SignificantResult, judge_calls
from quire.pipeline.auditing.registry import audit_job
from quire.pipeline.tasks import run_here
from tests.audit import call_traces, memory
from tests.audit.call_traces import Calls, random_calls
from tests.audit.oracle import Event
from tests.audit.traces import Trace, timed, write
from tests.kit.effort import runs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = run_here(audit_job())
TRACES = runs(250, 500)


def judge(calls: Calls) -> SignificantResult:
    correct = np.array([p not in calls.trace.crashed for p in range(len(calls.trace.logs))])
    return judge_calls(memory.labelled(calls.trace), calls.conflicts, correct)


def test_counts_equal_brute_force() -> None:
    seen: Counter[str] = Counter()
    for seed in range(TRACES):
        calls = random_calls(random.Random(seed))
        expected = call_traces.judge(calls)
        found = judge(calls)
        assert (found.early, found.opposite) == expected, f"seed {seed}"
        assert bool(found.seen) == (found.violations > 0)
        seen.update({"early": expected[0] > 0, "opposite": expected[1] > 0, "clean": not any(expected)})
    assert min(seen[name] for name in ("early", "opposite", "clean")) >= TRACES // 20, seen


def request(who: int, seq: int, dests: tuple[int, ...], thing: str, op: str, txn: str, group: str | None = None) -> Event:
    return Event("send", who, seq, dests, group, thing, op, txn)


def start(who: int, seq: int, thing: str, op: str, txn: str) -> Event:
    return Event("deliver", who, seq, None, None, thing, op, txn)


def answer(who: int, seq: int, to: int, txn: str) -> Event:
    return Event("send", who, seq, (to,), None, None, "ok", txn)


def answered(who: int, seq: int, txn: str) -> Event:
    return Event("deliver", who, seq, None, None, None, "ok", txn)


EARLY = timed(
    [
        [request(0, 0, (1,), "x", "add", "root"), request(0, 1, (1,), "x", "take", "root")],
        [start(0, 1, "x", "take", "i"), start(0, 0, "x", "add", "j")],
    ]
)
"""Member 1 takes before it adds, which its caller asked for first."""

OPPOSITE = timed(
    [
        [request(0, 0, (0, 1), "x", "add", "one"), start(0, 0, "x", "add", "i"), start(1, 0, "x", "take", "j")],
        [request(1, 0, (0, 1), "x", "take", "two"), start(1, 0, "x", "take", "k"), start(0, 0, "x", "add", "l")],
    ]
)
"""Two replicas of x, and nobody knows of the other's request."""

TWO_OBJECTS = timed(
    [
        [
            request(0, 0, (0,), "x", "add", "one", "r"), request(0, 1, (1,), "y", "add", "one", "r"),
            start(0, 0, "x", "add", "i"), start(1, 0, "x", "take", "j"),
        ],
        [
            request(1, 0, (0,), "x", "take", "two", "s"), request(1, 1, (1,), "y", "take", "two", "s"),
            start(1, 1, "y", "take", "k"), start(0, 1, "y", "add", "l"),
        ],
    ]
)  # fmt: skip
"""Two requests, each to the objects x and y."""

ANSWERS = timed(
    [
        [
            request(0, 0, (1,), "x", "add", "root"),
            request(0, 1, (1,), "x", "add", "root"),
            answered(1, 1, "root"),
            answered(1, 0, "root"),
        ],
        [start(0, 0, "x", "add", "i"), answer(1, 0, 0, "i"), start(0, 1, "x", "add", "j"), answer(1, 1, 0, "j")],
    ]
)
"""The second addition began when the first had ended, but its answer is received first."""

EXPLAINED = {
    "early": (EARLY, "x at member 1 began 0:1 (take) before 0:0 (add), which significantly precedes it: 0:0, then 0:1"),
    "opposite": (
        OPPOSITE,
        "x at member 0 began 0:0 (add) before 1:0 (take), but x at member 1 began 1:0 (take) before 0:0 (add)",
    ),
    "two objects": (
        TWO_OBJECTS,
        "x at member 0 began 0:0 (add) before 1:0 (take), but y at member 1 began 1:1 (take) before 0:1 (add)",
    ),
    "answers": (ANSWERS, "instance root at member 0 received 1:1 before 1:0, which significantly precedes it: 1:0, then 1:1"),
}
ALL_CONFLICT: dict[str, object] = {"conflicts": {}}
COMPATIBLE: dict[str, object] = {"conflicts": {name: {"add": [], "take": []} for name in "xy"}}


def check(directory: Path, trace: Trace, settings: dict[str, object], segments: int = 1) -> Check:
    run = write(directory, trace, promises=(Guarantee.SIGNIFICANT,), settings=settings)
    return audit_with(HERE, run, segments=segments).checks[Guarantee.SIGNIFICANT]


@pytest.mark.parametrize("name", EXPLAINED)
def test_a_violation_is_explained_in_one_sentence(tmp_path: Path, name: str) -> None:
    trace, sentence = EXPLAINED[name]
    found = check(tmp_path / "one", trace, ALL_CONFLICT)

    assert (found.violations, found.because) == (1, sentence)
    assert found.witness is not None
    assert found == check(tmp_path / "four", trace, ALL_CONFLICT, 4)


@pytest.mark.parametrize("name", ["early", "opposite", "two objects"])
def test_what_does_not_conflict_is_not_ordered(tmp_path: Path, name: str) -> None:
    assert check(tmp_path / "run", EXPLAINED[name][0], COMPATIBLE).verdict is Verdict.HOLDS


def test_what_a_trace_does_not_say_leaves_it_undecided(tmp_path: Path) -> None:
    nameless = EARLY._replace(logs=[[event._replace(txn=None) for event in log] for log in EARLY.logs])

    unsaid = check(tmp_path / "a", EARLY, {})
    unnamed = check(tmp_path / "b", nameless, ALL_CONFLICT)

    assert unsaid.verdict is unnamed.verdict is Verdict.UNDECIDED
    assert unsaid.because == "run.json does not list conflicting operations in settings.conflicts"
    assert unnamed.because == "4 sends and deliveries do not name their instance in txn"


def test_logs_that_contradict_each_other_leave_it_undecided(tmp_path: Path) -> None:
    """Each process delivers what the other sends only after it has delivered something itself."""
    logs = [
        [start(1, 0, "x", "add", "i"), request(0, 0, (1,), "x", "add", "i")],
        [start(0, 0, "x", "add", "j"), request(1, 0, (0,), "x", "add", "j")],
    ]
    trace = Trace(logs, [[None, None], [None, None]])
    found = check(tmp_path / "run", trace, ALL_CONFLICT)

    assert found.verdict is Verdict.UNDECIDED
    assert found.because == "the logs contradict each other: a delivery of 1:0 happened before it was sent"


def test_conflicts_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="must list operations for each operation of each object"):
        check(tmp_path / "run", EARLY, {"conflicts": ["add"]})


def test_spark_says_the_same(spark: SparkSession, tmp_path: Path) -> None:
    run = write(tmp_path / "run", ANSWERS, promises=(Guarantee.SIGNIFICANT,), settings=ALL_CONFLICT)

    assert audit(spark, run, segments=2).checks == audit_with(HERE, run).checks
