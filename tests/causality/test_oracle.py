"""Vector times and every question about them against brute force, for any number of segments."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from itertools import combinations, pairwise

import numpy as np
import pytest

from quire.model.errors import BadInput
from quire.pipeline.causality import critical, events, segments
from quire.pipeline.causality.cycles import Contradiction
from quire.pipeline.causality.events import Event
from quire.pipeline.causality.queries import Relation
from quire.pipeline.causality.segments import vector_times
from quire.pipeline.causality.tasks import CAUSALITY
from quire.pipeline.causality.times import Causality, follow_layout
from quire.pipeline.tasks import run_here
from tests.audit import memory
from tests.audit.traces import Trace, plain, random_trace
from tests.causality import oracle

HERE = run_here(CAUSALITY)
TRACES = 800
PARTS = 4


def follow(monkeypatch: pytest.MonkeyPatch, trace: Trace, pieces: int) -> Causality:
    for module in (segments, critical, events):
        monkeypatch.setattr(module, "read_events", memory.read_from(trace))
    return follow_layout(HERE, memory.layout_of(trace), segments=pieces)


def all_clocks(causality: Causality) -> dict[oracle.EventKey, tuple[int, ...]]:
    found: dict[oracle.EventKey, tuple[int, ...]] = {}
    for piece, start in causality.segments:
        read, blocks = vector_times(piece, start)
        for block in blocks:
            for process, event, clock in zip(block.process.tolist(), block.event.tolist(), block.clocks.tolist(), strict=True):
                place = (process, int(read.pos[event]))
                assert place not in found
                found[place] = tuple(clock)
    return found


@pytest.fixture(scope="module")
def seen() -> Iterator[Counter[str]]:
    """What the random traces held: a case that never came up has not been tested."""
    tally: Counter[str] = Counter()
    yield tally
    if tally["parts"] == PARTS:
        for case in ("cycle", "rebuilt", "segments", "crossing"):
            assert tally[case] >= 20, f"{case} was hardly tested: {tally}"


@pytest.mark.parametrize("part", range(PARTS))
def test_vector_times_equal_brute_force_for_any_number_of_segments(
    monkeypatch: pytest.MonkeyPatch, seen: Counter[str], part: int
) -> None:
    for seed in range(part * TRACES // PARTS, (part + 1) * TRACES // PARTS):
        rng = random.Random(seed)
        trace = random_trace(rng)
        if not any(trace.logs):
            continue
        past = oracle.pasts(trace.logs)
        for pieces in (1, rng.randint(2, 6)):
            if past is None:
                with pytest.raises(Contradiction) as raised:
                    follow(monkeypatch, trace, pieces)
                check_cycle(trace, raised.value)
                seen["cycle"] += 1
                continue
            causality = follow(monkeypatch, trace, pieces)
            assert all_clocks(causality) == oracle.clocks(trace.logs, past), f"seed {seed}, {pieces} segments"
            seen["rebuilt"] += causality.rebuilt
            seen["segments"] += len(causality.segments) > 1
            seen["crossing"] += any(start is not None and len(start.seq) > 0 for _, start in causality.segments)
    seen["parts"] += 1


def check_cycle(trace: Trace, contradiction: Contradiction) -> None:
    """Each step is in the logs, and the steps lead round."""
    steps = contradiction.cycle
    for before, step in zip([steps[-1], *steps], steps, strict=False):
        log = trace.logs[step.member]
        assert step.pos < step.then_pos
        assert (log[step.pos].kind, log[step.pos].origin, log[step.pos].seq) == ("deliver", *step.delivered)
        assert (log[step.then_pos].kind, log[step.then_pos].origin, log[step.then_pos].seq) == ("send", *step.sent)
        assert step.sent == before.delivered
        assert step.sent[0] == step.member


def test_questions_are_answered_as_brute_force_answers_them(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0
    for seed in range(150):
        rng = random.Random(seed)
        trace = random_trace(rng)
        past = oracle.pasts(trace.logs)
        if past is None or len(past) < 2:
            continue
        asked += 1
        causality = follow(monkeypatch, trace, rng.randint(1, 5))
        event, other = (Event(*place) for place in rng.sample(sorted(past), 2))
        one, two = (event.process, event.pos), (other.process, other.pos)
        around = causality.around(event)
        told = {
            name: {(share.process, at) for share in getattr(around, name) for at in range(share.first, share.end)}
            for name in ("past", "future", "concurrent")
        }
        future = {place for place, before in past.items() if one in before}
        assert told["past"] == past[one], f"seed {seed}"
        assert told["future"] == future, f"seed {seed}"
        assert told["concurrent"] == set(past) - past[one] - future - {one}, f"seed {seed}"
        expected = Relation.BEFORE if one in past[two] else Relation.AFTER if two in past[one] else Relation.CONCURRENT
        assert causality.relation(event, other) is expected, f"seed {seed}"
        pairs = causality.pairs()
        assert pairs.ordered == sum(map(len, past.values()))
        assert pairs.concurrent == sum(a not in past[b] and b not in past[a] for a, b in combinations(past, 2))
        check_path(causality, trace, past, seed)
    assert asked > 100


def check_path(causality: Causality, trace: Trace, past: dict[oracle.EventKey, set[oracle.EventKey]], seed: int) -> None:
    depths = oracle.depths(trace.logs, past)
    path = causality.critical_path()
    assert path.length == max(depths.values()), f"seed {seed}"
    direct = oracle.causes(trace.logs)
    places = [(s.process, at) for s in path.stretches for at in range(s.first_pos, s.last_pos + 1)]
    assert len(places) == path.length
    assert all(before in direct[after] for before, after in pairwise(places)), f"seed {seed}"


def test_more_than_64_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A word goes round a ring of 100, twice, and each says something of its own beside it."""
    members = 100
    logs: list[list[str]] = [[] for _ in range(members)]
    for turn in range(2):
        for p in range(members):
            if turn or p:
                source = (p - 1) % members
                logs[p].append(f"d{source}:{turn if p else turn - 1}")
            logs[p].append(f"s{turn}>")
    trace = plain(*(" ".join(log) for log in logs))
    past = oracle.pasts(trace.logs)
    assert past is not None

    expected = oracle.clocks(trace.logs, past)

    for pieces in (1, 2, 7):
        assert all_clocks(follow(monkeypatch, trace, pieces)) == expected


