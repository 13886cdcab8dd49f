"""Every check against brute force, on thousands of random traces with planted faults, whole and in segments."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from quire.pipeline.auditing import deliveries, search, segments
from quire.pipeline.auditing.deliveries import DeliveriesResult, DeliveriesTask
from quire.pipeline.auditing.findings import Orders
from quire.pipeline.auditing.judging import judge_trace
from quire.pipeline.auditing.registry import audit_job
from quire.pipeline.auditing.results import Results
from quire.pipeline.tasks import run_here
from tests.audit import memory, oracle
from tests.audit.traces import Trace, plain, random_trace, timed
from tests.kit.effort import runs

HERE = run_here(audit_job())
TRACES = runs(1000, 2000)
PARTS = 8


def judge(monkeypatch: pytest.MonkeyPatch, trace: Trace, pieces: int, block_shift: int = 1) -> Results:
    read = memory.read_from(trace)
    for module in (segments, deliveries, search):
        monkeypatch.setattr(module, "read_events", read)
    layout = memory.layout_of(trace)
    return judge_trace(layout, pieces, HERE, [DeliveriesTask(layout.world, layout.groups)], block_shift=block_shift)


def counts(results: Results) -> oracle.Expected:
    found, total = results.of(Orders), results.of(DeliveriesResult).total
    causal = None if found.unordered else found.causal.count
    return oracle.Expected(found.integrity.count, found.agreement.count, found.fifo.count, causal, total.pairs, total.cycles)


@pytest.fixture(scope="module")
def seen() -> Iterator[Counter[str]]:
    """How often each check was violated, over all parts: a check that is never violated has not been tested."""
    tally: Counter[str] = Counter()
    yield tally
    if tally["parts"] == PARTS:
        for check in (*oracle.Expected._fields, "undecided", "boundaries"):
            assert tally[check] >= 50, f"{check} was hardly tested: {tally}"


@pytest.mark.parametrize("part", range(PARTS))
def test_counts_and_first_instances_equal_brute_force_for_any_number_of_segments(
    monkeypatch: pytest.MonkeyPatch, seen: Counter[str], part: int
) -> None:
    for seed in range(part * TRACES // PARTS, (part + 1) * TRACES // PARTS):
        rng = random.Random(seed)
        trace = random_trace(rng)
        expected = oracle.judge(trace.logs, trace.crashed)
        if not any(trace.logs):
            continue
        whole = judge(monkeypatch, trace, 1)
        assert counts(whole) == expected, f"seed {seed}, whole"
        pieces = rng.randint(2, 6)
        parts = judge(monkeypatch, trace, pieces, rng.choice((0, 1, 2, 14)))
        assert counts(parts) == expected, f"seed {seed}, {pieces} segments"
        assert first_instances(parts) == first_instances(whole), f"seed {seed}, {pieces} segments"
        seen.update(name for name, count in zip(expected._fields, expected, strict=True) if count)
        seen["undecided"] += expected.causal is None
        seen["boundaries"] += parts.of(Orders).segments > 1
    seen["parts"] += 1


def test_where_too_much_crosses_the_boundaries_one_task_judges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "EXPORT_MAX", 2)
    seen: Counter[bool] = Counter()
    for seed in range(TRACES // PARTS):
        rng = random.Random(seed)
        trace = random_trace(rng)
        if any(trace.logs):
            found = judge(monkeypatch, trace, rng.randint(2, 6))
            assert counts(found) == oracle.judge(trace.logs, trace.crashed), f"seed {seed}"
            seen[found.of(Orders).segments > 1] += 1
    assert min(seen[True], seen[False]) > 10, seen


def first_instances(results: Results) -> tuple[object, ...]:
    found, total = results.of(Orders), results.of(DeliveriesResult).total
    firsts = (found.integrity.first, found.agreement.first, found.fifo.first, found.causal.first)
    return (*firsts, total.disagreement, total.cycle)


PLANTED = {
    "a duplicate": (plain("s0>01 d0:0", "d0:0 d0:0"), oracle.Expected(1, 0, 0, 0, 0, 0)),
    "a loss": (plain("s0>01 d0:0", "s0>1 d1:0"), oracle.Expected(0, 1, 0, 0, 0, 0)),
    "a loss before a later message": (plain("s0>01 s1>01 d0:0 d0:1", "d0:1"), oracle.Expected(0, 1, 1, 1, 0, 0)),
    "a phantom": (plain("s0>01 d0:0", "d0:0 d0:7"), oracle.Expected(1, 0, 0, 0, 0, 0)),
    "a FIFO swap": (plain("s0>1 s1>1", "d0:1 d0:0"), oracle.Expected(0, 0, 1, 1, 0, 0)),
    "a causal swap": (plain("s0>12", "d0:0 s0>2", "d1:0 d0:0"), oracle.Expected(0, 0, 0, 1, 0, 0)),
    "a causal swap through a third member": (
        plain("s0>13", "d0:0 s0>2", "d1:0 s0>3", "d2:0 d0:0"),
        oracle.Expected(0, 0, 0, 1, 0, 0),
    ),
    "a disagreement": (plain("s0>01 d0:0 d1:0", "s0>01 d1:0 d0:0"), oracle.Expected(0, 0, 0, 0, 1, 1)),
    "a cycle across three groups": (
        plain("s0>02 d0:0 d1:0", "s0>01 d1:0 d2:0", "s0>12 d2:0 d0:0"),
        oracle.Expected(0, 0, 0, 0, 0, 1),
    ),
}


@pytest.mark.parametrize("pieces", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found_alone(monkeypatch: pytest.MonkeyPatch, fault: str, pieces: int) -> None:
    trace, expected = PLANTED[fault]

    assert oracle.judge(trace.logs, trace.crashed) == expected
    assert counts(judge(monkeypatch, trace, pieces)) == expected


def test_a_crashed_members_unfinished_messages_are_nobodys_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = plain("s0>012 d0:0", "s0>12 d1:0", "d1:0")
    crashed = timed(lost.logs, frozenset({0}))

    assert counts(judge(monkeypatch, lost, 2)).agreement == 2
    assert counts(judge(monkeypatch, crashed, 2)).agreement == 0


@pytest.mark.parametrize("pieces", [1, 2])
def test_what_one_correct_member_has_of_a_crashed_one_all_must_have(monkeypatch: pytest.MonkeyPatch, pieces: int) -> None:
    """Member 2 has sent and delivered something of its own since, so that there is a boundary between."""
    own = " ".join(f"s{number}>2 d2:{number}" for number in range(4))
    trace = timed(plain("s0>12", "d0:0", own).logs, frozenset({0}))

    assert counts(judge(monkeypatch, trace, pieces)).agreement == 1
