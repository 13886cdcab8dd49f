"""Significant order against brute force, on random calls in no order and in good order."""

from __future__ import annotations

import os
import random
from collections import Counter

import numpy as np

from quire.pipeline.auditing.significant import SignificantResult, judge_calls
from tests.audit import call_traces, memory
from tests.audit.call_traces import Calls, random_calls

TRACES = int(os.environ.get("QUIRE_SWARM_RUNS", "500"))


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
