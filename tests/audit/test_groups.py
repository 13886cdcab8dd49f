"""The checks of groups against brute force: overlapping groups whose members come and go, with planted faults."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from quire.model.orders import OF_ANY_MESSAGES, Guarantee
from quire.pipeline import Verdict
from quire.pipeline.auditing.auditor import audit_with
from quire.pipeline.auditing.deliveries import judge_together
from quire.pipeline.auditing.in_groups import GroupsResult, GroupsTask, cut_by_group, judge_groups, judge_rows
from quire.pipeline.auditing.registry import audit_job
from quire.pipeline.auditing.results import Results
from quire.pipeline.layout import lay_out
from quire.pipeline.tasks import run_here
from quire.trace.store import open_run
from tests.audit import group_oracle, memory, oracle
from tests.audit.group_traces import random_groups
from tests.audit.oracle import Event
from tests.audit.test_spark import said
from tests.audit.traces import Trace, plain, timed, write
from tests.kit.effort import runs

HERE = run_here(audit_job())
TRACES = runs(150, 500)
ALL = (*OF_ANY_MESSAGES, Guarantee.HYBRID, Guarantee.MEMBERSHIPS)


def counts(trace: Trace) -> tuple[int, int, int]:
    correct = np.array([p not in trace.crashed for p in range(len(trace.logs))])
    rows = memory.labelled(trace)
    total, found = judge_together(rows, correct), judge_rows(rows, correct, delivered=True)
    assert (total.disagreement is not None) == (total.pairs > 0)
    assert (found.within.disagreement is not None) == (found.within.pairs > 0)
    assert bool(found.logs.seen) == (found.logs.violations > 0)
    return total.pairs, found.within.pairs, found.logs.violations


def test_counts_equal_brute_force() -> None:
    seen: Counter[str] = Counter()
    for seed in range(TRACES):
        trace = random_groups(random.Random(seed), blanks=seed % 3 == 0)
        expected = group_oracle.judge(trace.logs, trace.crashed)
        assert counts(trace) == expected, f"seed {seed}"
        seen.update(name for name, count in zip(("together", "within", "memberships"), expected, strict=True) if count)
        seen["clean"] += not any(expected)
        seen["only across groups"] += bool(expected[0] and not expected[1])
        seen["apart"] += bool(oracle.judge(trace.logs, trace.crashed).total > expected[0])
    assert (
        min(seen[name] for name in ("together", "within", "memberships", "clean", "only across groups", "apart"))
        >= TRACES // 100
    ), seen


def without_groups_of_deliveries(trace: Trace, rng: random.Random) -> Trace:
    """As some traces are: only some rows say which group a message is of, and some do so wrongly."""
    names = sorted({event.group for log in trace.logs for event in log if event.group is not None})
    return trace._replace(
        logs=[
            [event._replace(group=rng.choice((None, event.group, *names))) if event.kind != "view" else event for event in log]
            for log in trace.logs
        ]
    )


def test_groups_are_judged_alike_in_any_number_of_pieces(tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for seed in range(runs(30, 60)):
        trace = random_groups(rng := random.Random(seed))
        if seed % 2:
            trace = without_groups_of_deliveries(trace, rng)
        if not any(trace.logs):
            continue
        layout = lay_out(open_run(write(tmp_path / str(seed), trace, rows_per_append=3)))
        told = []
        for pieces in (1, 2, 3, 7):
            tasks = cut_by_group(GroupsTask(layout.world, layout.groups, pieces=pieces))
            told.append(Results(map(judge_groups, tasks)).of(GroupsResult))
        assert all(found == told[0] for found in told[1:]), f"seed {seed}"
        seen["within"] += told[0].within.pairs > 0
        seen["logs"] += told[0].logs.violations > 0
        seen[f"kind {told[0].logs.kind}"] += 1
        seen["clean"] += not told[0].within.pairs and not told[0].logs.violations
    assert min(seen[name] for name in ("within", "logs", "clean", "kind 1", "kind 5")) >= 1, seen


def test_what_is_said_does_not_depend_on_the_number_of_segments(tmp_path: Path) -> None:
    for seed in range(40):
        trace = random_groups(random.Random(seed))
        if not any(trace.logs):
            continue
        directory = write(tmp_path / str(seed), trace, promises=ALL, rows_per_append=3)
        whole = audit_with(HERE, directory, segments=1)
        assert tuple(whole.checks) == ALL
        for check in whole.checks.values():
            assert (check.witness is not None) == (check.violations > 0) == (check.verdict is Verdict.VIOLATED)
        assert said(audit_with(HERE, directory, segments=2 + seed % 3)) == said(whole), f"seed {seed}"


def test_destinations_that_senders_did_not_learn_are_found_from_the_logs(tmp_path: Path) -> None:
    for seed in range(30):
        trace = random_groups(random.Random(seed))
        if group_oracle.judge(trace.logs, trace.crashed)[2] or not any(trace.logs):
            continue
        delivered = {(e.origin, e.seq) for log in trace.logs for e in log if e.kind == "deliver"}
        dynamic = {e.group for log in trace.logs for e in log if e.kind == "view"}
        silent = [
            [
                e._replace(dests=None) if e.kind == "send" and (e.origin, e.seq) in delivered and e.group in dynamic else e
                for e in log
            ]
            for log in trace.logs
        ]
        recorded = audit_with(HERE, write(tmp_path / f"{seed}", trace, promises=ALL), segments=3)
        found = audit_with(HERE, write(tmp_path / f"{seed}-silent", trace._replace(logs=silent), promises=ALL), segments=3)
        assert said(found) == said(recorded), f"seed {seed}"


def view(who: int, number: int, op: str, group: str = "g") -> Event:
    return Event("view", who, number, (), group, op=op)


def send(who: int, seq: int, *dests: int, group: str = "g") -> Event:
    return Event("send", who, seq, dests, group)


def deliver(who: int, seq: int, group: str = "g") -> Event:
    return Event("deliver", who, seq, None, group)


JOINED = [view(0, 1, "join"), view(1, 2, "join")]

EXPLAINED = {
    "memberships outside": (
        [
            [send(0, 0, 0, 1), *JOINED, deliver(0, 0)],
            [view(1, 2, "join"), deliver(0, 0), view(1, 4, "leave"), view(0, 5, "leave")],
        ],
        "member 1 saw the leave of member 0 of group g at position 3, outside its membership",
    ),
    "memberships skipped": (
        [[send(0, 0, 0, 1), *JOINED, deliver(0, 0), view(2, 4, "join")], [view(1, 2, "join"), view(2, 4, "join")]],
        "member 1 saw the join of member 2 of group g as number 4, though number 3 was due after what it had delivered",
    ),
    "memberships again": (
        [[*JOINED, view(0, 3, "join")], [view(1, 2, "join"), view(0, 3, "join")]],
        "member 0 joined group g at position 2, though it was a member already",
    ),
    "memberships different": (
        [
            [send(0, 0, 0, 1), send(0, 1, 0, 1), *JOINED, deliver(0, 0), deliver(0, 1)],
            [view(1, 2, "join"), deliver(0, 1), deliver(0, 0)],
        ],
        "number 3 of group g is 0:0 at member 0, but 0:1 at member 1",
    ),
    "memberships different (a blank)": (
        [[send(0, 0, 0, 1), *JOINED, deliver(0, 0)], [view(1, 2, "join"), view(0, 3, "blank")]],
        "number 3 of group g is 0:0 at member 0, but a blank number at member 1",
    ),
    "memberships unfinished": (
        [[send(0, 0, 0, 1), *JOINED, deliver(0, 0)], [view(1, 2, "join")]],
        "member 1 delivered group g up to number 2 and never left, but the group goes to number 3, which member 0 delivered",
    ),
    "hybrid within": (
        [
            [send(0, 0, 0, 1), send(0, 1, 0, 1), *JOINED, deliver(0, 0), deliver(0, 1)],
            [view(1, 2, "join"), deliver(0, 1), deliver(0, 0)],
        ],
        "within group g, member 0 delivered 0:0 before 0:1, but member 1 the other way round",
    ),
    "hybrid across": (
        [
            [send(0, 0, 1, group="g"), send(0, 1, 1, group="h")],
            [deliver(0, 1, "h"), deliver(0, 0, "g")],
        ],
        "member 1 delivered 0:1 before 0:0, though member 0 had sent 0:0 before it sent 0:1",
    ),
}


@pytest.mark.parametrize("name", EXPLAINED)
def test_a_violation_is_explained_in_one_sentence(tmp_path: Path, name: str) -> None:
    logs, sentence = EXPLAINED[name]
    check = audit_with(HERE, write(tmp_path / "run", timed(logs), promises=ALL)).checks[Guarantee(name.split()[0])]

    assert check.because == sentence
    assert check.witness is not None
    assert check.witness.positions


def test_members_that_were_never_together_in_both_groups_need_not_agree(tmp_path: Path) -> None:
    """Both deliver 2:0 of g and 2:1 of h, in different orders; but member 0 leaves g before member 1 joins h."""
    sends = [send(2, 0, 0, 1, group="g"), send(2, 1, 0, 1, group="h")]
    one = [view(0, 1, "join"), view(1, 2, "join"), deliver(2, 0), view(0, 4, "leave")]
    one += [view(0, 1, "join", "h"), view(1, 2, "join", "h"), deliver(2, 1, "h")]
    other = [view(1, 2, "join"), view(1, 2, "join", "h"), deliver(2, 1, "h"), deliver(2, 0), view(0, 4, "leave")]
    apart = audit_with(HERE, write(tmp_path / "apart", timed([one, other, sends]), promises=ALL))
    staying = [[e for e in log if e.op != "leave"] for log in (one, other)]
    together = audit_with(HERE, write(tmp_path / "together", timed([*staying, sends]), promises=ALL))

    assert apart.checks[Guarantee.TOTAL].verdict is Verdict.HOLDS
    assert apart.checks[Guarantee.MEMBERSHIPS].verdict is Verdict.HOLDS
    assert apart.checks[Guarantee.ACYCLIC].verdict is Verdict.VIOLATED
    assert together.checks[Guarantee.TOTAL].because == "member 0 delivered 2:0 before 2:1, but member 1 the other way round"


def test_the_end_of_a_log_is_a_moment_at_which_members_may_be_together(tmp_path: Path) -> None:
    """Member 1 joins g with a number that member 0 never comes to. Nothing says that either of them left g or h, so that
    both are members of both from there on, and they deliver 2:0 of g and 2:1 of h in different orders."""
    sends = [send(2, 0, 0, 1, group="g"), send(2, 1, 0, 1, group="h")]
    one = [view(0, 1, "join"), deliver(2, 0), view(0, 0, "found", "h"), deliver(2, 1, "h")]
    other = [view(1, 0, "found", "h"), deliver(2, 1, "h"), view(1, 9, "join"), deliver(2, 0)]
    trace = timed([one, other, sends])

    assert group_oracle.judge(trace.logs, trace.crashed)[0] == 1
    assert audit_with(HERE, write(tmp_path / "run", trace, promises=ALL)).checks[Guarantee.TOTAL].violations == 1


def test_without_groups_and_views_nothing_is_said_of_them(tmp_path: Path) -> None:
    checks = audit_with(HERE, write(tmp_path / "run", plain("s0>01 d0:0", "d0:0"), promises=ALL)).checks

    assert checks[Guarantee.HYBRID].because == "the trace does not say to which groups its messages were sent"
    assert checks[Guarantee.MEMBERSHIPS].because == "the trace records no joins or leaves (rows of kind view)"
    assert checks[Guarantee.HYBRID].verdict is checks[Guarantee.MEMBERSHIPS].verdict is Verdict.UNDECIDED
