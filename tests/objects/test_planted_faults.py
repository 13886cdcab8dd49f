"""Every wrong rule is caught, by a swarm of the kind that is made for it."""

from __future__ import annotations

from collections import Counter

import pytest

from quire.model.errors import QuireError
from tests.objects.faults import PLANTED
from tests.objects.kit import Plan
from tests.objects.test_swarm import KINDS, judge

TRIES = 400
EXACT = KINDS["exact"]

PLANS = {
    "exact": Plan(members=3, roots=6, conflict=0.7, abort=0.2, options=EXACT),
    "lossy": Plan(members=3, roots=8, conflict=1.0, loss=0.3, abort=0.0, span_ms=4, options=EXACT),
    "cyclic": Plan(members=3, roots=5, cyclic=True, conflict=0.7, abort=0.0, span_ms=3, options=EXACT),
    "collected": Plan(members=3, roots=8, conflict=0.7, abort=0.0, options=KINDS["collected"]),
    "idle": Plan(members=3, roots=1, conflict=1.0, abort=0.0, options=EXACT),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, attribute, rule, kind = PLANTED[name]
    monkeypatch.setattr(place, attribute, rule)
    for seed in range(TRIES):
        try:
            wrong = judge(seed, PLANS[kind], Counter(), until_ms=4_000)
        except (QuireError, AssertionError, KeyError) as error:
            wrong = repr(error)
        if wrong is not None:
            monkeypatch.undo()
            assert judge(seed, PLANS[kind], Counter(), until_ms=4_000) is None, "it was not the fault that was caught"
            return
    pytest.fail(f"{TRIES} runs did not show it")
