"""Total order from the segments' ranks: enough where it holds, and never where it does not."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from quire.pipeline.auditing import deliveries, search, segments
from quire.pipeline.auditing.deliveries import DeliveriesTask
from quire.pipeline.auditing.findings import judge_trace
from quire.pipeline.auditing.tasks import AUDIT
from quire.pipeline.tasks import run_here
from tests.audit import memory, oracle
from tests.audit.oracle import Event, Logs, Message
from tests.audit.test_oracle import counts
from tests.audit.traces import Clocks, Trace

TRACES = 400


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
        places = [place for place, event in enumerate(events) if event.kind == "deliver"]
        if len(places) > 1:
            at = random.randrange(len(places) - 1)
            one, other = places[at], random.choice((places[at + 1], random.choice(places[at + 1 :])))
            events[one], events[other] = events[other], events[one]
    return Trace(logs, clocks)


def judge(monkeypatch: pytest.MonkeyPatch, trace: Trace, pieces: int) -> tuple[oracle.Expected, int, int]:
    """The counts, whether all deliveries were compared in one task, and in how many segments it was judged."""
    for module in (segments, deliveries, search):
        monkeypatch.setattr(module, "read_events", memory.read_from(trace))
    seen: Counter[type] = Counter()

    def run(tasks: list[object]) -> list[object]:
        seen.update(map(type, tasks))
        return run_here(AUDIT)(tasks)

    layout = memory.layout_of(trace)
    found = judge_trace(layout, pieces, run, [DeliveriesTask(layout.world, layout.groups)], block_shift=1)  # type: ignore[arg-type]
    return counts(found), seen[DeliveriesTask], found.segments


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


def test_no_disagreement_hides_behind_a_seam(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = 0
    for seed in range(TRACES):
        random = Random(f"spoilt {seed}")
        trace = ordered_trace(random, random.choice((1, 1, 2, 4)))
        expected = oracle.judge(trace.logs, trace.crashed)
        found, _, _ = judge(monkeypatch, trace, random.randint(2, 8))
        assert found == expected, f"seed {seed}"
        wrong += found.total > 0
    assert wrong > TRACES / 4
