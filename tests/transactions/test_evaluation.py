"""The paper's evaluation: delivered by transmitted, against the share of writes and the number of processors.

QUIRE_EVALUATION=full redoes all points with ten processors (some minutes); otherwise small groups stand for them.
"""

from __future__ import annotations

import os
from statistics import mean

import pytest

from quire.simulation.omission import Evaluation, evaluate
from tests.transactions.test_golden import RATIO

FULL = os.environ.get("QUIRE_EVALUATION") == "full"
TOLERANCE = 0.03
SEEDS = 6
GOLDEN = RATIO["jitter20"]
BY_PROCESSORS = {each["n"]: each["ratio"] for each in GOLDEN["vs_n"] if FULL or each["n"] <= 4}
BY_WRITES = {each["w"]: each["ratio"] for each in GOLDEN["vs_w"]} if FULL else {}


def ratio(*, processors: int = 10, write_share: float = 0.9, beat_ms: float = 200.0, transactions: int = 20) -> float:
    """The mean of several seeds."""
    return mean(
        evaluate(
            Evaluation(processors=processors, write_share=write_share, beat_ms=beat_ms, transactions=transactions, seed=seed)
        ).ratio
        for seed in range(SEEDS)
    )


@pytest.mark.parametrize("processors", BY_PROCESSORS)
def test_more_processors_find_more_to_omit(processors: int) -> None:
    assert ratio(processors=processors) == pytest.approx(BY_PROCESSORS[processors], abs=TOLERANCE)


@pytest.mark.parametrize("write_share", BY_WRITES)
def test_more_writes_leave_more_to_omit(write_share: float) -> None:
    assert ratio(write_share=write_share) == pytest.approx(BY_WRITES[write_share], abs=TOLERANCE)


@pytest.mark.skipif(not FULL, reason="QUIRE_EVALUATION=full runs it")
@pytest.mark.parametrize("beat", GOLDEN["calibration"])
def test_slower_heartbeats_gather_more_requests(beat: str) -> None:
    found = ratio(beat_ms=float(beat) * 1000)
    assert found == pytest.approx(GOLDEN["calibration"][beat], abs=TOLERANCE)


def test_the_curve_falls_with_the_share_of_writes_and_a_request_alone_omits_nothing() -> None:
    few, half, all_of_them = (ratio(processors=6, write_share=share, transactions=3) for share in (0.1, 0.5, 1.0))
    assert few > half > all_of_them
    assert evaluate(Evaluation(processors=1, transactions=2)).ratio == 1.0
