"""Serialisability against brute force, on random transactions that see the right versions or wrong ones."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from quire.model.errors import BadInput
from quire.model.orders import Guarantee
from quire.pipeline import Check, Verdict, audit
from quire.pipeline.auditing.auditor import audit_with
from quire.pipeline.auditing.checks.serialisable import judge_transactions
from quire.pipeline.auditing.registry import audit_job
from quire.pipeline.tasks import run_here
from tests.audit import memory, txn_traces
from tests.audit.oracle import Event
from tests.audit.traces import Trace, plain, timed, write
from tests.audit.txn_traces import Counts, random_transactions
from tests.kit.effort import runs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = run_here(audit_job())
TRACES = runs(250, 500)


@pytest.mark.parametrize("stamped", [True, False])
def test_counts_equal_brute_force(stamped: bool) -> None:
    seen: Counter[str] = Counter()
    for seed in range(TRACES):
        trace = random_transactions(random.Random(seed), stamped=stamped)
        expected = txn_traces.judge(trace)
        found = judge_transactions(memory.labelled(trace), "")
        unsaid = int(found.why.split()[0]) if found.why and "saw" in found.why else 0
        assert Counts(found.cycles, found.wrong.count, unsaid) == expected, f"seed {seed}"
        assert bool(found.cycle) == (found.cycles > 0)
        assert bool(found.wrong.did) == (found.wrong.count > 0)
        for step, following in zip(found.cycle, found.cycle[1:] + found.cycle[:1], strict=True):
            assert step.second == following.first
        seen.update(name for name, count in zip(expected._fields, expected, strict=True) if count)
        seen["clean"] += not any(expected)
    assert min(seen[name] for name in (*Counts._fields, "clean")) >= TRACES // 100, seen


def read(who: int, seq: int, key: str, txn: str) -> Event:
    return Event("send", who, seq, (0,), None, key, "r", txn)


def saw(origin: int, seq: int, key: str, txn: str) -> Event:
    return Event("view", origin, seq, None, None, key, "r", txn)


def write_of(who: int, seq: int, key: str, txn: str) -> Event:
    return Event("send", who, seq, (0,), None, key, "w", txn)


def end(who: int, seq: int, txn: str, op: str = "commit") -> Event:
    return Event("send", who, seq, (0,), None, None, op, txn)


SKEW = timed(
    [
        [],
        [read(1, 0, "x", "1.1"), saw(1, 0, "x", "1.1"), write_of(1, 1, "y", "1.1"), end(1, 2, "1.1")],
        [read(2, 0, "y", "1.2"), saw(2, 0, "y", "1.2"), write_of(2, 1, "x", "1.2"), end(2, 2, "1.2")],
    ]
)
"""Each reads what the other writes, and neither sees it."""

LOST = timed(
    [
        [],
        [read(1, 0, "x", "1.1"), saw(1, 0, "x", "1.1"), write_of(1, 1, "x", "1.1"), end(1, 2, "1.1")],
        [read(2, 0, "x", "1.2"), saw(2, 0, "x", "1.2"), write_of(2, 1, "x", "1.2"), end(2, 2, "1.2")],
    ]
)
"""Both read what nobody had written, and both write."""

DIRTY = timed(
    [
        [],
        [write_of(1, 0, "x", "1.1"), end(1, 1, "1.1", "abort")],
        [read(2, 0, "x", "2.2"), saw(1, 0, "x", "2.2"), end(2, 1, "2.2")],
    ]
)
AGAIN = timed(
    [
        [],
        [write_of(1, 0, "x", "1.1"), write_of(1, 1, "x", "1.1"), end(1, 2, "1.1")],
        [read(2, 0, "x", "2.2"), saw(1, 0, "x", "2.2"), end(2, 1, "2.2")],
    ]
)
NOWHERE = timed([[], [read(1, 0, "x", "1.1"), saw(2, 7, "x", "1.1"), end(1, 1, "1.1")], []])
TORN = timed([[Event("deliver", 1, 0, None, None, None, "abort", "1.1")], [end(1, 0, "1.1")]])

EXPLAINED = {
    "skew": (
        SKEW,
        "1.1 and 1.2 come before each other: 1.1 read x before 1.2 wrote it, and 1.2 read y before 1.1 wrote it (G2)",
    ),
    "lost": (
        LOST,
        "1.1 and 1.2 come before each other: 1.2 overwrote x after 1.1, and 1.2 read x before 1.1 wrote it (G-single)",
    ),
    "dirty": (DIRTY, "2.2 read x as 1.1 had written it, which never committed (G1a)"),
    "again": (AGAIN, "2.2 read x as 1.1 had written it before it wrote it again (G1b)"),
    "nowhere": (NOWHERE, "1.1 read x as 2:7 wrote it, but there is no such write"),
    "torn": (TORN, "1.1 committed at member 1, but aborted at member 0"),
}


def check(directory: Path, trace: Trace, segments: int = 1, **settings: object) -> Check:
    run = write(directory, trace, promises=(Guarantee.SERIALISABLE,), settings=settings)
    return audit_with(HERE, run, segments=segments).checks[Guarantee.SERIALISABLE]


@pytest.mark.parametrize("name", EXPLAINED)
def test_a_violation_is_explained_in_one_sentence(tmp_path: Path, name: str) -> None:
    trace, sentence = EXPLAINED[name]
    found = check(tmp_path / "one", trace)

    assert (found.violations, found.because) == (1, sentence)
    assert found.witness is not None
    assert found.witness.positions
    assert found == check(tmp_path / "four", trace, 4)


def test_a_cycle_of_three_has_its_reads_and_writes(tmp_path: Path) -> None:
    logs: list[list[Event]] = [[]]
    for who, (reads, writes) in enumerate((("x", "y"), ("y", "z"), ("z", "x")), start=1):
        txn = f"1.{who}"
        logs.append([read(who, 0, reads, txn), saw(who, 0, reads, txn), write_of(who, 1, writes, txn), end(who, 2, txn)])

    found = check(tmp_path / "run", timed(logs))

    assert found.witness is not None
    assert found.witness.messages == ("1.1", "1.3", "1.2")
    assert found.witness.chain == (
        "1.1 read x before 1.3 wrote it",
        "1.3 read z before 1.2 wrote it",
        "1.2 read y before 1.1 wrote it",
    )
    assert [(place.member, place.event, place.pos) for place in found.witness.positions] == [
        (1, "view", 1), (3, "send", 2), (3, "view", 1), (2, "send", 2), (2, "view", 1), (1, "send", 2),
    ]  # fmt: skip


def test_what_a_trace_does_not_say_leaves_it_undecided(tmp_path: Path) -> None:
    unnamed = check(tmp_path / "a", plain("s0>0 d0:0"))
    unseen = check(tmp_path / "b", timed([[event for event in log if event.kind != "view"] for log in SKEW.logs]))

    assert unnamed.verdict is unseen.verdict is Verdict.UNDECIDED
    assert unnamed.because == "no event names a transaction in txn"
    assert unseen.because == "2 reads of committed transactions do not say what they saw"


def test_a_trace_without_commits_or_without_reads_is_undecided(tmp_path: Path) -> None:
    uncommitted = check(tmp_path / "a", timed([[event for event in log if event.op != "commit"] for log in SKEW.logs]))
    unread = check(tmp_path / "b", timed([[write_of(0, 0, "x", "1.0"), end(0, 1, "1.0")]]))

    assert uncommitted.verdict is unread.verdict is Verdict.UNDECIDED
    assert uncommitted.because == "no event says that a transaction committed: there is none with the op commit"
    assert unread.because == "no event says what a committed transaction read: there is no view with the op r"


def test_replicas_that_take_writes_in_different_orders_make_a_cycle(tmp_path: Path) -> None:
    took = [[Event("deliver", who, 0, None, None, "x", "w", f"t{who}") for who in order] for order in ((2, 3), (3, 2))]
    logs = [*took, *([write_of(who, 0, "x", f"t{who}"), end(who, 1, f"t{who}")] for who in (2, 3))]

    assert check(tmp_path / "run", timed(logs)).because == (
        "t2 and t3 come before each other: t3 overwrote x after t2, and t2 overwrote x after t3 (G0)"
    )


def test_an_order_of_versions_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="must be timestamp or delivered"):
        check(tmp_path / "unknown", SKEW, versions="alphabetical")
    named = timed([[write_of(0, 0, "x", "t1"), end(0, 1, "t1")]])
    with pytest.raises(BadInput, match="transaction 't1' is not named number"):
        check(tmp_path / "named", named, versions="timestamp")


def test_messages_need_not_be_numbered_without_gaps(tmp_path: Path) -> None:
    logs = [[event._replace(origin=event.origin, seq=event.seq * 65536) for event in log] for log in SKEW.logs]
    run = write(tmp_path / "run", timed(logs), promises=(Guarantee.SERIALISABLE,))

    found = audit_with(HERE, run, segments=2)

    assert found.checks[Guarantee.SERIALISABLE].because == EXPLAINED["skew"][1]
    assert set(found.checks) == {Guarantee.TOTAL, Guarantee.ACYCLIC, Guarantee.SERIALISABLE}
    assert found.not_applicable == dict.fromkeys(
        (Guarantee.INTEGRITY, Guarantee.AGREEMENT, Guarantee.FIFO, Guarantee.CAUSAL),
        "the processes do not number their messages 0, 1, 2 and so on",
    )
    with pytest.raises(BadInput, match="instead of 1:1"):
        audit_with(HERE, run, expect=[Guarantee.FIFO])


def test_spark_says_the_same(spark: SparkSession, tmp_path: Path) -> None:
    run = write(tmp_path / "run", SKEW, promises=(Guarantee.SERIALISABLE,))

    assert audit(spark, run, segments=2).checks == audit_with(HERE, run).checks