def test_a_delivery_before_its_send_is_told_as_the_cycle_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = plain("s0>1 d1:0", "s0>0 d0:0")
    backwards = Trace([log[::-1] for log in trace.logs], [[None] * 2] * 2)

    with pytest.raises(Contradiction) as raised:
        follow(monkeypatch, backwards, 1)

    assert str(raised.value) == (
        "the logs contradict each other: member 0 delivered 1:0 at position 0 before it sent 0:0 at position 1, "
        "and member 1 delivered 0:0 at position 0 before it sent 1:0 at position 1"
    )


def test_an_event_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    causality = follow(monkeypatch, plain("s0>1", "d0:0"), 1)

    with pytest.raises(BadInput, match="there is no event 1@1: process 1 has 1 events"):
        causality.around(Event(1, 1))
    with pytest.raises(BadInput, match="the run has processes 0 to 1"):
        causality.around(Event(2, 0))


def test_block_boundaries_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = plain("s0>1 s1>1 d1:0", "d0:0 s0>0 d0:1")
    whole = all_clocks(follow(monkeypatch, trace, 1))

    monkeypatch.setattr(segments, "BLOCK_STEPS", 2)

    assert all_clocks(follow(monkeypatch, trace, 1)) == whole
    assert whole[1, 2] == (2, 3)
    assert np.array(list(whole.values())).max() == 3
