"""Transactions and calls of a run that goes on: what is found is found by the audit too, however the run is cut."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from quire.model.orders import Guarantee
from quire.pipeline.auditing import followed_window
from quire.pipeline.auditing.checks.serialisable import judge_transactions
from quire.pipeline.auditing.checks.significant import judge_calls
from quire.pipeline.auditing.followed_window import WindowFollower, Worded, follow_words
from quire.pipeline.auditing.transaction_findings import UNCOMMITTED
from quire.trace.kinds import KINDS
from tests.audit import memory
from tests.audit.call_traces import random_calls
from tests.audit.test_serialisable import SKEW, end, read, saw, write_of
from tests.audit.traces import Trace, timed
from tests.audit.txn_traces import random_transactions
from tests.kit.effort import runs

TRACES = runs(150, 1000)


def worded(trace: Trace) -> list[list[Worded]]:
    return [
        [
            Worded(
                KINDS.index(event.kind), event.origin, event.seq, clock or 0, (event.group, event.object, event.op, event.txn)
            )
            for event, clock in zip(log, clocks, strict=True)
        ]
        for log, clocks in zip(trace.logs, trace.clocks, strict=True)
    ]


def with_causal_reads(trace: Trace) -> Trace:
    """The trace with logical times by which what is read was written before."""
    seen = [[event._replace(kind="deliver" if event.kind == "view" else event.kind) for event in log] for log in trace.logs]
    return Trace(trace.logs, timed(seen).clocks, trace.crashed)


def follow(follower: WindowFollower, logs: Sequence[Sequence[Worded]], cuts: Sequence[int]) -> WindowFollower:
    """Hand the logs over in pieces that end at these logical times."""
    handed = [0] * len(logs)
    for cut in (*cuts, 1 << 40):
        for process, log in enumerate(logs):
            upto = next((at for at in range(handed[process], len(log)) if log[at].lamport > cut), len(log))
            follower.take(process, log[handed[process] : upto], cut)
            handed[process] = upto
        follower.advance()
    return follower


def cuts_of(rng: random.Random, logs: Sequence[Sequence[Worded]]) -> list[int]:
    last = max((event.lamport for log in logs for event in log), default=0)
    return sorted(rng.randrange(last + 1) for _ in range(rng.randint(0, 8)))


def store(processes: int) -> WindowFollower:
    return follow_words(Guarantee.SERIALISABLE, {"versions": "timestamp"}, processes)


@pytest.mark.parametrize("kept", [10_000, 12])
def test_transactions_are_judged_as_by_the_audit_however_the_run_is_cut(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed_window, "EVENTS_MAX", kept)
    seen: Counter[str] = Counter()
    for seed in range(TRACES):
        rng = random.Random(seed)
        trace = random_transactions(rng, stamped=True)
        logs = worded(with_causal_reads(trace))
        whole = judge_transactions(memory.labelled(trace), "timestamp")
        found = follow(store(len(logs)), logs, cuts_of(rng, logs))
        # The audit knows that nothing more comes, so that who has not committed never will.
        if whole.wrong.kind != UNCOMMITTED:
            assert not found.count or whole.violations, f"seed {seed}: {found.because}"
        if kept > 1000:
            assert found.count or not whole.violations or whole.wrong.kind == UNCOMMITTED, f"seed {seed}"
        assert bool(found.because) == bool(found.count)
        seen["found"] += found.count > 0
        seen["clean"] += not whole.violations
    assert min(seen["found"], seen["clean"]) > TRACES // 50, seen


@pytest.mark.parametrize("kept", [10_000, 12])
def test_calls_are_judged_as_by_the_audit_however_the_run_is_cut(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed_window, "EVENTS_MAX", kept)
    seen: Counter[str] = Counter()
    for seed in range(TRACES):
        rng = random.Random(seed)
        calls = random_calls(rng)
        logs = worded(calls.trace)
        whole = judge_calls(memory.labelled(calls.trace), calls.conflicts, np.ones(len(logs), np.bool_))
        follower = follow_words(Guarantee.SIGNIFICANT, {"conflicts": calls.conflicts}, len(logs))
        found = follow(follower, logs, cuts_of(rng, logs))
        assert not found.count or whole.violations, f"seed {seed}: {found.because}"
        assert kept < 1000 or found.count or not whole.violations, f"seed {seed}"
        seen["found"] += found.count > 0
        seen["clean"] += not whole.violations
    assert min(seen["found"], seen["clean"]) > TRACES // 50, seen


def test_transactions_that_come_before_each_other_are_named() -> None:
    found = follow(store(3), worded(SKEW), [2])
    assert found.count == 1
    assert "come before each other" in found.because


def test_what_may_still_commit_is_no_violation_until_it_aborts() -> None:
    logs = [
        [],
        [write_of(1, 0, "x", "1.1"), end(1, 1, "1.1", "abort")],
        [read(2, 0, "x", "1.2"), saw(1, 0, "x", "1.2"), end(2, 1, "1.2")],
    ]
    trace = timed(logs)
    open_ = worded(trace)
    aborted = open_[1].pop()
    follower = follow(store(3), open_, [])
    assert follower.count == 0
    follower.take(1, [aborted], 1 << 41)
    for process in (0, 2):
        follower.take(process, [], 1 << 41)
    follower.advance()
    assert "which never committed" in follower.because


def test_only_the_last_events_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed_window, "EVENTS_MAX", 50)
    follower = store(1)
    for number in range(100):
        at = number * 4
        name = f"{number + 1}.0"
        log = [write_of(0, at, "x", name), read(0, at + 1, "x", name), saw(0, at, "x", name), end(0, at + 2, name)]
        follower.take(0, [each._replace(lamport=at + 1 + n) for n, each in enumerate(worded(timed([log]))[0])], at + 4)
        follower.advance()
        assert sum(map(len, follower._kept)) <= 50
    assert (follower.messages, follower.count) == (300, 0)
