"""The search that goes on for hours: it ends when it is told to, and says how to make a run again that failed."""

from __future__ import annotations

import signal
import subprocess
import sys
from threading import Event

import pytest

from quire.simulation.membership.chaos import ChaosResult
from quire.simulation.membership.observer import Violation
from tests.views import vopr
from tests.views.test_swarm import CONFIGURATIONS


def _breaks(configuration: str, seed: int) -> ChaosResult:
    if (configuration, seed) == ("causal", 7 + vopr.BATCH + 3):
        raise Violation("causes come first", "it does not")
    return ChaosResult(seed, 2, 3, live=True, closed=False, reads=0)


def test_a_run_that_fails_ends_the_search_which_says_how_to_make_it_again() -> None:
    total = vopr.search(_breaks, workers=2, first=7, stop=Event())
    assert f"configuration 'causal', seed {7 + vopr.BATCH + 3}, commit {vopr.commit()}" in total.failure
    assert "causes come first: it does not" in total.failure
    assert f"make vopr VOPR=\"'causal' {7 + vopr.BATCH + 3}\"" in total.failure
    assert total.runs >= vopr.BATCH * len(CONFIGURATIONS)


def test_an_interrupted_search_says_what_it_has_done() -> None:
    command = [sys.executable, "-m", "tests.views.vopr"]
    with subprocess.Popen(command, cwd=vopr.ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("searching in commit ")
        process.send_signal(signal.SIGINT)
        said = process.stdout.read()
        assert process.wait() == 0
    assert said.startswith("no run failed\n")


def test_a_run_is_made_again_by_its_configuration_and_its_seed(capsys: pytest.CaptureFixture[str]) -> None:
    assert vopr.main(["closing, journal", "3"]) == 0
    assert "configuration 'closing, journal', seed 3: every promise was kept" in capsys.readouterr().out
