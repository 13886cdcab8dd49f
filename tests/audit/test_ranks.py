"""Total order from the segments' ranks: enough where it holds, and never where it does not."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest

from quire.pipeline.auditing import deliveries, search, segments
from quire.pipeline.auditing.deliveries import DeliveriesTask
from quire.pipeline.auditing.findings import Orders
from quire.pipeline.auditing.judging import judge_trace
from quire.pipeline.auditing.ranks import rank_deliveries
from quire.pipeline.auditing.registry import audit_job
from quire.pipeline.tasks import run_here
from tests.audit import memory, oracle
from tests.audit.oracle import Event, Logs, Message
from tests.audit.test_oracle import counts
from tests.audit.traces import Clocks, Trace, plain
from tests.kit.effort import runs

TRACES = runs(250, 400)


def ordered_trace(random: Random, faults: int) -> Trace:
    """Groups that share no member, each with an order of its own in which its members deliver, some far behind others; then
    as many members as there are faults have two of their deliveries, or two neighbours, changed in order."""
    members = random.randint(2, 6)
    split = random.randint(1, members)
    groups = [group for group in (range(split), range(split, members)) if group]
    logs: Logs = [[] for _ in range(members)]
    clocks: Clocks = [[] for _ in range(members)]
    clock, numbers, next_ = [0] * members, [0] * members, [0] * members
    log: dict[int, list[tuple[Message, int]]] = {number: [] for number in range(len(groups))}
    own = {member: number for number, group in enumerate(groups) for member in group}

    def happen(member: int, event: Event, after: int = 0) -> None:
        clock[member] = max(clock[member], after) + random.choice((1, 1, 2))
        logs[member].append(event)
        clocks[member].append(clock[member])

    left, lag = random.randint(5, 40), random.choice((0.2, 0.5, 0.9))
    while left or any(next_[member] < len(log[own[member]]) for member in range(members)):
        member = random.randrange(members)
        order = log[own[member]]
        if left and random.random() < 0.3:
            left -= 1
            message = (member, numbers[member])
            numbers[member] += 1
            happen(member, Event("send", *message, tuple(groups[own[member]])))
            # A sender knows no order: what is sent later may come earlier, as long as nobody has delivered beyond it.
            order.insert(random.randint(max(next_[each] for each in groups[own[member]]), len(order)), (message, clock[member]))
        elif next_[member] < len(order) and random.random() < (1 if member % 2 else lag):
            message, sent = order[next_[member]]
            next_[member] += 1
            happen(member, Event("deliver", *message), sent)
    for _ in range(faults):
        events = random.choice(logs)
        indices = [index for index, event in enumerate(events) if event.kind == "deliver"]
        if len(indices) > 1:
            at = random.randrange(len(indices) - 1)
            one, other = indices[at], random.choice((indices[at + 1], random.choice(indices[at + 1 :])))
            events[one], events[other] = events[other], events[one]
    return Trace(logs, clocks)


def with_breaches(random: Random, trace: Trace) -> Trace:
    """The trace with a few more deliveries: of what the member had delivered before, or is not for it, or nobody sent."""
    logs, clocks = [list(log) for log in trace.logs], [[4 * (clock or 0) for clock in own] for own in trace.clocks]
    for number in range(random.randint(1, 3)):
        member = random.randrange(len(logs))
        deliveries = [at for at, event in enumerate(logs[member]) if event.kind == "deliver"]
        if deliveries:
            after = random.choice(deliveries)
            again = logs[member][after]
            other = Event("deliver", random.randrange(len(logs)), random.randint(0, 3))
            at = random.choice((after, after, random.randint(after, len(logs[member]) - 1))) + 1
            phantom = Event("deliver", random.randrange(len(logs)), 900 + number)
            logs[member].insert(at, random.choice((again, other, phantom)))
            clocks[member].insert(at, clocks[member][at - 1] + 1)
    return Trace(logs, [list(own) for own in clocks])


def judge(monkeypatch: pytest.MonkeyPatch, trace: Trace, pieces: int) -> tuple[oracle.Expected, int, int]:
    """The counts, whether all deliveries were compared in one task, and in how many segments it was judged."""
    for module in (segments, deliveries, search):
        monkeypatch.setattr(module, "read_events", memory.read_from(trace))
    seen: Counter[type] = Counter()

    def run(tasks: list[object]) -> list[object]:
        seen.update(map(type, tasks))
        return run_here(audit_job())(tasks)

    layout = memory.layout_of(trace)
    found = judge_trace(layout, pieces, run, [DeliveriesTask(layout.world, layout.groups)], block_shift=1)  # type: ignore[arg-type]
    return counts(found), seen[DeliveriesTask], found.of(Orders).segments


def test_a_total_order_follows_from_the_ranks_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    split = 0
    for seed in range(TRACES):
        random = Random(f"ordered {seed}")
        trace = ordered_trace(random, 0)
        found, compared, pieces = judge(monkeypatch, trace, random.randint(2, 8))
        assert (found.total, found.acyclic) == (0, 0), f"seed {seed}"
        split += pieces > 1
        assert not compared or pieces == 1, f"seed {seed}: all deliveries were compared, in vain"
    assert split > TRACES / 2


def test_no_disagreement_hides_behind_a_boundary(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = 0
    for seed in range(TRACES):
        random = Random(f"spoilt {seed}")
        trace = ordered_trace(random, random.choice((1, 1, 2, 4)))
        expected = oracle.judge(trace.logs, trace.crashed)
        found, _, _ = judge(monkeypatch, trace, random.randint(2, 8))
        assert found == expected, f"seed {seed}"
        wrong += found.total > 0
    assert wrong > TRACES / 4


def test_what_is_delivered_twice_or_wrongly_does_not_spoil_what_ranks_prove(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: Counter[str] = Counter()
    for seed in range(TRACES):
        random = Random(f"breached {seed}")
        trace = with_breaches(random, ordered_trace(random, random.choice((0, 0, 1))))
        expected = oracle.judge(trace.logs, trace.crashed)
        found, compared, pieces = judge(monkeypatch, trace, random.randint(2, 8))
        assert found == expected, f"seed {seed}"
        if pieces > 1 and expected.integrity:
            seen.update({"proved": not compared, "compared": compared > 0, "violated": expected.total > 0})
    assert min(seen[name] for name in ("proved", "compared", "violated")) >= TRACES // 40, seen


@pytest.mark.parametrize("pieces", [2, 3, 4, 6])
def test_what_nobody_sent_has_its_rank_in_all_segments(monkeypatch: pytest.MonkeyPatch, pieces: int) -> None:
    """Member 0 delivers it first, and member 1 last."""
    own = " ".join(f"s{number}>01 d0:{number}" for number in range(6))
    trace = plain(f"d0:99 {own} s6>0 s7>0 s8>0 d0:6 d0:7 d0:8", " ".join(f"d0:{number}" for number in range(6)) + " d0:99")

    found, compared, split = judge(monkeypatch, trace, pieces)

    assert found == oracle.judge(trace.logs, trace.crashed)
    assert found.total
    assert compared
    assert split == pieces


def test_a_segment_in_which_a_message_is_delivered_twice_has_no_ranks() -> None:
    """Its first deliveries are in one order all the same; but one member delivers 0:0 again, so that nothing is merged."""
    once = plain("s0>01 d0:0 s1>01 d0:1", "d0:0 d0:1")
    again = plain("s0>01 d0:0 s1>01 d0:1", "d0:0 d0:0 d0:1")
    ranks = []
    for trace in (once, again):
        events = memory.read_from(trace)(memory.layout_of(trace).world, memory.layout_of(trace).groups)
        rows = np.array([0, 2, 2])
        ranks.append(rank_deliveries(events, np.ones(2, np.bool_), np.zeros(2, np.int64), rows, np.zeros(2, np.bool_)))

    assert ranks[0] is not None
    assert ranks[0].counts.tolist() == [2, 2]
    assert ranks[1] is None
