"""The checks of views against brute force: members crash, are excluded, leave, come back and resume, with planted faults."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import msgspec
import numpy as np
import pytest

from quire.model.errors import BadInput
from quire.model.orders import OF_ANY_MESSAGES, Guarantee
from quire.pipeline import Verdict
from quire.pipeline.auditing import in_views as views
from quire.pipeline.auditing import segments
from quire.pipeline.auditing.auditor import audit_with
from quire.pipeline.auditing.checks.views import judge_views
from quire.pipeline.auditing.findings import Orders
from quire.pipeline.auditing.in_views import in_views
from quire.pipeline.auditing.judging import judge_trace
from quire.pipeline.auditing.registry import audit_job
from quire.pipeline.auditing.segments import SegmentTask, judge_events
from quire.pipeline.layout import correct_members
from quire.pipeline.tasks import run_here
from quire.trace.views import Operation, ViewEvent, operation_word
from tests.audit import memory, view_oracle
from tests.audit.oracle import Event
from tests.audit.test_spark import said
from tests.audit.traces import Trace, plain, timed, write
from tests.audit.view_traces import happening, installed, random_views
from tests.kit.effort import runs

HERE = run_here(audit_job())
TRACES = runs(800, 6000)
OF_VIEWS = (Guarantee.VIRTUAL_SYNCHRONY, Guarantee.UNIFORM, Guarantee.ONCE)
ALL = (*OF_ANY_MESSAGES, *OF_VIEWS)


def judged(trace: Trace) -> view_oracle.Expected:
    correct = np.array([p not in trace.crashed for p in range(len(trace.logs))])
    found = judge_views(memory.labelled(trace), correct)
    assert (found.synchrony.first is not None) == (found.synchrony.count > 0)
    assert (found.uniform.first is not None) == (found.uniform.count > 0)
    assert bool(found.once.twice) == (found.once.count > 0)
    return view_oracle.Expected(found.synchrony.count, found.uniform.count, found.once.count)


def ordered(trace: Trace) -> view_oracle.Orders:
    layout = memory.layout_of(trace)
    task = SegmentTask(layout.world, layout.groups, 0, None, None, np.zeros(layout.world.members, np.bool_), whole=True)
    events = memory.read_from(trace)(layout.world, layout.groups)
    found = judge_events(task, in_views(events, memory.labelled(trace), correct_members(layout.world)))
    fifo, causal = found.late.sum(axis=0).tolist()
    return view_oracle.Orders(found.breaches, found.lost, fifo, causal)


def test_counts_equal_brute_force() -> None:
    seen: Counter[str] = Counter()
    for seed in range(TRACES):
        trace = random_views(random.Random(seed))
        expected = view_oracle.judge(trace.logs, trace.crashed)
        assert judged(trace) == expected, f"seed {seed}"
        orders = view_oracle.orders(trace.logs, trace.crashed)
        assert ordered(trace) == orders, f"seed {seed}"
        for found in (expected, orders):
            seen.update(name for name, count in zip(found._fields, found, strict=True) if count)
        seen["clean"] += not any(expected)
        seen["only uniform"] += bool(expected.uniform and not expected.synchrony)
        seen["resumed"] += any(e.op == "resume" for log in trace.logs for e in log)
    wanted = (*view_oracle.Expected._fields, *view_oracle.Orders._fields, "clean", "only uniform", "resumed")
    assert min(seen[name] for name in wanted) >= TRACES // 100, seen


def judged_in(monkeypatch: pytest.MonkeyPatch, trace: Trace, pieces: int, block_shift: int) -> Orders:
    rows = memory.labelled(trace)
    monkeypatch.setattr(segments, "read_events", memory.read_from(trace))
    monkeypatch.setattr(segments, "tells_of_views", lambda *_: True)
    for module in (segments, views):
        monkeypatch.setattr(module, "read_labelled", lambda *_, **__: rows)
    layout = memory.layout_of(trace)
    return judge_trace(layout, pieces, HERE, viewed=True, block_shift=block_shift).of(Orders)


def test_segments_come_to_the_same_counts_and_first_instances(monkeypatch: pytest.MonkeyPatch) -> None:
    apart = 0
    for seed in range(TRACES):
        rng = random.Random(seed)
        trace = random_views(rng)
        whole, found = (judged_in(monkeypatch, trace, pieces, rng.choice((0, 1, 14))) for pieces in (1, rng.randint(2, 6)))
        apart += found.segments > 1
        assert msgspec.structs.replace(found, segments=1) == whole, f"seed {seed}"
    assert apart > TRACES // 10


def test_what_is_said_does_not_depend_on_the_number_of_segments(tmp_path: Path) -> None:
    for seed in range(25):
        trace = random_views(random.Random(seed))
        directory = write(tmp_path / str(seed), trace, promises=ALL, rows_per_append=3)
        whole = audit_with(HERE, directory, segments=1)
        assert tuple(whole.checks) == ALL
        for check in whole.checks.values():
            assert (check.witness is not None) == (check.violations > 0) == (check.verdict is Verdict.VIOLATED)
        assert said(audit_with(HERE, directory, segments=2 + seed % 3)) == said(whole), f"seed {seed}"


def view(p: int, number: int, *members: int) -> Event:
    return installed(p, number, dict.fromkeys(members, 1))


def test_what_a_process_sent_before_it_crashed_may_be_lost_though_it_came_back_in_the_same_view() -> None:
    resumed = happening(0, ViewEvent.RESUME, 1, 2, "0")
    after = installed(0, 2, {0: 2, 1: 1})
    silent = happening(0, ViewEvent.CRASH, 1, 1)
    lost = Event("send", 0, 0, (0, 1), "g")
    other = [view(1, 1, 0, 1), installed(1, 2, {0: 2, 1: 1})]
    assert ordered(timed([[view(0, 1, 0, 1), lost, silent, resumed, after], other])).agreement == 0
    goes_on = [view(0, 1, 0, 1), lost, view(0, 2, 0, 1)]
    assert ordered(timed([goes_on, [view(1, 1, 0, 1), view(1, 2, 0, 1)]])).agreement == 2


def test_a_restart_that_makes_again_only_some_of_what_it_had_delivered_is_no_disorder() -> None:
    resumed, excluded = happening(0, ViewEvent.RESUME, 1, 2, "0"), happening(0, ViewEvent.EXCLUDED, 1, 2)
    sender = [view(1, 1, 0, 1), *(send(1, seq, 0, 1) for seq in range(2)), *(deliver(1, seq) for seq in range(2))]
    both = [deliver(1, 0), deliver(1, 1)]
    again = timed([[view(0, 1, 0, 1), *both, resumed, deliver(1, 0), excluded], sender])
    assert ordered(again) == view_oracle.orders(again.logs, again.crashed) == (0, 0, 0, 0)
    assert ordered(timed([[view(0, 1, 0, 1), *reversed(both), resumed, deliver(1, 0), excluded], sender])).fifo == 1


def send(p: int, seq: int, *dests: int, operation: Operation | None = None) -> Event:
    return Event("send", p, seq, dests, "g", txn=operation and operation_word(operation, seq))


def deliver(origin: int, seq: int) -> Event:
    return Event("deliver", origin, seq, None, "g")


def ends(p: int, what: ViewEvent, number: int = 1) -> Event:
    return happening(p, what, number, 1)


EXPLAINED = {
    "virtual-synchrony lacked": (
        [
            [view(0, 1, 0, 1), send(0, 0, 0, 1), deliver(0, 0), view(0, 2, 0, 1)],
            [view(1, 1, 0, 1), view(1, 2, 0, 1)],
        ],
        "member 0 delivered 0:0 in view 1, but member 1 continued to view 2 without it",
    ),
    "virtual-synchrony elsewhere": (
        [
            [view(0, 1, 0, 1), send(0, 0, 0, 1), deliver(0, 0), view(0, 2, 0, 1)],
            [view(1, 1, 0, 1), view(1, 2, 0, 1), deliver(0, 0)],
        ],
        "member 1 delivered 0:0 in view 2 at position 2, though member 0 had sent it in view 1",
    ),
    "virtual-synchrony outside": (
        [[view(0, 1, 0, 1), send(0, 0, 0, 1), deliver(0, 0)], [view(1, 1, 0, 1), ends(1, ViewEvent.EXCLUDED), deliver(0, 0)]],
        "member 1 delivered 0:0 outside any view at position 2, though member 0 had sent it in view 1",
    ),
    "virtual-synchrony different": (
        [[view(0, 1, 0, 1, 2), send(0, 0, 0, 1), deliver(0, 0)], [installed(1, 1, {1: 7})]],
        "member 0 installed view 1 of members 0, 1 and 2, but member 1 installed view 1 of member 1.7",
    ),
    "virtual-synchrony jumped": (
        [[view(0, 1, 0, 1), send(0, 0, 0, 1), deliver(0, 0), view(0, 3, 0, 1)], [view(1, 1, 0, 1), deliver(0, 0)]],
        "member 0 installed view 3 of members 0 and 1 at position 3 right after view 1 of members 0 and 1",
    ),
    "uniform excluded": (
        [
            [view(0, 1, 0, 1), send(0, 0, 0, 1), deliver(0, 0), ends(0, ViewEvent.EXCLUDED)],
            [view(1, 1, 0, 1), view(1, 2, 1)],
        ],
        "member 0 delivered 0:0 in view 1, and was then excluded, but member 1 continued to view 2 without it",
    ),
    "uniform crashed": (
        [[view(0, 1, 0, 1), send(0, 0, 0, 1), deliver(0, 0), ends(0, ViewEvent.CRASH)], [view(1, 1, 0, 1), view(1, 2, 1)]],
        "member 0 delivered 0:0 in view 1, and then crashed, but member 1 continued to view 2 without it",
    ),
    "uniform to the end": (
        [[view(0, 1, 0, 1), send(0, 0, 0, 1), deliver(0, 0), ends(0, ViewEvent.LEFT)], [view(1, 1, 0, 1)]],
        "member 0 delivered 0:0 in view 1, and then left, but member 1 stayed to the end without it",
    ),
    "uniform forgotten": (
        [
            [
                view(0, 1, 0), send(0, 0, 0), deliver(0, 0), happening(0, ViewEvent.RESUME, 1, 2, "0"), installed(0, 2, {0: 2}),
            ],
            [],
        ],
        "member 0 delivered 0:0 in view 1, and then crashed, but member 0 continued to view 2 without it",
    ),
    "once again": (
        [
            [
                view(0, 1, 0), send(0, 0, 0, operation=Operation("alice", 1)), deliver(0, 0),
                send(0, 1, 0, operation=Operation("alice", 1)), deliver(0, 1),
            ],
            [],
        ],
        "member 0 delivered operation 1 of session alice twice, as 0:0 and as 0:1",
    ),
    "once the same": (
        [[view(0, 1, 0), send(0, 0, 0, operation=Operation("alice", 4)), deliver(0, 0), deliver(0, 0)], []],
        "member 0 delivered operation 4 of session alice twice, both times as 0:0",
    ),
    "once elsewhere": (
        [
            [view(0, 1, 0, 1), send(0, 0, 0, operation=Operation("alice", 1)), deliver(0, 0)],
            [view(1, 1, 0, 1), send(1, 0, 1, operation=Operation("alice", 1)), deliver(1, 0)],
        ],
        "operation 1 of session alice was delivered as 0:0 at member 0 and as 1:0 at member 1",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EXPLAINED)
def test_a_violation_is_explained_in_one_sentence(tmp_path: Path, name: str) -> None:
    logs, sentence = EXPLAINED[name]
    check = audit_with(HERE, write(tmp_path / "run", timed(logs), promises=ALL)).checks[Guarantee(name.split()[0])]

    assert check.because == sentence
    assert check.witness is not None
    assert check.witness.positions


COME_AND_GO = timed(
    [
        [
            view(0, 1, 0, 1, 2), send(0, 0, 0, 1, 2), deliver(0, 0), view(0, 2, 0, 1), send(0, 1, 0, 1), deliver(0, 1),
            installed(0, 3, {0: 1, 1: 1, 2: 2}), send(0, 2, 0, 1, 2), deliver(0, 2),
        ],
        [
            view(1, 1, 0, 1, 2), deliver(0, 0), view(1, 2, 0, 1), deliver(0, 1), installed(1, 3, {0: 1, 1: 1, 2: 2}),
            deliver(0, 2), ends(1, ViewEvent.LEFT, 3),
        ],
        [
            view(2, 1, 0, 1, 2), send(2, 0, 0, 1, 2), ends(2, ViewEvent.EXCLUDED), installed(2, 3, {0: 1, 1: 1, 2: 2}),
            deliver(0, 2),
        ],
    ]
)  # fmt: skip
"""Member 2 is excluded from view 1 before it delivers anything or any of what it sent arrives, and comes back in view 3."""


def test_who_is_excluded_need_not_deliver_what_follows_and_who_joins_what_went_before(tmp_path: Path) -> None:
    audit = audit_with(HERE, write(tmp_path / "run", COME_AND_GO, promises=(*OF_ANY_MESSAGES, *OF_VIEWS[:2])), segments=3)

    assert {check.verdict for check in audit.checks.values()} == {Verdict.HOLDS}


def test_without_the_exclusion_the_same_trace_lacks_deliveries(tmp_path: Path) -> None:
    logs = [[e for e in log if e.kind != "view"] for log in COME_AND_GO.logs]
    checks = audit_with(HERE, write(tmp_path / "run", timed(logs))).checks

    assert checks[Guarantee.AGREEMENT].violations == 4
    assert checks[Guarantee.FIFO].violations == 1


def test_who_goes_on_must_deliver_what_a_lost_sender_sent_if_another_that_goes_on_has_it(tmp_path: Path) -> None:
    one = [view(0, 1, 0, 1, 2), deliver(2, 0), view(0, 2, 0, 1)]
    other = [view(1, 1, 0, 1, 2), view(1, 2, 0, 1)]
    lost = [view(2, 1, 0, 1, 2), send(2, 0, 0, 1, 2), ends(2, ViewEvent.EXCLUDED)]
    check = audit_with(HERE, write(tmp_path / "run", timed([one, other, lost]))).checks[Guarantee.AGREEMENT]

    assert check.because == "member 1 never delivered 2:0, which member 2 had sent to it and member 0 delivered"


def test_a_restarted_member_may_deliver_again_what_it_forgot_and_nothing_else(tmp_path: Path) -> None:
    def restarted(kept: int) -> Trace:
        sent = [send(0, 0, 0, operation=Operation("alice", 1)), send(0, 1, 0, operation=Operation("alice", 2))]
        resumed = happening(0, ViewEvent.RESUME, 1, 2, str(kept))
        last = installed(0, 2, {0: 2})
        return timed([[view(0, 1, 0), *sent, deliver(0, 0), deliver(0, 1), resumed, deliver(0, 1), last]])

    forgot = audit_with(HERE, write(tmp_path / "forgot", restarted(1), promises=ALL))
    knew = audit_with(HERE, write(tmp_path / "knew", restarted(2), promises=ALL))

    assert {check.verdict for check in forgot.checks.values()} == {Verdict.HOLDS}
    assert knew.checks[Guarantee.INTEGRITY].because == "member 0 delivered 0:1 twice, at positions 4 and 6"
    assert knew.checks[Guarantee.ONCE].because == "member 0 delivered operation 2 of session alice twice, both times as 0:1"


def test_what_only_an_excluded_member_delivered_may_be_sent_again(tmp_path: Path) -> None:
    """Without uniform delivery: the group goes on without 1:0, and member 1 sends the operation again when it is back."""
    operation = Operation("alice", 1)
    back = installed(1, 3, {0: 1, 1: 2})
    lonely = [view(1, 1, 0, 1), send(1, 0, 0, 1, operation=operation), deliver(1, 0), ends(1, ViewEvent.EXCLUDED), back]
    lonely += [send(1, 1, 0, 1, operation=operation), deliver(1, 1)]
    others = [view(0, 1, 0, 1), view(0, 2, 0), installed(0, 3, {0: 1, 1: 2}), deliver(1, 1)]
    checks = audit_with(HERE, write(tmp_path / "run", timed([others, lonely]), promises=ALL)).checks

    assert checks[Guarantee.ONCE].verdict is checks[Guarantee.VIRTUAL_SYNCHRONY].verdict is Verdict.HOLDS
    assert checks[Guarantee.AGREEMENT].verdict is checks[Guarantee.FIFO].verdict is Verdict.HOLDS
    assert checks[Guarantee.UNIFORM].violations == 1


def test_without_views_and_sessions_nothing_is_said_of_them(tmp_path: Path) -> None:
    audit = audit_with(HERE, write(tmp_path / "run", plain("s0>01 d0:0", "d0:0"), promises=ALL), segments=2)

    assert [audit.checks[each].because for each in OF_VIEWS] == [
        "the trace records no installed views",
        "the trace records no installed views",
        "the trace does not say which operations of which sessions its messages carry",
    ]
    assert {audit.checks[each].verdict for each in OF_VIEWS} == {Verdict.UNDECIDED}


STRANGE = {
    "views of several groups": (
        [[view(0, 1, 0), view(0, 1, 0)._replace(group="h")]],
        "the trace has views of several groups, g and h, which cannot be audited together",
    ),
    "a negative number": ([[view(0, -1, 0)]], "process 0 has a view of the number -1 at position 0"),
    "a restart that does not say what it kept": (
        [[view(0, 1, 0), happening(0, ViewEvent.RESUME, 1, 2, "most")]],
        "process 0 resumes view 1 at position 1 without saying how many messages it kept",
    ),
}


@pytest.mark.parametrize("name", STRANGE)
def test_what_makes_no_sense_is_refused_in_one_sentence(tmp_path: Path, name: str) -> None:
    logs, sentence = STRANGE[name]

    with pytest.raises(BadInput) as refused:
        audit_with(HERE, write(tmp_path / "run", timed(logs), promises=ALL))

    assert str(refused.value) == sentence
