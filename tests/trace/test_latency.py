"""How long messages took: the same numbers wherever they are shown."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.live.runs.collecting import collect
from quire.live.runs.plan import Plan
from quire.pipeline.layout import lay_out
from quire.report.scan import scan
from quire.trace.latency import Latencies
from quire.trace.store import open_run
from tests.kit.parts import log_of, write_part

DURATIONS = st.lists(st.tuples(st.integers(0, 10**18), st.integers(1, 50)), min_size=1, max_size=40)


@given(DURATIONS, st.integers(0, 40))
def test_quantiles_are_right_to_four_digits_and_longest_and_mean_exactly(pairs: list[tuple[int, int]], cut: int) -> None:
    latencies = Latencies()
    for some in (pairs[:cut], pairs[cut:]):
        latencies.add(*(np.array(each, np.int64) for each in (zip(*some, strict=True) if some else ((), ()))))

    each = sorted(duration for duration, count in pairs for _ in range(count))
    assert latencies.total() == len(each)
    assert latencies.longest() == each[-1]
    assert latencies.mean() == sum(each) / len(each)
    for hundredths in (1, 50, 90, 99, 100):
        exact = each[-(-len(each) * hundredths // 100) - 1]
        assert latencies.quantile(hundredths) == pytest.approx(exact, rel=0.0005)


def test_nothing_measured_has_no_summary() -> None:
    assert Latencies().summary() is None


def test_the_table_and_the_report_of_a_run_say_the_same_latencies(tmp_path: Path) -> None:
    """Runs of all sizes, and waits whose p99 falls apart when it is rounded in two ways."""
    rng = random.Random(5)
    plan = Plan(members=("127.0.0.1:1", "127.0.0.1:2"), protocol="matrix", messages=10)
    logs = [log_of(plan, me) for me in range(2)]
    sent, now = 0, 1_700_000_000_000_000_000
    for _ in range(200):
        count = rng.randint(1, 9)
        logs[0].send(0, sent, count, 2 * sent + 1, now, 0, 64)
        for me, log in enumerate(logs):
            wait = int(rng.expovariate(1 / 1_234_567))
            log.deliver(0, sent, count, 2 * sent + count + 1, now + wait * (me + 1), 0, 64)
        sent, now = sent + count, now + rng.randint(1, 10_000_000)
    for log in logs:
        write_part(tmp_path / "parts", plan, log)

    table = collect(tmp_path / "parts", tmp_path / "run").latency
    report = scan(lay_out(open_run(tmp_path / "run")))

    assert table.origin is not None
    assert (report.origin.summary(), report.remote.summary()) == (table.origin, table.remote)
