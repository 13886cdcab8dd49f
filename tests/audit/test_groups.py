"""The checks of groups against brute force: overlapping groups whose members come and go, with planted faults."""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path

import numpy as np

from quire.model.orders import OF_ANY_MESSAGES, Guarantee
from quire.pipeline import Verdict
from quire.pipeline.auditing.auditor import audit_with
from quire.pipeline.auditing.deliveries import judge_grouped
from quire.pipeline.auditing.tasks import AUDIT
from quire.pipeline.tasks import run_here
from tests.audit import group_oracle, memory, oracle
from tests.audit.group_traces import random_groups
from tests.audit.test_spark import told
from tests.audit.traces import Trace, write

HERE = run_here(AUDIT)
TRACES = int(os.environ.get("QUIRE_SWARM_RUNS", "500"))
ALL = (*OF_ANY_MESSAGES, Guarantee.HYBRID, Guarantee.SPELLS)


def counts(trace: Trace) -> tuple[int, int, int]:
    correct = np.array([p not in trace.crashed for p in range(len(trace.logs))])
    found = judge_grouped(memory.labelled(trace), correct)
    assert (found.total.disagreement is not None) == (found.total.pairs > 0)
    assert (found.within.disagreement is not None) == (found.within.pairs > 0)
    assert bool(found.spells.seen) == (found.spells.violations > 0)
    return found.total.pairs, found.within.pairs, found.spells.violations


def test_counts_equal_brute_force() -> None:
    seen: Counter[str] = Counter()
    for seed in range(TRACES):
        trace = random_groups(random.Random(seed))
        expected = group_oracle.judge(trace.logs, trace.crashed)
        assert counts(trace) == expected, f"seed {seed}"
        seen.update(name for name, count in zip(("together", "within", "spells"), expected, strict=True) if count)
        seen["clean"] += not any(expected)
        seen["only across groups"] += bool(expected[0] and not expected[1])
        seen["apart"] += bool(oracle.judge(trace.logs, trace.crashed).total > expected[0])
    assert (
        min(seen[name] for name in ("together", "within", "spells", "clean", "only across groups", "apart")) >= TRACES // 100
    ), seen


def test_what_is_told_does_not_depend_on_the_number_of_segments(tmp_path: Path) -> None:
    for seed in range(40):
        trace = random_groups(random.Random(seed))
        if not any(trace.logs):
            continue
        directory = write(tmp_path / str(seed), trace, promises=ALL, rows_per_append=3)
        whole = audit_with(HERE, directory, segments=1)
        assert tuple(whole.checks) == ALL
        for check in whole.checks.values():
            assert (check.witness is not None) == (check.violations > 0) == (check.verdict is Verdict.VIOLATED)
        assert told(audit_with(HERE, directory, segments=2 + seed % 3)) == told(whole), f"seed {seed}"
