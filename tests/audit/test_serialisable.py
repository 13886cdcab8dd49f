"""Serialisability against brute force, on random transactions that see the right versions or wrong ones."""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest

from quire.pipeline.auditing.serialisable import judge_transactions
from tests.audit import memory, txn_traces
from tests.audit.txn_traces import Counts, random_transactions

TRACES = int(os.environ.get("QUIRE_SWARM_RUNS", "500"))


@pytest.mark.parametrize("stamped", [True, False])
def test_counts_equal_brute_force(stamped: bool) -> None:
    seen: Counter[str] = Counter()
    for seed in range(TRACES):
        trace = random_transactions(random.Random(seed), stamped=stamped)
        expected = txn_traces.judge(trace)
        found = judge_transactions(memory.labelled(trace), "")
        unsaid = int(found.why.split()[0]) if found.why and "saw" in found.why else 0
        assert Counts(found.cycles, found.wrong, unsaid) == expected, f"seed {seed}"
        assert bool(found.cycle) == (found.cycles > 0)
        assert bool(found.did) == (found.wrong > 0)
        for step, following in zip(found.cycle, found.cycle[1:] + found.cycle[:1], strict=True):
            assert step.second == following.first
        seen.update(name for name, count in zip(expected._fields, expected, strict=True) if count)
        seen["clean"] += not any(expected)
    assert min(seen[name] for name in (*Counts._fields, "clean")) >= TRACES // 100, seen
